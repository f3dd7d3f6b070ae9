"""Definitions of properties: parsing, validation and their texts, as Connect's ConfigDef has them."""

from __future__ import annotations

import pickle

import pytest

from connect_py.api.config import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    Password,
    all_of,
    between,
    non_empty,
    non_empty_without_control_characters,
    one_of,
    one_of_ignoring_case,
    parse_value,
    text_of,
)
from connect_py.errors import ConfigError


def errors_of(definition: ConfigDef, config: dict[str, str | None]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in definition.validate(config)}


TASKS = ConfigDef([ConfigKey("tasks.max", ConfigType.INT, 1, validator=between(1))])


def test_a_malformed_number_with_a_range_has_two_errors_as_in_java():
    assert errors_of(TASKS, {"tasks.max": "abc"}) == {
        "tasks.max": [
            "Invalid value abc for configuration tasks.max: Not a number of type INT",
            "Invalid value null for configuration tasks.max: Value must be non-null",
        ]
    }


def test_a_number_out_of_range_names_the_bound():
    assert errors_of(TASKS, {"tasks.max": "0"})["tasks.max"] == ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]


@pytest.mark.parametrize("text", ["2147483648", "-2147483649", "1.5", "1_000", "٣", ""])
def test_only_java_integers_are_ints(text):
    with pytest.raises(ConfigError, match="Not a number of type INT"):
        parse_value("k", text, ConfigType.INT)


def test_a_missing_required_key_is_seen_by_its_validator_as_a_null():
    missing = 'Missing required configuration "name" which has no default value.'
    definition = ConfigDef([ConfigKey("name", validator=non_empty_without_control_characters)])
    assert errors_of(definition, {}) == {"name": [missing]}
    chosen = ConfigDef([ConfigKey("name", validator=one_of("a", "b"))])
    assert errors_of(chosen, {}) == {"name": [missing, "Invalid value null for configuration name: String must be one of: a, b"]}
    with pytest.raises(ConfigError, match="Missing required"):
        definition.parse({})


def test_an_empty_name_shows_two_blanks_like_java():
    definition = ConfigDef([ConfigKey("name", validator=non_empty_without_control_characters)])
    assert errors_of(definition, {"name": ""})["name"] == ["Invalid value  for configuration name: String may not be empty"]
    assert "ASCII chars: 9, 10" in errors_of(definition, {"name": "a\t\nb"})["name"][0]


def test_values_are_trimmed_and_typed():
    assert parse_value("k", " 12 ", ConfigType.LONG) == 12
    assert parse_value("k", " TRUE ", ConfigType.BOOLEAN) is True
    assert parse_value("k", "a , b,,c", ConfigType.LIST) == ["a", "b", "", "c"]
    assert parse_value("k", "", ConfigType.LIST) == []
    assert parse_value("k", " x ", ConfigType.STRING) == "x"
    assert parse_value("k", None, ConfigType.INT) is None
    with pytest.raises(ConfigError, match="Expected value to be either true or false"):
        parse_value("k", "yes", ConfigType.BOOLEAN)


def test_enumerations_list_their_options():
    with pytest.raises(ConfigError, match=r"String must be one of: none, all$"):
        one_of("none", "all")("k", "some")
    with pytest.raises(ConfigError, match=r"\(case insensitive\): REQUIRED, REQUESTED$"):
        one_of_ignoring_case("requested", "required")("k", "maybe")
    one_of_ignoring_case("requested", "required")("k", "Required")


def test_all_of_stops_at_the_first_refusal():
    with pytest.raises(ConfigError, match="non-empty"):
        all_of(non_empty, one_of("a"))("k", "")


def test_a_key_cannot_be_defined_twice_nor_with_a_default_that_its_validator_refuses():
    with pytest.raises(ConfigError, match="defined twice"):
        ConfigDef([ConfigKey("a", default="1"), ConfigKey("a", default="2")])
    with pytest.raises(ConfigError, match="at least 1"):
        ConfigDef([ConfigKey("a", ConfigType.INT, 0, validator=between(1))])


def test_merging_keeps_the_first_definition():
    first = ConfigDef([ConfigKey("a", default="1", group="G")])
    merged = first.merged(ConfigDef([ConfigKey("a", default="2", group="X"), ConfigKey("b", default="3", group="H")]))
    assert [(k.name, k.default) for k in merged.keys.values()] == [("a", "1"), ("b", "3")]
    assert merged.groups() == ["G", "H"]


def test_values_are_shown_as_java_shows_them():
    assert text_of(["a", "b"], ConfigType.LIST) == "a,b"
    assert text_of(True, ConfigType.BOOLEAN) == "true"
    assert text_of(REQUIRED, ConfigType.STRING) is None
    assert text_of(Password("s3cret"), ConfigType.PASSWORD) == "[hidden]"


def test_a_password_has_no_text_form_and_cannot_leave_by_pickle():
    secret = parse_value("database.password", "s3cret", ConfigType.PASSWORD)
    assert secret.reveal() == "s3cret"
    for text in (str(secret), repr(secret), f"{secret}", f"{secret:>20}", str([secret]), str({"p": secret})):
        assert "s3cret" not in text
    with pytest.raises(TypeError):
        pickle.dumps(secret)
    assert secret == Password("s3cret")
    assert secret != Password("other")


def test_a_password_in_an_error_is_hidden():
    definition = ConfigDef([ConfigKey("p", ConfigType.PASSWORD, validator=one_of("never"))])
    assert errors_of(definition, {"p": "s3cret"}) == {"p": ["Invalid value [hidden] for configuration p: String must be one of: never"]}
