"""Check that a plugin's class keeps the contract of its kind, and that records, values and offsets are what the contract says.

Of a class: name, version, properties, and what its methods do.
"""

from __future__ import annotations

import copy
import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from connect_py.api import ConfigDef, ConfigValue, Connector, SinkRecord, SourceRecord
from connect_py.api.provider import ConfigProvider
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, DECIMAL, TIME, TIMESTAMP
from connect_py.errors import ConfigError, ConnectError, DataError

#: Bytes that no format of records begins with.
GARBAGE = b"\xff\xfe{not data\x00"

AnyRecord = SourceRecord | SinkRecord


def check_plugin(plugin: type[Any]) -> None:
    """What holds for a plugin of any kind: a Java class name, a version, properties that can be shown and checked.

    Raises:
        AssertionError: with the first rule that is broken.
    """
    name = getattr(plugin, "java_name", None)
    assert isinstance(name, str) and "." in name, (
        f"{plugin.__name__}.java_name is {name!r}; it must be a full class name, as Java writes it"
    )
    version = getattr(plugin, "version", None)
    assert version is None or isinstance(version, str), f"{name}: version is a {type(version).__name__}, not a str"
    if issubclass(plugin, ConfigProvider):
        return
    definition = plugin.config_def()
    assert isinstance(definition, ConfigDef), f"{name}: config_def() gave a {type(definition).__name__}, not a ConfigDef"
    for key in definition.keys.values():
        if not key.required:
            key.parse(key.default)
    if issubclass(plugin, Connector):
        task_name = getattr(plugin, "java_task_name", None)
        assert isinstance(task_name, str) and task_name, f"{name}: java_task_name is missing; task configurations show it as task.class"
        values = plugin().validate({})
        assert all(isinstance(value, ConfigValue) for value in values), f"{name}: validate() must give ConfigValues"
        unknown = {value.name for value in values} - set(definition.keys)
        assert not unknown, f"{name}: validate() speaks of properties that config_def() does not have: {sorted(unknown)}"


def check_transform(
    plugin: type[Any], config: Mapping[str, str], records: Iterable[AnyRecord], *, broken: Mapping[str, str] | None = None
) -> list[AnyRecord | None]:
    """Configure a transform and apply it to records, each twice, as the runtime does after a RetriableError.

    Args:
        config: properties without prefix.
        broken: properties that it must refuse with a ConfigError.

    Returns:
        What it made of each record: a record of the same class, or None for one that it drops.

    Raises:
        AssertionError: a record was changed in place, or the second time gave something else, or a class is wrong.
        ConnectError: as the transform raises it.
    """
    made = _configured(plugin, config, broken)
    results: list[AnyRecord | None] = []
    for record in records:
        before = copy.deepcopy(record)
        first, second = made.apply(record), made.apply(record)
        assert record == before, f"{plugin.java_name} changed a record in place; give a new one (dataclasses.replace): {before}"
        assert first == second, f"{plugin.java_name} made two different records of the same one: {first} and {second}"
        assert first is None or type(first) is type(record), (
            f"{plugin.java_name} made a {type(first).__name__} of a {type(record).__name__}"
        )
        results.append(first)
    made.close()
    return results


def check_predicate(
    plugin: type[Any], config: Mapping[str, str], records: Iterable[AnyRecord], *, broken: Mapping[str, str] | None = None
) -> list[bool]:
    """Configure a predicate and ask it about records; as `check_transform`."""
    made = _configured(plugin, config, broken)
    results: list[bool] = []
    for record in records:
        before = copy.deepcopy(record)
        answer = made.test(record)
        assert isinstance(answer, bool), f"{plugin.java_name}.test gave {answer!r}, not True or False"
        assert record == before, f"{plugin.java_name} changed a record"
        results.append(answer)
    made.close()
    return results


