"""What the families of types share: a column as the catalog describes it, the options, and the form in which a family answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from connect_py.errors import ConfigError
from connectors.engine.encode.plan import ColumnPlan

#: What `pg_attrdef` does not say: an identity column's value comes from a sequence. The reference shows no default for those.
IDENTITY_DEFAULT = "nextval()"


@dataclass(frozen=True, slots=True)
class BaseType:
    """One step of a domain's chain (`pg_type.typbasetype`, `typtypmod`)."""

    oid: int
    name: str
    typmod: int
    category: str = "b"


@dataclass(frozen=True, slots=True)
class PgColumn:
    """A column as the catalog describes it.

    Attributes:
        type_oid: `pg_attribute.atttypid`; `type_name` is its `pg_type.typname`, `category` its `typtype`.
        typmod: `pg_attribute.atttypmod`, -1 for none.
        nullable: whether the column itself has no NOT NULL.
        default: `pg_get_expr(adbin, adrelid)`; None without, and for generated columns.
        enum_labels: labels in sort order, of the enum or of the enum at the root of a domain.
        base_types: a domain's chain of types, nearest first.
        comment: `col_description`.
        element: the type of the elements of an array, or of a domain over one.
    """

    name: str
    type_oid: int
    type_name: str
    typmod: int = -1
    nullable: bool = True
    default: str | None = None
    category: str = "b"
    enum_labels: tuple[str, ...] = ()
    base_types: tuple[BaseType, ...] = ()
    comment: str | None = None
    element: BaseType | None = None


@dataclass(frozen=True, slots=True)
class ValueOptions:
    """Handling modes of a connector's values.

    Attributes:
        decimal_mode: `decimal.handling.mode`.
        time_mode: `time.precision.mode`.
        binary_mode: `binary.handling.mode`.
        interval_mode: `interval.handling.mode`.
        hstore_mode: `hstore.handling.mode`.
        money_digits: `money.fraction.digits`.
        include_unknown: `include.unknown.datatypes`.
        placeholder: `unavailable.value.placeholder`.
    """

    decimal_mode: str = "precise"
    time_mode: str = "adaptive"
    binary_mode: str = "bytes"
    interval_mode: str = "numeric"
    hstore_mode: str = "json"
    money_digits: int = 2
    include_unknown: bool = False
    placeholder: str = "__debezium_unavailable_value"

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> ValueOptions:
        """Parse a connector's properties.

        Raises:
            ConfigError: a mode is unknown.
        """
        return cls(
            _mode(config, "decimal.handling.mode", "precise", "string", "double"),
            _mode(
                config,
                "time.precision.mode",
                "adaptive",
                "adaptive_time_microseconds",
                "isostring",
                "microseconds",
                "nanoseconds",
                "connect",
            ),
            _mode(config, "binary.handling.mode", "bytes", "base64", "base64-url-safe", "hex"),
            _mode(config, "interval.handling.mode", "numeric", "string"),
            _mode(config, "hstore.handling.mode", "json", "map"),
            _digits(config.get("money.fraction.digits", "")),
            config.get("include.unknown.datatypes", "false").strip().lower() == "true",
            config.get("unavailable.value.placeholder", cls().placeholder),
        )


def _digits(text: str) -> int:
    """Parse `money.fraction.digits`; a text that is no number stands for the default, as in Debezium."""
    return int(text) if text.strip().isdigit() else 2


def _mode(config: Mapping[str, str], name: str, *values: str) -> str:
    """Return one of the values; the first is the default."""
    value = config.get(name, values[0]).strip().lower()
    if value not in values:
        raise ConfigError(f"{name}={value} is not supported; choose one of {', '.join(values)}")
    return value


@dataclass(frozen=True, slots=True)
class RootType:
    """The type whose text form a column has: its own, or that at the end of a domain's chain.

    Attributes:
        name: `pg_type.typname`.
        typmod: the first one given on the way, -1 for none.
        element: the type of an array's elements.
    """

    name: str
    typmod: int
    enum_labels: tuple[str, ...] = ()
    element: BaseType | None = None


#: Makes a column's plan, required and without default; the caller adds both.
Family = Callable[[str, RootType, ValueOptions], ColumnPlan]
