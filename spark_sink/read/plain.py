"""JSON with schemas, and no transforms: cut in the JVM, by the bytes that records begin with (`spark_sink.read.schema_prefix`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_sink.read.formats import Fingerprint
from spark_sink.read.schema_prefix import Heads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

_NOTHING_WRONG = "CAST(NULL AS STRING) problem"


class PlainRecords:
    """`spark_sink.read.formats.RecordFormat`."""

    needs_headers = False
    peeks = True

    def __init__(self, *, numeric_decimals: bool = False) -> None:
        self._heads = Heads()
        self.numeric_decimals = numeric_decimals

    def rows(self, kafka: DataFrame) -> DataFrame:
        """See `RecordFormat.rows`."""
        heads, payloads = self._heads.split()
        if "headers" in kafka.columns:
            heads, payloads = [*heads, "headers"], [*payloads, "headers"]
        return kafka.selectExpr(*heads).selectExpr(*payloads, _NOTHING_WRONG)

    def whole(self, kafka: DataFrame) -> DataFrame:
        """See `RecordFormat.whole`."""
        return kafka.selectExpr(*Heads().split()[0], "CAST(NULL AS STRING) routed", _NOTHING_WRONG)

    def learn(self, fingerprint: Fingerprint, record: Row | None) -> None:
        """See `RecordFormat.learn`."""
        self._heads.learn(fingerprint, record)

    def counted(self, records: Mapping[Fingerprint, int]) -> None:
        """See `RecordFormat.counted`."""
        self._heads.counted(records)
