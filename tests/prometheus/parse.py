# SPDX-License-Identifier: Apache-2.0
# Reads a text by Prometheus' own client and prints a line per sample, "NAME TYPE {labels} VALUE". Exits with 77 where
# the client is missing (Debian: python3-prometheus-client).
import sys

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)

with open(sys.argv[1], encoding="utf-8") as file:
    for family in text_string_to_metric_families(file.read()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            print(sample.name, family.type, "{" + labels + "}", repr(sample.value))
