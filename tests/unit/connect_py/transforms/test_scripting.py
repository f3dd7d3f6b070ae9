"""Filter and ContentBasedRouter: records chosen and routed by CEL."""

import time

import pytest

from connect_py.api import Header, SourceRecord
from connect_py.data import Struct
from connect_py.data.schema import INT32, OPTIONAL_INT64, OPTIONAL_STRING, STRING, decimal_schema, struct
from connect_py.errors import ConfigError, DataError
from connect_py.transforms.cel_condition import MAX_LENGTH, Expression, names_of
from connect_py.transforms.scripting import ContentBasedRouter, Filter, to_cel

ROW = struct([("id", INT32), ("name", OPTIONAL_STRING), ("price", decimal_schema(2, optional=True))], name="t.Value", optional=True)
ENVELOPE = struct([("before", ROW), ("after", ROW), ("op", STRING), ("ts_ms", OPTIONAL_INT64)], name="t.Envelope")
KEY = struct([("id", INT32)])


def event(op="u", before=(1, "old", None), after=(2, "new", None), headers=()):
    rows = [row and Struct(ROW, row) for row in (before, after)]
    return SourceRecord({}, {}, "db.s.t", KEY, Struct(KEY, [2]), ENVELOPE, Struct(ENVELOPE, [*rows, op, 5]), headers=list(headers))


def kept(condition, record=None, **more):
    one = Filter()
    one.configure({"language": "cel", "condition": condition, **{name.replace("_", "."): value for name, value in more.items()}})
    return one.apply(event() if record is None else record) is not None


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("value.op == 'u' && value.before.id == 1", True),
        ("value.op == 'u' && value.before.id == 2", False),
        ("value.before == null || value.before.name != value.after.name", True),
        ("key.id == 2 && topic.startsWith('db.')", True),
        ("topic.matches('^db[.].*[.]t$')", True),
        ("has(value.after.nothing)", False),
        ("valueSchema.name.endsWith('.Envelope') && valueSchema.fields.op.type == 'STRING'", True),
        ("keySchema.fields.id.optional", False),
        ("header.source.value == 'web' && !has(header.other)", True),
        ("[1, 2].exists(x, x == value.after.id)", True),
        ("value.after.name.upperAscii() == 'NEW'", True),
        ("value.after.price == null", True),
    ],
)
def test_conditions_see_the_record_as_debezium_shows_it(condition, expected):
    assert kept(condition, event(headers=[Header("source", "web", STRING)])) is expected


def test_an_expression_names_the_topic_and_null_keeps_it():
    router = ContentBasedRouter()
    router.configure({"language": "cel", "topic.expression": "value.op == 'u' ? topic.split('.')[2] + '_updates' : null"})
    assert router.apply(event()).topic == "t_updates"
    assert router.apply(event(op="c")).topic == "db.s.t"


@pytest.mark.parametrize(("mode", "stays"), [("keep", True), ("drop", False), ("evaluate", True), ("EVALUATE", True)])
def test_what_becomes_of_a_null_value_is_configured(mode, stays):
    tombstone = SourceRecord({}, {}, "t", KEY, Struct(KEY, [2]))
    assert kept("value == null && key.id == 2", tombstone, null_handling_mode=mode) is stays


def test_topics_that_the_regex_does_not_match_are_left_alone():
    assert kept("false", topic_regex="other.*")
    assert not kept("false", topic_regex="db.*")


def test_a_record_that_lacks_what_the_condition_needs_fails():
    with pytest.raises(DataError, match=r"there is no 'nothing'; has\(…\) asks first"):
        kept("value.after.nothing == 1")
    with pytest.raises(DataError, match=r"Value 'u' returned by the expression is not a Boolean: value.op"):
        kept("value.op")
    with pytest.raises(DataError, match=r"Error while evaluating expression 'value.op \+ 1 == 2'"):
        kept("value.op + 1 == 2")


def complaints(kind=Filter, **config):
    given = {name.replace("_", "."): value for name, value in config.items()}
    return [error for found in kind.config_def().validate(given) for error in found.errors]


def test_scripts_are_refused_before_a_connector_exists_and_the_cel_form_is_shown():
    (error,) = complaints(language="jsr223.groovy", condition="value.op == 'u' && value.before.id == 2")
    assert "this worker runs no scripts; set it to cel" in error
    _, error = complaints(language="jsr223.graal.js", condition="value.op === 'u'")
    assert error.endswith("In CEL this is: value.op == 'u'")
    assert complaints(language="cel", condition="value.op == 'u'") == []
    assert complaints(ContentBasedRouter, language="cel", topic_expression="'t'") == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("value.op ==", "is not CEL"),
        ("__import__('os').system('true')", "is not CEL|names __import__|Undefined"),
        ("open('/etc/passwd') != ''", "names open|Undefined|is not CEL"),
        ("secret == 1", "the expression names secret; there are key, value"),
        ("true" + " || true" * MAX_LENGTH, "characters"),
        ("[1].all(a, [1].all(b, [1].all(c, [1].all(d, true))))", "walks lists more than 3 times"),
    ],
)
def test_an_expression_that_is_no_bounded_cel_is_refused(text, why):
    try:
        expression = Expression(text)
    except ConfigError as error:
        assert any(part in str(error) for part in why.split("|"))
    else:
        with pytest.raises(DataError, match=why):  # a function is looked for when it is called, and there is none
            expression.evaluate(event())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("value.op == 'u' && value.before.id == 2", {"op": None, "before": {"id": None}}),
        ("value.before != null && value.before.id == 2", {"before": None}),
        ("value.after.name.size() > 1", {"after": {"name": None}}),
        ("size(value) > 1", None),
        ("value['op'] == 'u'", None),
        ("'value' == topic", {}),
        ("other.value.op == 1 || value.op == 'c'", {"op": None}),
        ("value.op == 'it''s' // value", None),
    ],
)
def test_only_the_fields_that_an_expression_names_are_handed_over(text, names):
    assert names_of(text, "value") == names


@pytest.mark.parametrize(
    ("script", "cel"),
    [
        ("value.op == 'u' && value.before.id == 2", "value.op == 'u' && value.before.id == 2"),
        ("value.op === 'u';", "value.op == 'u'"),
        ("return value.op != 'd'", "value.op != 'd'"),
        ("value.after?.status == 'x'", "(value.after != null && value.after.status == 'x')"),
        ("'u'.equals(value.op)", "value.op == 'u'"),
        ("value.getString('op') == 'u'", "value.op == 'u'"),
        ("value.after.name =~ /^a.*/", "value.after.name.matches('^a.*')"),
        ("value.after.name.length() > 3", "value.after.name.size() > 3"),
    ],
)
def test_common_forms_of_groovy_and_javascript_have_a_cel_form(script, cel):
    assert to_cel(script) == cel
    Expression(cel)


@pytest.mark.parametrize("script", ["a" * 20_000 + "?", "a." * 10_000 + "?", "a?." * 5_000 + "("])
def test_a_long_script_that_is_no_cel_is_refused_at_once(script):
    began = time.process_time()
    with pytest.raises(ConfigError):
        Filter().configure({"language": "cel", "condition": script})
    for key in Filter.config_def().keys.values():
        if key.name == "condition":
            with pytest.raises(ConfigError):
                key.validator(key.name, script)
    assert time.process_time() - began < 2
