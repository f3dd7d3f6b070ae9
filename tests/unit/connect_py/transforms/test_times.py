"""TimestampConverter, and patterns of dates as SimpleDateFormat reads and writes them (texts recorded from Java 17)."""

import datetime

import pytest

from connect_py.api import SourceRecord
from connect_py.data import Schema, Struct, Type
from connect_py.data.schema import DATE, INT32, INT64, OPTIONAL_STRING, STRING, TIME, TIMESTAMP, struct
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.date_format import DateFormat
from connect_py.transforms.timestamp_converter import TimestampConverterKey, TimestampConverterValue

MILLIS = 1715949015123  # 2024-05-17 12:30:15.123, a Friday
UTC = datetime.UTC


def made(**config):
    one = TimestampConverterValue()
    one.configure({name.replace("_", "."): value for name, value in config.items()})
    return one


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2024-05-17T12:30:15.123Z"),
        ("EEE, d MMM yy hh:mm a z", "Fri, 17 May 24 12:30 PM UTC"),
        ("EEEE MMMM DDD k K u Z", "Friday May 138 12 0 5 +0000"),
        ("YYYY-'W'ww W F G", "2024-W20 3 3 AD"),
        ("''yyyy''", "'2024'"),
    ],
)
def test_patterns_write_what_java_writes(pattern, text):
    assert DateFormat(pattern).format(MILLIS) == text


@pytest.mark.parametrize(
    "pattern", ["yyyy-MM-dd'T'HH:mm:ss.SSS", "y M d H m s S", "yyyyy LL 'a{0}b' ddd HHH", "yyy{}'%s'SS", "yy MM", "MMM d", ""]
)
@pytest.mark.parametrize("millis", [MILLIS, 0, -1, -62135596800000, 253402300799999, 59_999])
def test_a_pattern_of_plain_numbers_writes_what_its_letters_do_one_by_one(pattern, millis):
    assert DateFormat(pattern).format(millis) == DateFormat(f"{pattern}G").format(millis).removesuffix("AD")


@pytest.mark.parametrize(
    ("pattern", "text", "moment"),
    [
        ("yyyy-MM-dd", "2024-5-7 and more", "2024-05-07T00:00"),
        ("yyyy-MM-dd", "2023-13-40", "2024-02-09T00:00"),
        ("yyyyMMdd", "20240517", "2024-05-17T00:00"),
        ("yyyyMMddHHmmssSSS", "20240517123015123", "2024-05-17T12:30:15.123"),
        ("dd MMM yyyy hh:mm a", "17 may 2024 12:30 AM", "2024-05-17T00:30"),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2024-05-17T12:30:15+02:00", "2024-05-17T10:30:15"),
        ("yyyy-DDD", "2024-138", "2024-05-17T00:00"),
        ("HH:mm", "12:30", "1970-01-01T12:30"),
    ],
)
def test_patterns_read_what_java_reads(pattern, text, moment):
    assert DateFormat(pattern).parse(text) == datetime.datetime.fromisoformat(moment + "+00:00").timestamp() * 1000


@pytest.mark.parametrize(("pattern", "text"), [("yyyy-MM-dd", "2024-05"), ("yyyy-MM-dd", "x"), ("dd MMM", "17 Foo"), ("YYYY", "2024")])
def test_texts_that_do_not_match_fail(pattern, text):
    with pytest.raises(DataError):
        DateFormat(pattern).parse(text)


@pytest.mark.parametrize("pattern", ["foo", "yyyy'"])
def test_patterns_that_mean_nothing_are_refused(pattern):
    with pytest.raises(ConfigError):
        DateFormat(pattern)


@pytest.mark.parametrize(
    ("target", "more", "schema", "value"),
    [
        ("unix", {}, INT64, MILLIS),
        ("unix", {"unix.precision": "seconds"}, INT64, 1715949015),
        ("unix", {"unix.precision": "nanoseconds"}, INT64, 1715949015123000000),
        ("Date", {}, Schema(Type.INT32, name=DATE, version=1), datetime.date(2024, 5, 17)),
        ("Time", {}, Schema(Type.INT32, name=TIME, version=1), datetime.time(12, 30, 15, 123000)),
        ("Timestamp", {}, Schema(Type.INT64, name=TIMESTAMP, version=1), datetime.datetime(2024, 5, 17, 12, 30, 15, 123000, UTC)),
        ("string", {"format": "yyyy/MM/dd HH:mm"}, STRING, "2024/05/17 12:30"),
    ],
)
def test_a_field_takes_every_form(target, more, schema, value):
    source = struct([("at", Schema(Type.INT64, name=TIMESTAMP, version=1)), ("left", STRING)], name="Row")
    record = SourceRecord(
        {}, {}, "t", value_schema=source, value=Struct(source, [datetime.datetime(2024, 5, 17, 12, 30, 15, 123000, UTC), "x"])
    )
    one = TimestampConverterValue()
    one.configure({"field": "at", "target.type": target, **more})
    changed = one.apply(record)
    assert changed.value_schema == struct([("at", schema), ("left", STRING)], name="Row")
    assert changed.value.values == [value, "x"]


def test_whole_values_and_values_without_a_schema():
    to_unix = made(target_type="unix", format="yyyy-MM-dd")
    changed = to_unix.apply(SourceRecord({}, {}, "t", value_schema=OPTIONAL_STRING, value="1970-01-02"))
    assert (changed.value_schema, changed.value) == (Schema(Type.INT64, optional=True), 86_400_000)
    assert to_unix.apply(SourceRecord({}, {}, "t", value_schema=OPTIONAL_STRING)).value is None
    assert to_unix.apply(SourceRecord({}, {}, "t", value="1970-01-02")).value == 86_400_000
    in_field = made(field="at", target_type="Date", unix_precision="seconds")
    assert in_field.apply(SourceRecord({}, {}, "t", value={"at": 86_400, "b": 1})).value == {"at": datetime.date(1970, 1, 2), "b": 1}
    assert in_field.apply(SourceRecord({}, {}, "t", value={"b": 1})).value == {"at": None, "b": 1}
    assert in_field.apply(SourceRecord({}, {}, "t")).value is None
    key = TimestampConverterKey()
    key.configure({"target.type": "Timestamp"})
    assert key.apply(SourceRecord({}, {}, "t", key=0)).key == datetime.datetime(1970, 1, 1, tzinfo=UTC)


def test_units_are_cut_off_towards_zero():
    whole = made(target_type="unix", unix_precision="seconds")
    assert whole.apply(SourceRecord({}, {}, "t", value=datetime.datetime(1969, 12, 31, 23, 59, 58, 500000, UTC))).value == -1


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        (INT32, 5, r"Schema Schema\{INT32\} does not correspond to a known timestamp type format"),
        (None, True, "TimestampConverter does not support class java.lang.Boolean objects as timestamps"),
        (STRING, "2024", "needs its property format to read the text 2024"),
    ],
)
def test_values_that_are_no_times_fail(schema, value, message):
    with pytest.raises(DataError, match=message):
        made(target_type="Date").apply(SourceRecord({}, {}, "t", value_schema=schema, value=value))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"target_type": "x"}, "String must be one of: string, unix, Date, Time, Timestamp"),
        ({"target_type": "string"}, "TimestampConverter requires format option to be specified when using string timestamps"),
        ({"target_type": "string", "format": "foo"}, "requires a SimpleDateFormat-compatible pattern for string timestamps: foo"),
    ],
)
def test_wrong_configurations_are_refused(config, message):
    with pytest.raises(ConfigError, match=message):
        made(**config)