def check_converter(
    plugin: type[Any],
    config: Mapping[str, str],
    samples: Iterable[tuple[Schema | None, Any]],
    *,
    broken: Mapping[str, str] | None = None,
    keeps_schemas: bool = True,
) -> None:
    """Serialise samples and read them back, as keys and as values.

    Args:
        samples: (schema, value) pairs that the format can hold without loss.
        keeps_schemas: whether reading gives the schema back too.

    Raises:
        AssertionError: something was lost, or a null did not stay one, or garbage raised anything but a DataError.
    """
    check_plugin(plugin)
    samples = list(samples)
    for is_key in (True, False):
        made = plugin()
        made.configure(config, is_key=is_key)
        _round_trips(plugin, samples, made.from_connect_data, made.to_connect_data, keeps_schemas)
    _refuses(lambda given: plugin().configure(given, is_key=False), plugin, broken)


def check_header_converter(
    plugin: type[Any],
    config: Mapping[str, str],
    samples: Iterable[tuple[Schema | None, Any]],
    *,
    broken: Mapping[str, str] | None = None,
    keeps_schemas: bool = True,
) -> None:
    """As `check_converter`, for headers."""
    made = _configured(plugin, config, broken)
    _round_trips(
        plugin,
        list(samples),
        lambda topic, schema, value: made.from_connect_header(topic, "h", schema, value),
        lambda topic, data: made.to_connect_header(topic, "h", data),
        keeps_schemas,
    )


def check_provider(plugin: type[ConfigProvider], parameters: Mapping[str, str], path: str, expected: Mapping[str, str]) -> None:
    """Configure a config provider and have it look up keys, one of which is not there.

    Raises:
        AssertionError: it gave other values, or made one up, or raised because one is missing.
    """
    check_plugin(plugin)
    made = plugin()
    made.configure(parameters)
    missing = "no.such.key.at.all"
    try:
        found = made.get(path, [*expected, missing])
    except ConnectError as error:
        raise AssertionError(f"{plugin.java_name} must leave out a key that is not there, not raise {type(error).__name__}") from error
    assert dict(found.values) == dict(expected), (
        f"{plugin.java_name} gave the keys {sorted(found.values)}, not {sorted(expected)} as expected"
    )
    assert all(isinstance(value, str) for value in found.values.values()), f"{plugin.java_name} gave values that are no str"
    made.close()


def _configured(plugin: type[Any], config: Mapping[str, str], broken: Mapping[str, str] | None) -> Any:
    check_plugin(plugin)
    _refuses(lambda given: plugin().configure(given), plugin, broken)
    made = plugin()
    made.configure(config)
    return made


def _refuses(configure: Callable[[Mapping[str, str]], object], plugin: type[Any], broken: Mapping[str, str] | None) -> None:
    if broken is None:
        return
    try:
        configure(broken)
    except ConfigError:
        return
    raise AssertionError(f"{plugin.java_name} takes properties that it should refuse with a ConfigError: {dict(broken)}")


def _round_trips(
    plugin: type[Any],
    samples: Sequence[tuple[Schema | None, Any]],
    write: Callable[[str, Schema | None, Any], bytes | None],
    read: Callable[[str, bytes | None], tuple[Schema | None, Any]],
    keeps_schemas: bool,
) -> None:
    for schema, value in samples:
        data = write("topic", schema, value)
        assert data is None or isinstance(data, bytes), f"{plugin.java_name} wrote a {type(data).__name__}, not bytes"
        found_schema, found = read("topic", data)
        assert found == value, f"{plugin.java_name} wrote {value!r} and read {found!r}"
        if keeps_schemas:
            assert found_schema == schema, f"{plugin.java_name} wrote {schema} and read {found_schema}"
    assert read("topic", None)[1] is None, f"{plugin.java_name} made something of a null"
    try:
        read("topic", GARBAGE)
    except DataError:
        pass
    except Exception as error:
        raise AssertionError(
            f"{plugin.java_name} raised {error!r} for bytes that are no data; errors.tolerance needs a DataError"
        ) from error


