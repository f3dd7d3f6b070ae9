"""Rows of an outbox that lack additional fields, where that is allowed. The rest is held to recordings (`test_reference`)."""

from __future__ import annotations

from typing import Any

import pytest

from connect_py.api import SourceRecord
from connect_py.data import Struct
from connect_py.data.schema import INT64, OPTIONAL_STRING, STRING, struct
from connect_py.errors import DataError
from connect_py.transforms.outbox import EventRouter

PLACEMENT = "type:envelope:kind,user:envelope,trace:header"


def event(**row: str | None) -> SourceRecord:
    """An insertion into the outbox; columns that are not named are not there."""
    columns = {"id": "1", "aggregatetype": "order", "aggregateid": "k", "payload": "p", **row}
    row_schema = struct([(name, STRING if name == "id" else OPTIONAL_STRING) for name in columns], name="shop.outbox.Value", optional=True)
    envelope = struct([("after", row_schema), ("op", STRING), ("ts_ms", INT64)], name="shop.outbox.Envelope")
    value = Struct(envelope, [Struct(row_schema, list(columns.values())), "c", 5])
    return SourceRecord({}, {}, "shop.outbox", STRING, "k", envelope, value)


@pytest.fixture
def router() -> EventRouter:
    router = EventRouter()
    router.configure({"table.fields.additional.placement": PLACEMENT, "table.field.additional.missing": "ignore"})
    return router


def values(router: EventRouter, **row: str | None) -> dict[str, Any]:
    message = router.apply(event(**row))
    assert message is not None and isinstance(message.value, Struct)
    return dict(zip((field.name for field in message.value_schema.fields), message.value.values, strict=True))


def test_a_missing_field_of_an_envelope_is_null_and_the_others_keep_their_names(router: EventRouter) -> None:
    assert values(router, type="t", user="u") == {"payload": "p", "kind": "t", "user": "u"}
    assert values(router, user="v") == {"payload": "p", "kind": None, "user": "v"}
    assert values(router, type="w") == {"payload": "p", "kind": "w", "user": None}


def test_a_field_that_the_first_row_did_not_have_is_an_error_as_in_debezium(router: EventRouter) -> None:
    assert values(router, user="u") == {"payload": "p", "user": "u"}
    with pytest.raises(DataError, match="kind is not a valid field name"):
        router.apply(event(type="t"))
    assert values(router) == {"payload": "p", "user": None}
