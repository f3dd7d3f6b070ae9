"""The data files of a Delta table, by its log's actions: which of them can hold given keys, and whether rows may be replaced by position.

Pure. An action is one line of a commit in `_delta_log`, parsed (PROTOCOL.md, "Actions"). A version has one `add` of a path at most, so the
path names a file; an `add` and a `remove` of the same path in a commit give it another deletion vector.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from spark_sink.sql.keys import Value
from spark_sink.tables.compaction import to_rewrite
from spark_sink.tables.file_keys import KeyedFile, files_holding

#: What a table of ours may have (PROTOCOL.md, "Valid Feature Names in Table Features") without more being owed to a commit than its
#: files, deletion vectors and constraints, which Delta's writer checks.
_SIMPLE_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "clustering",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    }
)

#: Settings that a commit must regard, as far as they are on.
_NOT_SIMPLE = ("delta.appendOnly", "delta.enableChangeDataFeed", "delta.enableRowTracking")

#: Spark's note of CHAR and VARCHAR in a field's metadata: values are padded and checked where a statement is analysed.
_PADDED = "__CHAR_VARCHAR_TYPE_STRING"

#: Conditions of rows (PROTOCOL.md, "CHECK Constraints" and "Column Invariants").
_CONDITIONS, _INVARIANTS = "delta.constraints.", "delta.invariants"

#: Settings of files' format, and one that gives them other places.
_FORMAT, _RANDOM_PREFIXES = "delta.parquet.", "delta.randomizeFilePrefixes"


#: `DeltaConfigs.CHECKPOINT_INTERVAL`.
_INTERVAL, _DEFAULT_INTERVAL = "delta.checkpointInterval", 10


@dataclass(frozen=True)
class DataFile(KeyedFile):
    """A data file.

    Attributes:
        action: its `add`, as JSON.
        deleted: how many of its rows are.
    """

    action: str
    deleted: int


class LiveFiles:
    """The files of the newest version that is known.

    Attributes:
        version: that version.
        columns: whose bounds are kept.
        table: its identifier, which another table at the same place does not have.
        schema: the table's, as Delta's log has it: Spark's JSON of a struct.
        is_simple: whether a commit may replace rows by their positions with nothing else to regard.
        transactions: the last version of each application identifier (PROTOCOL.md, "Transaction Identifiers").
    """

    def __init__(self, columns: Iterable[str], version: int, actions: Iterable[Mapping[str, Any]]) -> None:
        """Begin with all that a version consists of."""
        self.columns = tuple(columns)
        self._files: dict[str, DataFile] = {}
        self._protocol: Mapping[str, Any] = {}
        self._metadata: Mapping[str, Any] = {}
        self.transactions: dict[str, int] = {}
        self.version = version - 1
        self.follow(actions)

    def follow(self, actions: Iterable[Mapping[str, Any]]) -> None:
        """Take in the next version."""
        added: dict[str, DataFile] = {}
        for action in actions:
            [(kind, content)] = action.items()
            match kind:
                case "add":
                    added[content["path"]] = self._data_file(content)
                case "remove":
                    self._files.pop(content["path"], None)
                case "txn":
                    self.transactions[content["appId"]] = content["version"]
                case "metaData":
                    self._metadata = content
                case "protocol":
                    self._protocol = content
        self._files |= added
        self.version += 1

    def holding(self, keys: Mapping[str, Sequence[Value]], *, are_ends: bool = False) -> dict[str, DataFile]:
        """Return the files, by path, that can hold rows with a key, as `files_holding`."""
        return files_holding(self._files, keys, are_ends=are_ends)

    def to_compact(self, target: int, *, thoroughly: bool = False) -> dict[str, DataFile]:
        """Return the files, by path, to write again, as `to_rewrite`."""
        deleted = {path: file.deleted for path, file in self._files.items()}
        chosen = to_rewrite(self._files, deleted, target, thoroughly=thoroughly)
        return {path: self._files[path] for paths in chosen.values() for path in paths}

    @property
    def is_clustered(self) -> bool:
        """Whether the order of its rows is Delta's to choose."""
        return "clustering" in (self._protocol.get("writerFeatures") or ())

    @property
    def checkpoint_interval(self) -> int:
        """After how many versions Delta writes a checkpoint."""
        settings: Mapping[str, str] = self._metadata.get("configuration") or {}
        return int(settings.get(_INTERVAL, _DEFAULT_INTERVAL))

    @property
    def table(self) -> str:
        return str(self._metadata["id"])

    @property
    def schema(self) -> str:
        return str(self._metadata["schemaString"])

    @property
    def has_plain_writes(self) -> bool:
        """Whether rows go into a file as they are: there are no partitions, and no conditions that Delta's job checks."""
        settings: Mapping[str, str] = self._metadata.get("configuration") or {}
        has_conditions = _INVARIANTS in self.schema or any(name.startswith((_CONDITIONS, _FORMAT)) for name in settings)
        return not (self._metadata.get("partitionColumns") or has_conditions or _is_on(settings, _RANDOM_PREFIXES))

    @property
    def is_simple(self) -> bool:
        settings: Mapping[str, str] = self._metadata.get("configuration") or {}
        features = set(self._protocol.get("writerFeatures") or ())
        return (
            _is_on(settings, "delta.enableDeletionVectors")
            and "deletionVectors" in features <= _SIMPLE_FEATURES
            and not any(_is_on(settings, name) for name in _NOT_SIMPLE)
            and _PADDED not in self.schema
        )

    def _data_file(self, add: Mapping[str, Any]) -> DataFile:
        stats = json.loads(add.get("stats") or "{}", parse_float=Decimal)
        least, greatest = stats.get("minValues") or {}, stats.get("maxValues") or {}
        bounds = {
            column: (least[column], greatest[column])
            for column in self.columns
            if least.get(column) is not None and greatest.get(column) is not None
        }
        deleted = (add.get("deletionVector") or {}).get("cardinality", 0)
        partition = json.dumps(add.get("partitionValues") or {}, sort_keys=True)
        return DataFile(stats.get("numRecords"), add["size"], bounds, json.dumps({"add": add}), deleted, partition=partition)


def _is_on(settings: Mapping[str, str], name: str) -> bool:
    return settings.get(name, "").lower() == "true"