_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}

_PYTHON: dict[Type, type] = {
    Type.FLOAT32: float,
    Type.FLOAT64: float,
    Type.STRING: str,
    Type.BYTES: bytes,
    Type.ARRAY: list,
    Type.MAP: dict,
    Type.STRUCT: Struct,
}

_LOGICAL: dict[str, type] = {DECIMAL: decimal.Decimal, DATE: datetime.date, TIME: datetime.time, TIMESTAMP: datetime.datetime}

#: What the offsets topic can hold (`OffsetUtils.validateFormat`).
_PRIMITIVES = (bool, int, float, str, type(None))


def check_source_record(record: SourceRecord) -> None:
    """A record that a source may give. Raises AssertionError with the first rule that it breaks."""
    assert isinstance(record, SourceRecord), f"poll gave a {type(record).__name__}, not a SourceRecord"
    assert record.topic, f"a record has no topic: {record}"
    _check_flat(record.source_partition, "source partition")
    assert record.source_partition, "a source partition is empty: it could not be told from another connector's"
    _check_flat(record.source_offset, "source offset")
    assert record.timestamp is None or record.timestamp >= -1, f"a timestamp is before 1970: {record.timestamp}"
    assert record.partition is None or record.partition >= 0, f"a Kafka partition is negative: {record.partition}"
    check_value(record.key_schema, record.key, "key")
    check_value(record.value_schema, record.value, "value")
    for header in record.headers:
        check_value(header.schema, header.value, f"header {header.name}")


def check_value(schema: Schema | None, value: Any, where: str = "value") -> None:
    """A value that its schema allows, all parts included (`ConnectSchema.validateValue`); without a schema anything is allowed.

    Raises:
        AssertionError: it does not fit; the text says where.
    """
    if schema is None:
        return
    if value is None:
        assert schema.optional or schema.default is not None, f"{where} is null, but its schema is not optional"
        return
    wanted = _LOGICAL.get(schema.name or "")
    if wanted is not None:
        assert isinstance(value, wanted), f"{where} is a {type(value).__name__}; {schema.name} wants a {wanted.__name__}"
    elif schema.type in _BITS:
        assert isinstance(value, int) and not isinstance(value, bool), f"{where} is a {type(value).__name__}, not an int"
        assert -(2 ** (_BITS[schema.type] - 1)) <= value < 2 ** (_BITS[schema.type] - 1), f"{where}: {value} is no {schema.type.value}"
    elif schema.type is Type.BOOLEAN:
        assert isinstance(value, bool), f"{where} is a {type(value).__name__}, not a bool"
    else:
        python = _PYTHON[schema.type]
        assert isinstance(value, python), f"{where} is a {type(value).__name__}; {schema.type.value} wants a {python.__name__}"
        _check_parts(schema, value, where)


def _check_parts(schema: Schema, value: Any, where: str) -> None:
    if schema.type is Type.STRUCT:
        assert value.schema == schema, f"{where} is a Struct of another schema than the one beside it"
        for field, part in zip(schema.fields, value.values, strict=True):
            check_value(field.schema, part, f"{where}.{field.name}")
    elif schema.type is Type.ARRAY:
        for number, part in enumerate(value):
            check_value(schema.value_schema, part, f"{where}[{number}]")
    elif schema.type is Type.MAP:
        for key, part in value.items():
            check_value(schema.key_schema, key, f"a key of {where}")
            check_value(schema.value_schema, part, f"{where}[{key!r}]")


def _check_flat(offsets: Any, what: str) -> None:
    assert isinstance(offsets, Mapping), f"a {what} is a {type(offsets).__name__}, not a mapping"
    for key, value in offsets.items():
        assert isinstance(key, str), f"a {what} has the key {key!r}; keys are strings"
        assert isinstance(value, _PRIMITIVES), (
            f"{key} of a {what} is a {type(value).__name__}; only bool, int, float, str and None are kept"
        )
