"""Columns of PostgreSQL tables as fields of events: the face of `connectors.postgres.types`.

Pure: a plan from a column's description and the options. The text forms are those of sessions with client_encoding UTF8, DateStyle ISO,
TimeZone UTC, IntervalStyle postgres, bytea_output hex and extra_float_digits of at least 1.
"""

from __future__ import annotations

from dataclasses import replace

from connectors.engine.encode.plan import ColumnPlan
from connectors.postgres.types import bits, geometry, hstore, interval, iso_times, money, numbers, temporal, text, vectors
from connectors.postgres.types.arrays import NEVER, array_of_unknown, array_plan
from connectors.postgres.types.base import IDENTITY_DEFAULT, BaseType, Family, PgColumn, RootType, ValueOptions
from connectors.postgres.types.binary import bytea, unknown
from connectors.postgres.types.defaults import default_of

__all__ = ["IDENTITY_DEFAULT", "BaseType", "PgColumn", "ValueOptions", "column_plan"]

_FAMILIES: dict[str, Family] = {
    **numbers.FAMILIES,
    **text.FAMILIES,
    **temporal.FAMILIES,
    **bits.FAMILIES,
    **money.FAMILIES,
    **interval.FAMILIES,
    **hstore.FAMILIES,
    **geometry.FAMILIES,
    **vectors.FAMILIES,
    "bytea": bytea,
}


def column_plan(column: PgColumn, options: ValueOptions) -> ColumnPlan | None:
    """How a column is read and written.

    Returns:
        The plan, or None for a type that events leave out; the caller warns once.
    """
    root = root_type(column)
    plan = _array(column.name, root, options) if root.element else _scalar(column.name, root, options)
    if plan is None:
        return None
    schema = plan.schema.as_optional() if column.nullable else plan.schema
    if column.default is not None and column.default != IDENTITY_DEFAULT and not column.base_types and not root.element:
        schema = schema.with_default(default_of(column.default, plan, root))
    placeholder = plan.placeholder
    if placeholder == "null" and not column.nullable:
        placeholder = plan.fallback
    return replace(plan, schema=schema, placeholder=placeholder, missing_in_stream=plan.missing_in_stream and column.nullable)


def _scalar(name: str, root: RootType, options: ValueOptions) -> ColumnPlan | None:
    """The plan of a value; of a type that has no form of its own only where unknown types are wanted."""
    if root.enum_labels:
        return text.enum(name, root, options)
    family = (iso_times.FAMILIES.get(root.name) if options.time_mode == "isostring" else None) or _FAMILIES.get(root.name)
    if family is not None:
        return family(name, root, options)
    return unknown(name, geometry.SHAPES.get(root.name, str), options) if options.include_unknown else None


def _array(name: str, root: RootType, options: ValueOptions) -> ColumnPlan | None:
    kind = root.element
    if kind is None or kind.name in NEVER:
        return None
    if kind.name == "bit":
        return bits.bits_array(name, root, options)
    known = kind.category == "e" or (kind.name in _FAMILIES and kind.category != "d")
    element = _scalar(name, RootType(kind.name, root.typmod, root.enum_labels), options) if known or options.include_unknown else None
    if element is None:
        return None
    return array_plan(name, kind.name, element, options) if known else array_of_unknown(name, kind.name, element)


def root_type(column: PgColumn) -> RootType:
    """The type at the end of a domain's chain, with the first type modifier that is given on the way; else the column's own."""
    steps = [(column.type_name, column.typmod), *((step.name, step.typmod) for step in column.base_types)]
    typmod = next((typmod for _, typmod in steps if typmod != -1), -1)
    return RootType(steps[-1][0], typmod, column.enum_labels, column.element)
