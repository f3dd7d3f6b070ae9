"""MySQL's `source` block (`MySqlSourceInfoStructMaker.java`). Pure: bytes from values."""

from __future__ import annotations

from connect_py.converters.json_write import quote
from connect_py.data import Schema
from connect_py.data.schema import INT32, INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING
from connectors.engine.envelope import source_schema


def block_schema(connector: str) -> Schema:
    """Return the block's schema for `mysql` or `mariadb`."""
    return source_schema(
        connector,
        [
            ("table", OPTIONAL_STRING),
            ("server_id", INT64),
            ("gtid", OPTIONAL_STRING),
            ("file", STRING),
            ("pos", INT64),
            ("row", INT32),
            ("thread", OPTIONAL_INT64),
            ("query", OPTIONAL_STRING),
        ],
    )


class SourceBlock:
    """Renders the block of one table.

    Args:
        connector: `mysql` or `mariadb`.
        version: Debezium's version that events show.
        name: `topic.prefix`.
        database: empty where none applies.
        table: None where none applies; names with commas between them for statements about several.
        nulls_as_defaults: as of `JsonEncoding`. Debezium leaves `snapshot` of a streamed event null, which shows as its default.
    """

    def __init__(
        self, connector: str, version: str, name: str, database: str, table: str | None, *, nulls_as_defaults: bool = True
    ) -> None:
        self._streamed = '"false"' if nulls_as_defaults else "null"
        self._start = f'{{"version":{quote(version)},"connector":"{connector}","name":{quote(name)},"ts_ms":'
        self._database = f',"db":{quote(database)},"sequence":null,"ts_us":'
        self._table = f',"table":{"null" if table is None else quote(table)},"server_id":'

    def render(
        self,
        ts_us: int,
        marker: str,
        file: str,
        pos: int,
        *,
        server_id: int = 0,
        gtid: str | None = None,
        row: int = 0,
        thread: int | None = None,
        query: str | None = None,
    ) -> bytes:
        """Return a block.

        Args:
            ts_us: when it happened, microseconds since 1970.
            marker: what `snapshot` shows.
            pos: of the event in the log.
            row: inside the event, from 0.
        """
        head, tail = self.event(ts_us, marker, file, pos, server_id=server_id, gtid=gtid, thread=thread, query=query)
        return b"%b%d%b" % (head, row, tail)

    def event(
        self,
        ts_us: int,
        marker: str,
        file: str,
        pos: int,
        *,
        server_id: int = 0,
        gtid: str | None = None,
        thread: int | None = None,
        query: str | None = None,
    ) -> tuple[bytes, bytes]:
        """Return what the rows of one event share: the text before and after the number of the row."""
        shown = self._streamed if marker == "false" else f'"{marker}"'
        head = (
            f'{self._start}{ts_us // 1000},"snapshot":{shown}{self._database}{ts_us},"ts_ns":{ts_us * 1000}{self._table}{server_id},'
            f'"gtid":{"null" if gtid is None else quote(gtid)},"file":{quote(file)},"pos":{pos},"row":'
        )
        tail = f',"thread":{"null" if thread is None else thread},"query":{"null" if query is None else quote(query)}}}'
        return head.encode(), tail.encode()
