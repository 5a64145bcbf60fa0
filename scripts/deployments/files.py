"""The checks of check-deployments for compose, Kubernetes and Helm: schemas, and what the files tell Pictor."""

import json
import os
import re
import subprocess

from support import ROOT

CONFIG = ROOT / "config"
#: The version of Kubernetes whose schemas count.
VERSION = "1.31"
LOADER = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"


def load(tools, path):
    """The documents of a YAML file, with Python's types."""
    return json.loads(subprocess.check_output([tools / "python", "-c", LOADER, path], text=True))


def settings(program):
    """The variables of all settings."""
    lines = (CONFIG / "pictor.json5").read_text(encoding="utf-8").split("\n")
    written = subprocess.check_output([program, "--print-config"], text=True, env={"PATH": os.environ["PATH"]})
    if [line for line in written.split("\n") if ": " in line and "//" not in line] != \
            [line for line in lines if ": " in line and "//" not in line and "$schema" not in line]:
        raise ValueError("config/pictor.json5 is not what --print-config writes")
    found, section = set(), ""
    for line in lines:
        if match := re.match(r"  (\w+): \{$", line):
            section = match[1]
        elif match := re.match(r"    (\w+):", line):
            found.add(f"PICTOR_{section}_{match[1]}".upper())
        elif match := re.match(r"  (\w+):", line):
            found.add(f"PICTOR_{match[1]}".upper())
    return found


