"""How plugins are named, and in which versions they can be had (KIP-891)."""
from parity import Run, scenario

CONNECT = "org.apache.kafka.connect."
ROUTER = CONNECT + "transforms.RegexRouter"
JSON = CONNECT + "json.JsonConverter"
SOURCE = {"name": "v", "connector.class": "FileStreamSource", "topic": "t", "file": "/tmp/none"}
STEP = {"transforms": "t", "transforms.t.type": ROUTER, "transforms.t.regex": "a", "transforms.t.replacement": "b"}
GUARD = {**STEP, "transforms.t.predicate": "p", "predicates": "p", "predicates.p.type": "HasHeaderKey", "predicates.p.name": "h"}


def validate(run: Run, label: str, config: dict, *prefixes: str):
    """Value, errors and visibility of the properties in question; what is installed differs from worker to worker."""
    answer = run.call("PUT", "/connector-plugins/FileStreamSource/config/validate", {**SOURCE, **config}).json()
    found = {c["value"]["name"]: [c["value"]["value"], c["value"]["errors"], c["value"]["visible"], (c["definition"] or {}).get("default_value")]
             for c in answer.get("configs", []) if c["value"]["name"].startswith(prefixes)}
    run.out.setdefault("notes", {})[label] = [answer.get("error_count"), answer.get("message"), found]


@scenario
def rest_plugin_versions(run: Run):
    """Aliases, ranges of versions, what is refused and with which words."""
    for name in ("JsonConverter", "Json", "SimpleHeaderConverter", "SimpleHeader", "Simple", "Cast$Value", "Cast", "Value", "RegexRouter", "Regex", "Filter",
                 "HasHeaderKey", "RecordIsTombstone", "Nothing", CONNECT + "transforms.Cast$Key"):
        run.rest(f"definitions of {name}", "GET", f"/connector-plugins/{name}/config")
    for version in ("4.3.1", "9", "bogus", "[1,5)", "[4.3.1]", "latest", ""):
        run.rest(f"version {version}", "GET", f"/connector-plugins/RegexRouter/config?version={version}")
    run.rest("version of nothing", "GET", "/connector-plugins/Nothing/config?version=1")
    ours = ("transforms.", "predicates.")
    for version in ("4.3.1", "9", "[4.0,5.0)", "[1,2)", "[4.0", "[2,1]", "(1)", "latest"):
        validate(run, f"transform {version}", {**STEP, "transforms.t.plugin.version": version}, *ours)
        validate(run, f"predicate {version}", {**GUARD, "predicates.p.plugin.version": version}, *ours)
    for kind in ("RegexRouter", "Regex", "No", JSON, CONNECT + "transforms.Cast"):
        validate(run, f"transform type {kind}", {**STEP, "transforms.t.type": kind}, *ours)
        validate(run, f"transform type {kind} negated", {**STEP, "transforms.t.type": kind, "transforms.t.negate": "true"}, *ours)
    validate(run, "no transform type", {"transforms": "t", "transforms.t.plugin.version": "[1"}, *ours)
    for key in ("key.converter", "header.converter"):
        for kind in ("Json", JSON, "No", "", ROUTER):
            validate(run, f"{key} {kind}", {key: kind}, key)
        validate(run, f"{key} version without class", {f"{key}.plugin.version": "9"}, key)
        validate(run, f"{key} malformed version", {f"{key}.plugin.version": "[9"}, key)
        validate(run, f"{key} version of nothing", {key: "No", f"{key}.plugin.version": "[9"}, key)
    for version in ("4.3.1", "[4,5)", "latest", " 4.3.1 "):
        validate(run, f"connector {version}", {"connector.plugin.version": version}, "connector.")
