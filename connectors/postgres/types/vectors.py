"""pgvector's types (postgres.md §14)."""

from __future__ import annotations

import re

from connect_py.data.java_text import double_text, float_text
from connect_py.data.schema import FLOAT32, FLOAT64, INT16, array, map_of, struct
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions

DOUBLE_VECTOR = array(FLOAT64, name="io.debezium.data.DoubleVector", version=1)
FLOAT_VECTOR = array(FLOAT32, name="io.debezium.data.FloatVector", version=1)
SPARSE_VECTOR = struct(
    [("dimensions", INT16), ("vector", map_of(INT16, FLOAT64))],
    name="io.debezium.data.SparseDoubleVector",
    version=1,
    doc="Sparse double vector",
)
_SPARSE = re.compile(r"\{([^{}]*)\}/(\d+)").fullmatch


def vector(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`[1,2.5]` as doubles."""
    return ColumnPlan(name, DOUBLE_VECTOR, lambda text: f"[{','.join(double_text(float(part)) for part in _items(text))}]", fallback="[]")


def halfvec(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`[1,2.5]` as floats."""
    return ColumnPlan(name, FLOAT_VECTOR, lambda text: f"[{','.join(float_text(float(part)) for part in _items(text))}]", fallback="[]")


def sparsevec(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """`{1:1.5,3:2}/5`."""
    return ColumnPlan(name, SPARSE_VECTOR, _sparse_object, fallback='{"dimensions":0,"vector":[]}')


def _items(text: str) -> list[str]:
    if text[:1] != "[" or text[-1:] != "]":
        raise Unrepresentable(f"{text!r} is not a vector")
    return [part for part in text[1:-1].split(",") if part]


def _sparse_object(text: str) -> str:
    """A map whose keys are no strings is an array of pairs in JSON (JsonConverter.java)."""
    found = _SPARSE(text)
    if found is None:
        raise Unrepresentable(f"{text!r} is not a sparse vector")
    entries = (entry.split(":") for entry in found[1].split(",") if entry)
    pairs = ",".join(f"[{int(index)},{double_text(float(value))}]" for index, value in entries)
    return f'{{"dimensions":{int(found[2])},"vector":[{pairs}]}}'


FAMILIES: dict[str, Family] = {"vector": vector, "halfvec": halfvec, "sparsevec": sparsevec}
