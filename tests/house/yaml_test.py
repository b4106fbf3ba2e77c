# SPDX-License-Identifier: Apache-2.0
# Goal: compose.yaml, the workflow and every other YAML file of ours say what their readers understand. Method: reads
# each with no key twice; then looks at the keys of those two, at the files that they name, and at the addresses and
# profiles that docker/README.md tells. Neither Docker nor a forge is asked. Exits with 77 where Python has no yaml.
# Each check is first shown a fault.
import copy
import re
import sys
from pathlib import Path

try:
    import yaml
except ImportError:
    print("*** SKIPPED: there is no python3-yaml ***")
    sys.exit(77)

root = Path(sys.argv[1])
SERVICE = {"image", "build", "profiles", "network_mode", "environment", "depends_on", "command", "healthcheck",
           "volumes"}
HEALTH = {"test", "interval", "timeout", "retries", "start_period"}
JOB = {"if", "strategy", "runs-on", "container", "timeout-minutes", "steps"}


class Once(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping; YAML's merge key may be overruled."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"line {node.start_mark.line + 1}: a key stands twice")
        return super().construct_mapping(node, deep)


def read(text):
    return list(yaml.load_all(text, Once))


def faults_of_service(name, service, services):
    for key in service.keys() - SERVICE:
        yield f"{name}: Compose's key {key} is unknown here"
    if "image" not in service:
        yield f"{name}: no image"
    for other, wish in service.get("depends_on", {}).items():
        if other not in services or wish != {"condition": "service_healthy"}:
            yield f"{name}: depends on {other}, which is not there or waits for nothing"
    health = service.get("healthcheck")
    if health is None and "demo" not in service.get("profiles", []):
        yield f"{name}: no health check, so that --wait does not wait"
    for key in (health or {}).keys() - HEALTH:
        yield f"{name}: the health check's key {key} is unknown here"
    if health and health["test"][0] not in ("CMD", "CMD-SHELL"):
        yield f"{name}: the health check runs {health['test'][0]}"
    files = [volume.split(":")[0] for volume in service.get("volumes", [])]
    if "build" in service:
        files.append(f"{service['build']['context']}/{service['build']['dockerfile']}")
    for file in files:
        if not (root / "docker" / file).exists():
            yield f"{name}: {file} is not there"


def faults_of_compose(compose, page):
    for key in compose:
        if key not in ("name", "services") and not key.startswith("x-"):
            yield f"Compose's key {key} is unknown here"
    services = compose["services"]
    for name, service in services.items():
        yield from faults_of_service(name, service, services)
    told = set(re.findall(r"--profile ([a-z]+)", page))
    there = {profile for service in services.values() for profile in service.get("profiles", [])}
    if told != there:
        yield f"the profiles are {sorted(there)}, docker/README.md tells {sorted(told)}"
    section = page[page.index("\n## compose.yaml"):]
    text = yaml.dump(services, width=10000)
    ports = re.findall(r"\b19\d\d\d\b", section)
    if len(ports) < 6:
        yield f"docker/README.md tells only the ports {ports}"
    for port in ports:
        if port not in text:
            yield f"docker/README.md tells port {port}, which no service has"


def faults_of_workflow(workflow):
    if set(workflow) != {"name", True, "permissions", "defaults", "jobs"}:  # YAML 1.1 reads `on` as true
        yield f"its keys are {list(workflow)}"
    if set(workflow.get(True, [])) != {"push", "pull_request", "schedule"}:
        yield "it does not run for each push, each request and each night"
    if workflow.get("permissions") != {"contents": "read"}:
        yield "it may do more than read"
    scripts = []
    stages = []
    for name, job in workflow["jobs"].items():
        for key in job.keys() - JOB:
            yield f"{name}: the key {key} is unknown here"
        if job.get("timeout-minutes", 0) < 60:
            yield f"{name}: it may not take as long as it needs"
        for step in job["steps"]:
            if not step.keys() <= {"run", "uses", "if"}:
                yield f"{name}: a step is {step}"
            if step.get("run", "").split(" ")[0] in (".ci/run", "tests/run"):
                scripts.append(step["run"])
        for names in job.get("strategy", {}).get("matrix", {}).get("stages", []):
            stages += names.split(" ")
    if scripts != [".ci/run ${{ matrix.stages }}", "tests/run compilers", "tests/run nightly"]:
        yield f"it runs {scripts}"
    wanted = re.search(r"^stages=[(](.*)[)]$", (root / ".ci/run").read_text(encoding="utf-8"), re.M)[1].split(" ")
    if sorted(stages) != sorted(wanted):
        yield f"it runs the stages {stages}, and .ci/run has {wanted}"


def expect_faults(what, make, faults_of):
    """A copy of `what` that `make` has spoiled has a fault."""
    spoiled = copy.deepcopy(what)
    make(spoiled)
    assert list(faults_of(spoiled)), f"a spoiled copy passed: {make.__name__}"


try:
    read("a: 1\na: 2\n")
    raise AssertionError("a key that stands twice passed")
except yaml.YAMLError:
    pass

found = [path for folder in ("docker", ".github", "tests") for path in sorted((root / folder).rglob("*"))
         if path.suffix in (".yml", ".yaml")]
assert len(found) >= 5, found
documents = {path.relative_to(root).as_posix(): read(path.read_text(encoding="utf-8")) for path in found}
compose, = documents["docker/compose.yaml"]
workflow, = documents[".github/workflows/ci.yml"]
page = (root / "docker/README.md").read_text(encoding="utf-8")
of_compose = lambda what: faults_of_compose(what, page)

faults = [*of_compose(compose), *faults_of_workflow(workflow)]
print("\n".join(faults))
for make in (lambda c: c["services"]["redis"].update(imag="x"), lambda c: c["services"]["redis"].pop("healthcheck"),
             lambda c: c["services"].pop("kafka"), lambda c: c["services"].pop("demo-1") and c.update(volume={}),
             lambda c: c["services"]["postgres"].update(volumes=["../gone.sql:/x:ro"]),
             lambda c: [c["services"].pop(f"kafka-{n}") for n in (1, 2, 3)]):
    expect_faults(compose, make, of_compose)
for make in (lambda w: w["jobs"]["stage"].update(step=[]), lambda w: w["jobs"]["stage"]["steps"].pop(),
             lambda w: w["jobs"]["stage"]["strategy"]["matrix"]["stages"].pop(),
             lambda w: w.update(permissions="write-all"), lambda w: w["jobs"]["night"].pop("timeout-minutes")):
    expect_faults(workflow, make, faults_of_workflow)
sys.exit(1 if faults else 0)
