"""What a Spark catalog holds, and how its tables are changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from spark_sink.routing import TableName
from spark_sink.sql.evolve import Evolution
from spark_sink.tables.base import TableState
from spark_sink.tables.watermark import Watermark
from spark_sink.types.columns import quote
from spark_sink.types.trees import Array, Map, Struct, Type, path_sql, type_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructField


def state_of(fields: Sequence[StructField], watermark: Watermark) -> TableState:
    """A table's state out of its schema as Spark has it."""
    columns = {field.name: type_text(_tree(field.dataType)) for field in fields}
    return TableState(columns, watermark, frozenset(field.name for field in fields if not field.nullable))


def _tree(type_: DataType) -> Type:
    from pyspark.sql.types import ArrayType, MapType, StructType

    match type_:
        case StructType():
            return Struct({field.name: _tree(field.dataType) for field in type_.fields})
        case ArrayType():
            return Array(_tree(type_.elementType))
        case MapType():
            return Map(_tree(type_.keyType), _tree(type_.valueType))
        case _:
            return str(type_.simpleString())


def evolution_sql(table: str, evolution: Evolution) -> Iterator[str]:
    """Statements that change a table, which is quoted already, one for each kind of change and column."""
    if evolution.added:
        columns = ", ".join(f"{path_sql(path)} {type_}" for path, type_ in evolution.added.items())
        yield f"ALTER TABLE {table} ADD COLUMNS ({columns})"
    for name in evolution.relaxed:
        yield f"ALTER TABLE {table} ALTER COLUMN {quote(name)} DROP NOT NULL"
    for path, type_ in evolution.widened.items():
        yield f"ALTER TABLE {table} ALTER COLUMN {path_sql(path)} TYPE {type_}"


def tables_of_catalog(spark: SparkSession, catalog: str) -> list[TableName]:
    """All tables of a catalog, of any format; temporary views are none."""
    found: list[TableName] = []
    for namespace in [row[0] for row in spark.sql(f"SHOW NAMESPACES IN {quote(catalog)}").collect()]:
        parts = tuple(namespace.split("."))
        for row in spark.sql(f"SHOW TABLES IN {'.'.join(quote(part) for part in (catalog, *parts))}").collect():
            if not row["isTemporary"]:
                found.append(TableName((*parts, row["tableName"])))
    return found