def check_configuration(report, what, program, arguments, environment):
    done = subprocess.run([program, *arguments, "--check-config"], text=True, capture_output=True, timeout=60,
                          env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"} | environment)
    report.check(f"Pictor takes {what}", (done.returncode, done.stdout + done.stderr if done.returncode else ""),
                 (0, ""))


def check_compose(report, program, folder, tools):
    check_compose_file(report, program, folder, tools, "compose.yaml", {})
    # Compose puts the variable in.
    check_compose_file(report, program, folder, tools, "compose-fleet.yaml",
                       {"REDIS_ADDRESS": "redis://pictor:secret@127.0.0.1:6379"})


def check_compose_file(report, program, folder, tools, name, given):
    """`given`: what the one who starts it sets; not a setting of Pictor."""
    path = CONFIG / name
    done = subprocess.run([tools / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path], text=True,
                          capture_output=True, timeout=120)
    report.check(f"{name} follows the Compose specification",
                 (done.returncode, done.stdout if done.returncode else ""), (0, ""))
    services = load(tools, path)[0]["services"]
    variables = services["pictor"].get("environment", {})
    report.check(f"the variables of {name} are settings", sorted(set(variables) - settings(program)), sorted(given))
    check_configuration(report, "their values", program, [],
                        variables | given | {"PICTOR_DISK_PATH": str(folder / "cache")})
    base = load(tools, CONFIG / "compose.yaml")[0]["services"]
    for service in services.values():
        service = base.get(service.get("extends", {}).get("service"), {}) | service
        report.check(f"no service of {name} has rights",
                     (service["read_only"], service["cap_drop"], service["security_opt"]),
                     (True, ["ALL"], ["no-new-privileges:true"]))


def check_schema(report, program, folder, tools):
    """The schema takes the files that Pictor takes, and refuses a wrong key and a wrong value."""
    wrong = [folder / "key.json5", folder / "value.json5"]
    wrong[0].write_text('{ server: { prot: 1 } }')
    wrong[1].write_text('{ server: { port: 70000 } }')
    for path in [CONFIG / "pictor.json5", CONFIG.parent / "samples/pictor.json5", *wrong]:
        done = subprocess.run([tools / "check-jsonschema", "--schemafile", CONFIG / "pictor.schema.json", path], text=True,
                              capture_output=True, timeout=120)
        report.check(f"the schema and {path.name}", (done.returncode, "" if path in wrong else done.stdout + done.stderr),
                     (1, "") if path in wrong else (0, done.stdout))
        if path not in wrong:
            check_configuration(report, path.name, program, ["--config", str(path), "--disk.path", str(folder / "cache")], {})


def by_name(documents):
    return {(one["kind"], one["metadata"]["name"]): one for one in documents if one and "metadata" in one}


def check_schemas(report, tools, path):
    done = subprocess.run([tools / "kubernetes-validate", "--strict", "-k", VERSION, path], text=True,
                          capture_output=True, timeout=120)
    report.check(f"{path.name} follows the schemas of Kubernetes {VERSION}",
                 (done.returncode, done.stdout + done.stderr if done.returncode else ""), (0, ""))


def check_settings(report, program, folder, documents):
    """The text of the config map that Pictor takes, and the effective settings."""
    text = documents["ConfigMap", "pictor"]["data"]["pictor.json5"]
    for name in ("admin-token", "signing-key"):
        (folder / name).write_text("0123456789abcdef" * 4)
    text = text.replace("/run/secrets/pictor", str(folder)).replace("/var/cache/pictor", str(folder))
    # What a kernel can seal is not a matter of the file.
    text = re.sub(r'("?sandbox"?): "required"', r'\1: "if_possible"', text)
    (folder / "pictor.json5").write_text(text)
    arguments = ["--config", folder / "pictor.json5"]
    check_configuration(report, "pictor.json5 of the config map", program, arguments, {})
    return text, subprocess.check_output([program, *arguments, "--print-config"], text=True, env={"PATH": os.environ["PATH"]})


def check_kubernetes(report, program, folder, tools):
    # The others are of kustomize, of an operator and of a Helm chart: no part of Kubernetes itself.
    for name in ("pictor.yaml", "network.yaml", "autoscaling.yaml"):
        check_schemas(report, tools, CONFIG / "kubernetes" / name)
    listed = load(tools, CONFIG / "kubernetes/kustomization.yaml")[0]["resources"]
    report.check("the kustomization lists them", sorted(listed), ["autoscaling.yaml", "network.yaml", "pictor.yaml"])
    documents = manifests(tools)
    check_references(report, documents, tools)
    text, _ = check_settings(report, program, folder, documents)
    check_times(report, documents, text)


def manifests(tools):
    """The documents of config/kubernetes by kind and name."""
    return by_name(one for path in sorted((CONFIG / "kubernetes").glob("*.yaml")) for one in load(tools, path))


def check_references(report, documents, tools):
    """Names in one document that are declared in another."""
    pod = documents["Deployment", "pictor"]["spec"]["template"]
    container = pod["spec"]["containers"][0]
    labels, ports = pod["metadata"]["labels"], {port["name"] for port in container["ports"]}
    selectors = [documents["Deployment", "pictor"]["spec"]["selector"]["matchLabels"],
                 documents["PodDisruptionBudget", "pictor"]["spec"]["selector"]["matchLabels"],
                 documents["NetworkPolicy", "pictor"]["spec"]["podSelector"]["matchLabels"],
                 *(documents["Service", name]["spec"]["selector"] for name in ("pictor", "pictor-operators"))]
    report.check("selectors match the pods", [one for one in selectors if not one.items() <= labels.items()], [])
    used = {port["targetPort"] for name in ("pictor", "pictor-operators")
            for port in documents["Service", name]["spec"]["ports"]}
    used |= {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")}
    used |= {port["port"] for rule in documents["NetworkPolicy", "pictor"]["spec"]["ingress"] for port in rule["ports"]}
    report.check("ports are the container's", used, ports)
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    report.check("each mount has its volume", mounts, {volume["name"] for volume in pod["spec"]["volumes"]})
    scaler = documents["HorizontalPodAutoscaler", "pictor"]["spec"]
    report.check("the autoscaler scales the deployment", scaler["scaleTargetRef"]["name"], "pictor")
    metric = scaler["metrics"][0]["pods"]["metric"]["name"]
    rule = load(tools, CONFIG / "kubernetes/adapter-rules.yaml")[0]["rules"]["custom"][0]
    known = re.findall(r"^\| `(pictor_\w+)` \| gauge", (CONFIG.parent / "docs/metrics.md").read_text(), re.M)
    report.check("the autoscaler's metric is a gauge of Pictor, and the adapter makes it",
                 (metric in known, rule["seriesQuery"].partition("{")[0]), (True, metric))
    monitor = documents["ServiceMonitor", "pictor"]["spec"]
    service = documents["Service", "pictor-operators"]
    report.check("the monitor finds the operators' service",
                 (monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items(),
                  monitor["endpoints"][0]["port"], service["metadata"]["labels"][monitor["jobLabel"]]),
                 (True, service["spec"]["ports"][0]["name"], "pictor"))


def check_times(report, documents, text):
    """A pod has the time that it needs to stop, and is left before it closes."""
    pod = documents["Deployment", "pictor"]["spec"]["template"]["spec"]
    times = {name: int(seconds) for name, seconds in re.findall(r"(\w+)\"?: \"(\d+)s\"", text)}
    probe = pod["containers"][0]["readinessProbe"]
    report.check("the grace period covers delay, grace time and the last writes",
                 pod["terminationGracePeriodSeconds"] >= times["shutdown_delay"] + times["grace_time"] + 10)
    notice = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    report.check("a draining pod is not ready before it closes", notice <= times["shutdown_delay"])
    limit, = re.findall(r"\blimit\"?: \"(\d+)GiB\"", text)
    report.check("the cache fits its volume", int(limit) < int(pod["volumes"][0]["emptyDir"]["sizeLimit"][:-2]))
