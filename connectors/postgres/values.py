"""Columns of PostgreSQL tables as fields of events: the face of `connectors.postgres.types`.

Pure: a plan from a column's description and the options. The text forms are those of sessions with client_encoding UTF8, DateStyle ISO,
TimeZone UTC, IntervalStyle postgres, bytea_output hex and extra_float_digits of at least 1.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.engine.encode.plan import ColumnPlan
from connectors.postgres.types import numbers, temporal, text
from connectors.postgres.types.base import IDENTITY_DEFAULT, BaseType, Family, PgColumn, RootType, ValueOptions
from connectors.postgres.types.defaults import default_of

__all__ = ["IDENTITY_DEFAULT", "BaseType", "PgColumn", "ValueOptions", "column_plan"]

_FAMILIES: dict[str, Family] = {**numbers.FAMILIES, **text.FAMILIES, **temporal.FAMILIES}


def column_plan(column: PgColumn, options: ValueOptions) -> ColumnPlan | None:
    """How a column is read and written.

    Returns:
        The plan, or None for a type that events leave out; the caller warns once.
    """
    root = root_type(column)
    family = text.enum if root.enum_labels else _FAMILIES.get(root.name)
    if family is None:
        return None
    plan = family(column.name, root, options)
    schema = plan.schema.as_optional() if column.nullable else plan.schema
    if column.default is not None and column.default != IDENTITY_DEFAULT and not column.base_types:
        schema = schema.with_default(default_of(column.default, plan, root))
    placeholder = plan.placeholder if plan.schema.type.value in ("string", "bytes") and plan.schema.name != _DECIMAL else "null"
    if placeholder == "null" and not column.nullable:
        placeholder = plan.fallback
    return replace(plan, schema=schema, placeholder=placeholder, missing_in_stream=plan.missing_in_stream and column.nullable)


def root_type(column: PgColumn) -> RootType:
    """The type at the end of a domain's chain, with the first type modifier that is given on the way; else the column's own."""
    steps = [(column.type_name, column.typmod), *((step.name, step.typmod) for step in column.base_types)]
    typmod = next((typmod for _, typmod in steps if typmod != -1), -1)
    return RootType(steps[-1][0], typmod, column.enum_labels)


_DECIMAL = "org.apache.kafka.connect.data.Decimal"
