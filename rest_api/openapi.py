"""What FastAPI cannot see of the API, because bodies are read and answers are written here: their shapes, for /openapi.json."""

from __future__ import annotations

from typing import Any

Shape = dict[str, Any]


def _object(**properties: Shape) -> Shape:
    return {"type": "object", "properties": properties}


def _body(schema: Shape) -> Shape:
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


_CONFIG: Shape = {
    "type": "object",
    "description": "Properties; numbers and booleans are kept as their text.",
    "additionalProperties": {"type": ["string", "number", "boolean", "null"]},
}
_OFFSET = _object(partition={"type": "object"}, offset={"type": ["object", "null"]})

#: For `openapi_extra` of the routes that take a body.
CONFIG_BODY = _body(_CONFIG)
CREATE_BODY = _body(
    {
        **_object(
            name={"type": "string"},
            config=_CONFIG,
            initial_state={"type": "string", "enum": ["RUNNING", "PAUSED", "STOPPED"], "default": "RUNNING"},
        ),
        "required": ["name", "config"],
    }
)
OFFSETS_BODY = _body(_object(offsets={"type": "array", "minItems": 1, "items": _OFFSET}))
LEVEL_BODY = _body(_object(level={"type": "string", "enum": ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL"]}))

#: Every refusal of every route.
ERRORS: dict[int | str, Shape] = {
    "default": {
        "description": "A refusal",
        "content": {"application/json": {"schema": _object(error_code={"type": "integer"}, message={"type": "string"})}},
    }
}
