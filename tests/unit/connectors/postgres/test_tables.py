"""From a table's structure to its encoder and routes."""

from __future__ import annotations

from connect_py.api import JsonEncoding
from connectors.engine.relational.tables import Table, TableId
from connectors.postgres.config import parse_config
from connectors.postgres.pgoutput import Relation, RelationColumn
from connectors.postgres.stream.opening import is_changed
from connectors.postgres.tables import TableFactory
from connectors.postgres.types.columns import PgColumn

CONFIG = {"topic.prefix": "shop", "database.hostname": "db", "database.user": "u", "database.dbname": "d"}
TABLE = Table(TableId("public", "odd name"), (PgColumn("id", 23, "int4", nullable=False), PgColumn("first name", 25, "text")), ("id",))


def factory(**more: str) -> TableFactory:
    config = CONFIG | {name.replace("_", "."): value for name, value in more.items()}
    return TableFactory(parse_config(config), JsonEncoding(key_schemas=False, value_schemas=False), ())


def test_names_are_adjusted_in_schemas_and_rows_as_the_modes_say() -> None:
    built = factory(schema_name_adjustment_mode="avro", field_name_adjustment_mode="avro").build(TABLE)
    assert built.encoder.value_schema.name == "shop.public.odd_name.Envelope"
    key, value = built.encoder.copy_rows([b"1\tAda\n"], built.route, b"{}", b'"op":"r"}')[0][1:]
    assert (key, value) == (b'{"id":1}', b'{"before":null,"after":{"id":1,"first_name":"Ada"},"source":{},"op":"r"}')


def test_an_equal_structure_needs_no_new_encoder() -> None:
    made = factory()
    built = made.build(TABLE)
    assert made.build(TABLE, built) is built
    wider = Table(TABLE.id, (*TABLE.columns, PgColumn("more", 25, "text")), TABLE.key)
    assert made.build(wider, built) is not built


def test_a_table_without_a_key_has_none_in_its_routes() -> None:
    built = factory().build(Table(TABLE.id, TABLE.columns))
    assert built.route.topic == "shop.public.odd_name"
    assert built.route.key_schema is None


def test_a_column_that_was_not_there_is_a_change_and_one_less_is_none() -> None:
    before = (PgColumn("id", 23, "int4"), PgColumn("v", 25, "text"))

    def relation(*columns: tuple[str, int, int]) -> Relation:
        return Relation(1, "s", "t", tuple(RelationColumn(*column) for column in columns))

    assert not is_changed(relation(("id", 23, -1), ("v", 25, -1)), before)
    assert not is_changed(relation(("v", 25, -1)), before)
    assert is_changed(relation(("id", 23, -1), ("w", 25, -1)), before)
    assert is_changed(relation(("id", 20, -1), ("v", 25, -1)), before)
    assert is_changed(relation(("id", 23, -1), ("v", 25, -1), ("w", 25, -1)), before)
