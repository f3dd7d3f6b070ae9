"""The product's error texts, found in its source, and the page that says what to do about each.

    python tests/messages.py            whether docs/messages.md has every text, and each group of texts has its part in troubleshooting.md
    python tests/messages.py --write    write docs/messages.md

A text is the first argument of an error that is raised (or made to be raised) and of a warning or an error in a log. Of a text that is put
together, `…` stands for what differs. Where a text belongs is said by `GROUPS`: the first rule whose module and class fit.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("connect_py", "connectors", "offsets", "rest_api", "spark_sink")
INDEX = ROOT / "docs/messages.md"
PAGE = ROOT / "docs/troubleshooting.md"

#: Classes that are no subclass of ConnectError by their name's end, but never leave the module that catches them.
_INTERNAL = {"AssertionError", "NotImplementedError", "KeyError", "IndexError", "StopIteration", "TypeError", "AttributeError"}
#: Tests and the demo start servers by these; a worker does not.
_NOT_OF_A_WORKER = ("connect_py/app/services/", "connect_py/app/demo/", "connect_py/testing")


class Text(NamedTuple):
    """A text with its place: `log` is the class of a line in the log."""

    module: str
    line: int
    kind: str
    text: str


def _pattern(node: ast.expr) -> str | None:
    """Return a text with `…` for what differs; None when nothing is literal."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _pattern(node.left), _pattern(node.right)
        return None if left is None and right is None else f"{left or '…'}{right or '…'}"
    return None


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else node.func.attr if isinstance(node.func, ast.Attribute) else ""


def texts_of(module: str, source: str) -> Iterator[Text]:
    """Yield the texts of a module's source."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = _called(node)
        is_log = (
            isinstance(node.func, ast.Attribute)
            and called in ("error", "warning", "exception", "critical")
            and "log" in ast.unparse(node.func.value).lower()
        )
        if not is_log and (not called.endswith("Error") or called in _INTERNAL):
            continue
        for argument in node.args:
            text = _pattern(argument)
            if text is not None and re.search(r"[A-Za-z]{3}.*\s", text):
                text = re.sub(r"%[-.\d]*[sdrfg]", "…", text) if is_log else text
                yield Text(module, node.lineno, "log" if is_log else called, " ".join(re.sub("…(?:…)+", "…", text).split()))
                break


def texts() -> list[Text]:
    """Return all texts of the product, by module and line."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            module = str(path.relative_to(ROOT))
            if not module.startswith(_NOT_OF_A_WORKER):
                found += sorted(texts_of(module, path.read_text()), key=lambda text: text.line)
    return found


class Rule(NamedTuple):
    """Texts that belong to a group: all three are regular expressions."""

    group: str
    module: str
    kind: str = ""
    text: str = ""


