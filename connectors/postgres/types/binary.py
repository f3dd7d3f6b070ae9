"""bytea, bit and bit varying, and columns of unknown types, by `binary.handling.mode`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from connect_py.converters.json_write import quote
from connect_py.data import Schema, Type
from connect_py.data.schema import BOOLEAN, BYTES, STRING
from connectors.engine.encode.plan import ColumnPlan, Unrepresentable
from connectors.engine.encode.values import TEXT_OF_BYTES, base64_of_bytes
from connectors.postgres.types.base import Family, RootType, ValueOptions


def bytea(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of bytea, from `bytea_output` hex to what the mode wants."""
    written = _written(options.binary_mode)
    helper = f"bytea_{options.binary_mode.replace('-', '_')}"
    return ColumnPlan(
        name,
        BYTES if options.binary_mode == "bytes" else STRING,
        lambda text: f'"{written(text)}"',
        f"{helper}($)",
        quoted=True,
        helpers={helper: written},
        placeholder=_placeholder(options),
    )


@cache
def _written(mode: str) -> Callable[[str], str]:
    """Return one function for each mode, since the columns of a table share its name."""
    text_of = TEXT_OF_BYTES[mode]

    def written(text: str) -> str:
        return text_of(bytes_of_hex(text))

    return written


def bytes_of_hex(text: str) -> bytes:
    """Return the bytes of `\\x…`."""
    if not text.startswith("\\x"):
        raise Unrepresentable("a bytea value is not in hex form; the session's bytea_output must be hex")
    return bytes.fromhex(text[2:])


def _placeholder(options: ValueOptions) -> str:
    """Return the placeholder. The reference has none in the base64 modes, and gives the text itself as hex (pg_toasted_types*.json)."""
    match options.binary_mode:
        case "bytes":
            return f'"{base64_of_bytes(placeholder_bytes(options.placeholder))}"'
        case "hex":
            return quote(options.placeholder)
    return "null"


def placeholder_bytes(placeholder: str) -> bytes:
    """Return the octets that `unavailable.value.placeholder` stands for."""
    return bytes.fromhex(placeholder[4:]) if placeholder.startswith("hex:") else placeholder.encode()


def unknown(name: str, text_form: Callable[[str], str], options: ValueOptions) -> ColumnPlan:
    """Make the plan of a type that events leave out unless `include.unknown.datatypes` is set: its text form as binary."""
    text_of = TEXT_OF_BYTES[options.binary_mode]
    return ColumnPlan(
        name,
        BYTES if options.binary_mode == "bytes" else STRING,
        lambda text: f'"{text_of(text_form(text).encode())}"',
        placeholder=_placeholder(options),
    )


#: The length that stands for `bit varying` without one.
UNBOUNDED = 2_147_483_647


def bits(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of bits: bit(1) and varbit(1) are booleans, longer ones bytes."""
    if root.typmod == 1:
        return ColumnPlan(name, BOOLEAN, lambda text: "true" if bytes_of_bits(text) else "false", fallback="false")
    return ColumnPlan(name, bits_schema(root), lambda text: f'"{base64_of_bytes(bytes_of_bits(text))}"')


def bits_schema(root: RootType) -> Schema:
    """Return the schema `io.debezium.data.Bits` with the column's length in bits."""
    length = root.typmod if root.typmod > 0 else UNBOUNDED
    return Schema(Type.BYTES, name="io.debezium.data.Bits", version=1, parameters=(("length", str(length)),))


def bytes_of_bits(text: str) -> bytes:
    """Return the bits as bytes, little-endian, up to the highest bit that is set: `101` → 05, `0` → empty."""
    try:
        value = int(text or "0", 2)
    except ValueError:
        raise Unrepresentable(f"{text!r} is not a text of bits") from None
    return value.to_bytes((value.bit_length() + 7) // 8, "little")


def bits_array(name: str, root: RootType, options: ValueOptions) -> ColumnPlan:
    """Make the plan of bit(n)[]: the reference gives the column the schema of one value and never a value (pg_types_odd_arrays.json)."""
    length = RootType("bit", root.typmod)
    return ColumnPlan(name, BOOLEAN if root.typmod == 1 else bits_schema(length), _no_form)


def _no_form(text: str) -> str:
    raise Unrepresentable("arrays of bit have no form in events")


BITS: dict[str, Family] = {"bit": bits, "varbit": bits}
