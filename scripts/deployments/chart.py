"""The check of check-deployments for config/helm: Helm's own engine renders the chart, which is compared with
config/kubernetes, so that the two cannot differ."""

import json
import subprocess

from deployments.files import CONFIG, by_name, check_references, check_schemas, check_settings, check_times, manifests

RENDERER = """
import helm_python as helm, json, sys, yaml
path, name, values = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
try:
    chart = helm.Chart.load(path)
    chart.validate_schema(values)
    files = chart.render(values, name=name, namespace="images")
except helm.HelmValuesError:
    files = {"refused.yaml": "refused: true"}
found = [one for file, text in files.items() if file.endswith(".yaml") for one in yaml.safe_load_all(text) if one]
print(json.dumps([found, helm.lint(path, values, strict=True)["errors"]]))
"""
ON = {part: {"enabled": True} for part in ("autoscaling", "ingress", "serviceMonitor")}
#: Labels and annotations that releases have, and manifests have not.
OF_RELEASES = {"app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart",
               "checksum/settings"}


def render(tools, values, name="pictor"):
    """The rendered documents, and what Helm's linter says."""
    return json.loads(subprocess.check_output([tools / "python", "-c", RENDERER, CONFIG / "helm", name, json.dumps(values)],
                                              text=True, timeout=120))


def plain(value):
    """Without what differs in each release, and without what is empty then."""
    if isinstance(value, dict):
        kept = {key: plain(one) for key, one in value.items() if key not in OF_RELEASES | {"image", "imagePullPolicy"}}
        return {key: one for key, one in kept.items() if not (key == "annotations" and one == {})}
    return [plain(one) for one in value] if isinstance(value, list) else value


def check_helm(report, program, folder, tools):
    wanted = {key: plain(one) for key, one in manifests(tools).items()}
    # Kubernetes and Pictor read their text: compared below.
    text = wanted["ConfigMap", "pictor"].pop("data")
    renderings = {"defaults": {}, "all": ON, "volumes": {"persistence": {"enabled": True}, **ON}}
    for what, values in renderings.items():
        found, errors = render(tools, values)
        report.check(f"Helm's linter finds no error with {what}", errors, [])
        path = folder / f"{what}.yaml"
        # JSON is YAML. The monitor is an operator's, no part of Kubernetes itself.
        path.write_text("\n---\n".join(json.dumps(one) for one in found if one["kind"] != "ServiceMonitor"))
        check_schemas(report, tools, path)
        documents = by_name(found)
        settings = check_settings(report, program, folder, documents)
        if what != "volumes":
            check_times(report, documents, settings[0])
        if what == "all":
            check_references(report, documents, tools)
            before = {("ConfigMap", "pictor"): {"data": text}}
            others = check_settings(report, program, folder, before)
            report.check("its settings are those of config/kubernetes",
                         set(settings[1].split("\n")) ^ set(others[1].split("\n")), set())
        compare(report, what, {key: plain(one) for key, one in documents.items()}, wanted)
    check_values(report, tools)


def compare(report, what, found, wanted):
    found["ConfigMap", "pictor"].pop("data")
    wanted = dict(wanted)
    if what == "volumes":
        wanted = {key: one for key, one in wanted.items() if key[0] != "Deployment"}
        pods = found.pop(("StatefulSet", "pictor"))["spec"]
        report.check("each pod has a volume of its own, and no other place for the cache",
                     ([one["metadata"]["name"] for one in pods["volumeClaimTemplates"]],
                      [one["name"] for one in pods["template"]["spec"]["volumes"]],
                      pods["template"]["spec"]["containers"][0]["resources"]["limits"]),
                     (["cache"], ["configuration", "secrets"], {"memory": "2Gi"}))
        scaler = found["HorizontalPodAutoscaler", "pictor"]["spec"]["scaleTargetRef"]
        report.check("the autoscaler scales them", scaler.pop("kind"), "StatefulSet")
        scaler["kind"] = "Deployment"
    elif what == "defaults":
        report.check("two replicas, unless a scaler sets them", found["Deployment", "pictor"]["spec"].pop("replicas"), 2)
        report.check("what may not fit a cluster is off", set(wanted) - set(found),
                     {(kind, "pictor") for kind in ("HorizontalPodAutoscaler", "Ingress", "ServiceMonitor")})
        wanted = {key: one for key, one in wanted.items() if key in found}
    for key in sorted(set(found) | set(wanted)):
        report.check(f"{key[0]} {key[1]} with {what} is that of config/kubernetes", found.get(key), wanted.get(key))


def check_values(report, tools):
    for wrong in ({"replicas": "two"}, {"setings": {}}, {"settings": {"server": {"shutdown_delay": "soon"}}},
                  {"cache": {"size": "5Ti"}}, {"image": {"digest": "latest"}}):
        report.check(f"refused: {wrong}", render(tools, wrong)[0], [{"refused": True}])
    values = {"resources": {"requests": {"cpu": "1500m"}}, "image": {"digest": "sha256:" + "0" * 64}, "cache": {"size": "50Gi"},
              "settings": {"server": {"shutdown_delay": "1m", "workers": 3}}, "secret": {"existingSecret": "mine", "adminTokenKey": ""}}
    documents = by_name(render(tools, values, "images")[0])
    settings = json.loads(documents["ConfigMap", "images-pictor"]["data"]["pictor.json5"])
    pod = documents["Deployment", "images-pictor"]["spec"]["template"]["spec"]
    report.check("settings follow from values, unless they are set",
                 (settings["imaging"]["workers"], settings["server"]["workers"], settings["disk"]["limit"], "admin" in settings),
                 (2, 3, "45GiB", False))
    report.check("the pod follows from values",
                 (pod["terminationGracePeriodSeconds"], pod["containers"][0]["image"], pod["volumes"][2]["secret"]["secretName"]),
                 (95, "registry.example.com/pictor@sha256:" + "0" * 64, "mine"))
    report.check("every object is named for its release", {name.partition("-operators")[0] for _, name in documents},
                 {"images-pictor"})