#: The first rule that fits says which heading of troubleshooting.md a text belongs to.
GROUPS = [
    Rule("A defect", "", "log", "by a defect|could not be shown|failed; it goes on with the next"),
    # -- the worker
    Rule("Verify finds differences", "connect_py/app/verify/"),
    Rule("Verify finds differences", "connect_py/app/commands/verify"),
    Rule("Schema history", "connect_py/app/commands/history|offsets/schema_history"),
    Rule("The worker does not start", "connect_py/app/|offsets/local_stores|rest_api/(server|listeners|basic_auth|config)"),
    Rule("Internal topics", "offsets/(config_store|offset_store|own_topic|status_store|topics|keys)|connect_py/kafka/shared_log"),
    Rule("Exactly once", "connect_py/(herder/fencing|task/(exactly_once|transaction_boundary)|kafka/transactions)"),
    Rule("Exactly once", "connect_py/", "", "exactly.once|fence|Source tasks may not produce"),
    Rule("Offsets that you change", "connect_py/herder/offsets"),
    Rule("Offsets that you change", "", "BadRequestError|ConnectError|RestError|ConflictError", "[Oo]ffsets? |Partition objects"),
    Rule("Offsets that you change", "spark_sink/offsets|connectors/engine/stored_offsets|connect_py/kafka/", "", "still has members|table|partition"),
    Rule("A signal is ignored", "connect_py/", "", "[Ss]ignal"),
    Rule("Group and leader", "connect_py/group/|connect_py/herder/(session_key|cluster|applier)|offsets/leader_writer|connect_py/kafka/group_client"),
    Rule("A property is refused", "connect_py/herder/validation|connect_py/(api|config|data|metrics)|connect_py/log", "ConfigError|log|SlowRegex"),
    Rule("Processes of tasks", "connect_py/host/|connect_py/task/(fork_server|main|control)"),
    Rule("Requests", "connect_py/herder/|rest_api/"),
    Rule("Plugins", "connect_py/plugins/|connectors/engine/plugins/|connectors/engine/signal/", "", "package|plug|installed"),
    Rule("Plugins", "connect_py/plugins/"),
    Rule("Secrets and variables", "connect_py/providers/"),
    Rule("Kafka is unavailable", "connect_py/kafka/", "RetriableError|FatalTaskError|log|ConnectError"),
    Rule("A property has no effect", "", "log", "no effect|not known|overridden"),
    # -- records
    Rule("A record is refused", "connect_py/kafka/producer|connect_py/task/(failed_records|dead_letters|topics|chain|source)"),
    Rule("Offsets are not committed", "connect_py/task/(sink|offsets|batch_sink)"),
    Rule("A transform fails on a record", "connect_py/transforms/", "DataError|log|RetriableError|ValueError"),
    Rule("A converter cannot read or write a record", "connect_py/converters/", "DataError|log|RetriableError|ValueError|ConnectError"),
    Rule("A converter cannot read or write a record", "connect_py/data/"),
    # -- PostgreSQL
    Rule("Publication", "connectors/postgres/slot/publication"),
    Rule("Server settings and rights", "connectors/postgres/", "", "wal_level|privilege|may not read|LOGIN"),
    Rule("Replication slot", "connectors/postgres/(slot|preparation|task)", "", "slot|no longer available|stored (offset|position)|cannot go on|discard"),
    Rule("Large transactions", "connectors/postgres/stream/open_transactions"),
    Rule("Connection to PostgreSQL", "connectors/postgres/(server|stream/(feedback|stream))"),
    Rule("Replication slot", "connectors/postgres/slot/"),
    # -- MySQL
    Rule("The binlog cannot be decoded", "connectors/mysql/binlog/|connectors/mysql/server/text_rows"),
    Rule("The binlog cannot be decoded", "connectors/mysql/(stream|server)/", "", "deserializing|decoded|Malformed|reports an incident"),
    Rule("The binlog cannot be decoded", "connectors/mysql/", "Malformed"),
    Rule("Binlog position is gone", "connectors/mysql/", "", "no longer (has|available)|purged|log is read from its beginning"),
    Rule("Schema history", "connectors/mysql/(schema|preparation|stream/(rows|stream))", "", "histor|recovery|structure|internal schema size"),
    Rule("A statement was not understood", "connectors/mysql/(ddl|schema|snapshot/current)"),
    Rule("Binlog settings and rights", "connectors/mysql/server/(locks|queries)|connectors/mysql/(task|stream/stream)", "FatalTaskError|log", "privilege|Grant|binlog|log_bin|GTID_MODE|binary log|BINARY|binlog_format|lock|cannot be read"),
    Rule("Connection to MySQL", "connectors/mysql/server/"),
    # -- MongoDB
    Rule("MongoDB sink", "connectors/mongodb/sink/"),
    Rule("Change streams are missing", "connectors/mongodb/", "", "change streams|replica set|replSet|oplog is empty"),
    Rule("The oplog no longer reaches back", "connectors/mongodb/", "", "no longer"),
    Rule("Change events of MongoDB", "connectors/mongodb/(stream|values|server|field_rules)", "FatalTaskError|Malformed|TooLarge|ValueError|DataError"),
    # -- snapshots and signals
    Rule("A signal is ignored", "connectors/", "", "[Ss]ignal|binlog (file|position)|Binlog|GTID set|log is read by|position .*Nothing was changed|only while the log"),
    Rule("Notifications and heartbeats", "connectors/", "", "notification|heartbeat"),
    Rule("A snapshot cannot continue", "connectors/.*(snapshot|incremental)|connectors/(postgres|mysql|mongodb)/(task|preparation|schema)"),
    Rule("A snapshot cannot continue", "connectors/(engine|mysql|postgres)/", "", "[Ss]napshot|attempt|locked"),
    # -- sinks
    Rule("Spark does not start", "spark_sink/spark/"),
    Rule("Records are gone from Kafka", "spark_sink/read/ranges"),
    Rule("Truncates and order", "spark_sink/", "FatalTaskError", "truncated|ordered|reconciled"),
    Rule("Keys of the table", "spark_sink/", "FatalTaskError", "key|identif"),
    Rule("The table must change", "spark_sink/(sql|write|types|config/layout|tables)", "FatalTaskError|DataError|ValueError", "[Cc]olumn|must change|does not exist|auto-create|partitioned"),
    Rule("A record is refused", "spark_sink/(read|write/batches|sql|routing|types)"),
    Rule("Commits fail", "spark_sink/(tables|task|write|plan|errors|offsets)"),
    Rule("Database sink", "connectors/jdbc/"),
    Rule("File connectors", "connectors/file/"),
    # -- everything else
    Rule("A property is refused", "", "ConfigError|ValueError|Refused|ImportError|NameRule"),
    Rule("A record is refused", "", "DataError|FatalTaskError|log|RetriableError"),
]  # fmt: skip


