"""bit and bit varying (postgres.md §14)."""

from __future__ import annotations

from connect_py.data import Schema, Type
from connect_py.data.schema import BOOLEAN
from connectors.engine.encode.numbers import base64_of_bytes
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.postgres.types.base import Family, RootType, ValueOptions

#: The length that stands for `bit varying` without one.
UNBOUNDED = 2_147_483_647


def bits(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """bit(1) and varbit(1) are booleans, longer ones bytes."""
    if root.typmod == 1:
        return ColumnPlan(name, BOOLEAN, lambda text: "true" if bytes_of_bits(text) else "false", fallback="false")
    return ColumnPlan(name, bits_schema(root), lambda text: f'"{base64_of_bytes(bytes_of_bits(text))}"')


def bits_schema(root: RootType) -> Schema:
    """`io.debezium.data.Bits` with the column's length in bits."""
    length = root.typmod if root.typmod > 0 else UNBOUNDED
    return Schema(Type.BYTES, name="io.debezium.data.Bits", version=1, parameters=(("length", str(length)),))


def bytes_of_bits(text: str) -> bytes:
    """Little-endian, up to the highest bit that is set: `101` → 05, `0` → empty."""
    try:
        value = int(text or "0", 2)
    except ValueError:
        raise Unrepresentable(f"{text!r} is not a text of bits") from None
    return value.to_bytes((value.bit_length() + 7) // 8, "little")


def bits_array(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """bit(n)[]: the reference gives the column the schema of one value and never a value (pg_types_odd_arrays.json)."""
    length = RootType("bit", root.typmod)
    return ColumnPlan(name, BOOLEAN if root.typmod == 1 else bits_schema(length), _no_form)


def _no_form(text: str) -> str:
    raise Unrepresentable("arrays of bit have no form in events")


FAMILIES: dict[str, Family] = {"bit": bits, "varbit": bits}
