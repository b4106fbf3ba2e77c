# SPDX-License-Identifier: Apache-2.0
# What the published schema says of each document in documents.json: one line "accepted" or "refused" per document, in
# order. Exits with 77 where Python has no jsonschema.
import json
import sys

try:
    import jsonschema
except ImportError:
    sys.exit(77)

schema_path, documents_path = sys.argv[1:]
with open(schema_path) as file:
    schema = json.load(file)
with open(documents_path) as file:
    documents = json.load(file)

jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
for part in documents.values():
    groups = part.values() if isinstance(part, dict) else [part]
    for group in groups:
        for document in group:
            print("accepted" if validator.is_valid(document) else "refused")