def group_of(text: Text) -> str | None:
    """Return the heading of troubleshooting.md that a text belongs to; None when no rule fits."""
    for rule in GROUPS:
        if re.search(rule.module, text.module) and re.search(rule.kind, text.kind) and re.search(rule.text, text.text):
            return rule.group
    return None


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def index(found: list[Text]) -> str:
    """Return the page of all texts: by group, in the order of troubleshooting.md, then alphabetically."""
    by_group: dict[str, set[str]] = {}
    for text in found:
        by_group.setdefault(group_of(text) or "?", set()).add(text.text)
    lines = [
        "# Every message",
        "",
        "You have a message, and want to know what to do? Search this page for a part of it that has no names or numbers in it; `…` stands for those.",
        "The heading above it leads to the cause and the remedy. The page is generated from the source by `tests/messages.py`.",
        "",
    ]
    for heading in headings():
        if heading in by_group:
            lines += [f"## {heading}", "", f"[Cause and remedy](troubleshooting.md#{_anchor(heading)})", ""]
            lines += [f"- `{text.replace('`', chr(39))}`" for text in sorted(by_group[heading], key=str.lower)] + [""]
    return "\n".join(lines)


def headings() -> list[str]:
    """Return the headings of troubleshooting.md."""
    return re.findall(r"^##+ (.*)$", PAGE.read_text(), re.M)


def problems(found: list[Text]) -> list[str]:
    """Return what is wrong with the pages for all texts of the product, a line each."""
    known = headings()
    wrong = [f"{text.module}:{text.line}: no rule of GROUPS fits: {text.text}" for text in found if group_of(text) is None]
    wrong += [f"docs/troubleshooting.md has no heading {rule.group!r}" for rule in GROUPS if rule.group not in known]
    if not wrong and (not INDEX.exists() or INDEX.read_text() != index(found)):
        old = INDEX.read_text() if INDEX.exists() else ""
        new = [text for text in found if f"`{text.text.replace('`', chr(39))}`" not in old]
        wrong += [f"{text.module}:{text.line}: docs/messages.md lacks: {text.text}" for text in new]
        wrong.append("docs/messages.md is not what the source says: run `python tests/messages.py --write` and read the difference")
    return wrong


def main(arguments: list[str]) -> int:
    """Write the page, or print what is wrong with it; returns the exit code."""
    if arguments == ["--write"]:
        INDEX.write_text(index(texts()))
    wrong = problems(texts())
    print("\n".join(wrong) if wrong else "Messages: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
