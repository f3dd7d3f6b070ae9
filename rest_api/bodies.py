"""Bodies of requests: models that FastAPI checks and describes. A mistake raises BadRequestError with a sentence; pydantic lets it pass."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Body
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from connect_py.api.storage import TargetState
from connect_py.errors import BadRequestError
from connect_py.herder.base import OffsetEntry
from connect_py.log.levels import LEVELS
from rest_api.compat.jaxrs import trim
from rest_api.models import CONFIG_EXAMPLE

_CONFIG_SCHEMA = {
    "type": "object",
    "description": "Properties; numbers and booleans are kept as their text.",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
    "examples": [CONFIG_EXAMPLE],
}
_LEVEL_SCHEMA = {
    "type": "object",
    "properties": {"level": {"type": "string", "enum": list(LEVELS)}},
    "required": ["level"],
    "examples": [{"level": "DEBUG"}],
}

#: initial_state of KIP-980, by its texts.
_INITIAL_STATES = {"RUNNING": TargetState.STARTED, "PAUSED": TargetState.PAUSED, "STOPPED": TargetState.STOPPED}

#: Leaves room for the longest path below a connector in what `compat/jaxrs.py` takes for a request's line.
_MAX_NAME = 4096


def described(value: Any) -> str:
    """Return what a parsed value is, for a sentence."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a text or number"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return "a number"


def config_map(value: Any, what: str = "The request's body") -> dict[str, str | None]:
    """Check a flat configuration: texts and nulls; numbers and booleans become their text. Raises BadRequestError."""
    if not isinstance(value, dict):
        raise BadRequestError(f"{what} must be a JSON object of property names and values; it is {described(value)}.")
    return {name: item if item is None or isinstance(item, str) else _config_text(name, item, what) for name, item in value.items()}


def _config_text(name: str, value: Any, what: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    raise BadRequestError(f'{what} holds {described(value)} under "{name}"; a property\'s value is a text, a number or a boolean.')


_Texts = dict[str, str | None]
Config = Annotated[_Texts, Body(), BeforeValidator(config_map), WithJsonSchema(_CONFIG_SCHEMA)]
Changes = Annotated[
    _Texts | None, Body(), BeforeValidator(lambda value: None if value is None else config_map(value)), WithJsonSchema(_CONFIG_SCHEMA)
]
SetLevel = Annotated[_Texts, Body(), BeforeValidator(config_map), WithJsonSchema(_LEVEL_SCHEMA)]


class _Object(BaseModel):
    """An object without other fields than the known ones. A field that is missing is null, as in the reference."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _has_known_fields(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise BadRequestError(f"The request's body must be a JSON object; it is {described(value)}.")
        known = [field.alias or name for name, field in cls.model_fields.items()]
        for name in value:
            if name not in known:
                raise BadRequestError(f'Unrecognized field "{name}"; known fields are: {", ".join(known)}.')
        return dict.fromkeys(known) | value


def _checked(is_right: Callable[[Any], bool], text: str) -> BeforeValidator:
    """Return what refuses, with a text, a value that is not right."""

    def check(value: Any) -> Any:
        if not is_right(value):
            raise BadRequestError(text)
        return value

    return BeforeValidator(check)


def _connector_name(given: Any) -> str:
    name = trim(("true" if given else "false") if isinstance(given, bool) else str(given or ""))
    if name in (".", ".."):
        raise BadRequestError(f"A connector cannot be called {name}: no path leads to it. Choose another name.")
    if len(quote(name)) > _MAX_NAME:
        raise BadRequestError(f"The connector's name is too long for its address: it may take {_MAX_NAME} characters, percent-encoded.")
    return name


def _initial_state(value: Any) -> TargetState | None:
    if value is None:
        return None
    if not isinstance(value, str) or value.upper() not in _INITIAL_STATES:
        raise BadRequestError(f'"initial_state" must be one of {", ".join(_INITIAL_STATES)}; it is {value}.')
    return _INITIAL_STATES[value.upper()]


class CreateConnector(_Object):
    """A connector to be made (`CreateConnectorRequest.java`). The name is trimmed, and empty when missing: validation then says what is
    wrong with it."""

    name: Annotated[
        str,
        BeforeValidator(_connector_name),
        _checked(lambda value: not isinstance(value, list | dict), '"name" must be a text.'),
        Field(description="Blanks at its ends are taken away", examples=["lines"], json_schema_extra={"minLength": 1}),
    ]
    config: Annotated[
        _Texts,
        BeforeValidator(lambda value: config_map(value, '"config"')),
        _checked(lambda value: value is not None, 'The request\'s body has no "config": a JSON object of property names and values.'),
        WithJsonSchema(_CONFIG_SCHEMA),
    ]
    initial_state: Annotated[
        TargetState | None,
        BeforeValidator(_initial_state),
        WithJsonSchema({"type": "string", "enum": list(_INITIAL_STATES), "default": "RUNNING"}),
    ] = None


def _is_object_or_null(value: Any) -> bool:
    return value is None or isinstance(value, dict)


class _AlteredOffset(BaseModel):
    model_config = ConfigDict(extra="forbid")

    partition: Annotated[
        dict[str, Any] | None,
        _checked(_is_object_or_null, '"partition" must be a JSON object or null.'),
        Field(examples=[{"filename": "/data/lines.txt"}]),
    ] = None
    offset: Annotated[
        dict[str, Any] | None,
        _checked(_is_object_or_null, '"offset" must be a JSON object or null.'),
        Field(examples=[{"position": 8}]),
    ] = None


_ENTRY = 'Each of "offsets" must be a JSON object with "partition" and "offset", and nothing else.'


class AlterOffsets(_Object):
    """Offsets to be set; a null offset removes one (`ConnectorOffsets.java`)."""

    offsets: Annotated[
        list[Annotated[_AlteredOffset, _checked(lambda each: isinstance(each, dict) and each.keys() <= {"partition", "offset"}, _ENTRY)]],
        Field(min_length=1),
        _checked(lambda value: isinstance(value, list), '"offsets" must be a JSON array of objects with "partition" and "offset".'),
        _checked(bool, "Partitions / offsets need to be provided for an alter offsets request"),
    ]

    def entries(self) -> list[OffsetEntry]:
        """Return them as the herder takes them."""
        return [(each.partition, each.offset) for each in self.offsets]


def _text(name: str) -> BeforeValidator:
    return _checked(lambda value: isinstance(value, str) and bool(value.strip()), f'"{name}" must be a text that is not empty.')


def _object(name: str) -> BeforeValidator:
    return _checked(lambda value: isinstance(value, dict), f'"{name}" must be a JSON object.')


def _instead_of_null(make: Callable[[], Any]) -> BeforeValidator:
    return BeforeValidator(lambda value: make() if value is None else value)


class Signal(_Object):
    """A request to the tasks of a connector (docs/signals.md)."""

    id: Annotated[
        str,
        _text("id"),
        _instead_of_null(lambda: str(uuid.uuid4())),
        Field(min_length=1, description="Notifications bear it; made up when left out", examples=["orders-again"]),
    ] = ""
    type: Annotated[str, _text("type"), Field(min_length=1, description="Such as execute-snapshot", examples=["execute-snapshot"])]
    data: Annotated[
        dict[str, Any],
        _object("data"),
        _instead_of_null(dict),
        Field(examples=[{"data-collections": ["public.orders"], "type": "incremental"}]),
    ] = {}
    additional_data: Annotated[dict[str, Any], _object("additional-data"), _instead_of_null(dict)] = Field({}, alias="additional-data")
