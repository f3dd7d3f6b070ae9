"""ActivateTracingSpan: the context of a row's write goes on in the record's headers."""

import sys

import pytest

from connect_py.api import Header, SourceRecord
from connect_py.data import Struct
from connect_py.data.schema import INT32, INT64, OPTIONAL_STRING, STRING, struct
from connect_py.errors import DataError
from connect_py.transforms.tracing import ActivateTracingSpan, parse_properties

ROW = struct([("id", INT32), ("tracingspancontext", OPTIONAL_STRING)], optional=True)
SOURCE = struct([("connector", STRING), ("db", STRING), ("ts_ms", INT64)])
ENVELOPE = struct([("before", ROW), ("after", ROW), ("source", SOURCE), ("op", STRING), ("ts_ms", INT64)], name="t.Envelope")
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = f"#Tue May 14 12:00:00 UTC 2024\ntraceparent=00-{TRACE}-{SPAN}-01\n"


def event(context):
    value = Struct(ENVELOPE, [None, Struct(ROW, [1, context]), Struct(SOURCE, ["postgresql", "shop", 1715949015123]), "c", 1715949015999])
    return SourceRecord(
        {}, {}, "t", value_schema=ENVELOPE, value=value, headers=[Header("traceparent", "old", STRING), Header("h", "x", STRING)]
    )


def made(**config):
    one = ActivateTracingSpan()
    one.configure({name.replace("_", "."): value for name, value in config.items()})
    return one


@pytest.fixture
def spans():
    pytest.importorskip("opentelemetry.sdk.trace")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return exporter


def test_spans_continue_the_trace_of_the_row_and_headers_carry_it_on(spans):
    changed = made().apply(event(CONTEXT))
    read, written = spans.get_finished_spans()
    assert (read.name, written.name) == ("debezium-read", "db-log-write")
    assert f"{written.context.trace_id:032x}" == TRACE
    assert f"{written.parent.span_id:016x}" == SPAN
    assert written.start_time == 1715949015123000000
    assert written.attributes["db.type"] == "postgresql"
    assert written.attributes["db.instance"] == "shop"
    assert dict(read.attributes) == {"op": "c", "ts_ms": "1715949015999"}
    assert [header.name for header in changed.headers] == ["h", "traceparent"]
    assert changed.headers[1].value == f"00-{TRACE}-{written.context.span_id:016x}-01"


def test_rows_without_a_context_start_a_trace_or_are_left_alone(spans):
    record = event(None)
    assert made(tracing_with_context_field_only="true").apply(record) is record
    assert made(tracing_operation_name="read").apply(record).headers[1].value != "old"
    assert spans.get_finished_spans()[0].name == "read"


def test_without_opentelemetry_a_traced_record_fails_and_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(DataError, match="tracing libraries not available: pip install opentelemetry-sdk"):
        made().apply(event(CONTEXT))


def test_a_text_of_java_properties_is_read_as_java_reads_it():
    text = "# comment\n! another\na=1\n b : two words\nc\\=d=e\\u0041\nlong=one \\\n   two\n\nempty=\n"
    assert parse_properties(text) == {"a": "1", "b": "two words", "c=d": "eA", "long": "one two", "empty": ""}
