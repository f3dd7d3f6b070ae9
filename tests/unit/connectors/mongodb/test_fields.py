"""`field.exclude.list` and `field.renames` in documents, updated fields and names of fields."""

import pytest

from connect_py.errors import DataError
from connectors.mongodb.field_rules import FieldChanges, FieldRules


def changes(excludes: str | None = None, renames: str | None = None, namespace: str = "db.c") -> FieldChanges:
    found = FieldRules.parse(excludes, renames).of(namespace)
    assert found is not None
    return found


def test_rules_apply_to_the_collections_that_they_name() -> None:
    rules = FieldRules.parse("db.c.a,*.d.b", None)
    assert rules.of("db.c") is not None and rules.of("DB.C") is not None and rules.of("other.d") is not None
    assert rules.of("db.cc") is None and rules.of("other.c") is None


def test_excluded_fields_go_also_inside_of_arrays() -> None:
    document = {"a": 1, "l": [{"x": 1, "y": 2}, 5, [{"x": 3}]], "n": {"x": {"deep": 1, "kept": 2}}}
    assert changes("db.c.a,db.c.l.x,db.c.n.x.deep,db.c.none.x").document(document) == {
        "l": [{"y": 2}, 5, [{"x": 3}]],
        "n": {"x": {"kept": 2}},
    }


def test_a_renamed_field_stands_last() -> None:
    assert list(changes(None, "db.c.a:z").document({"a": 1, "b": 2}).items()) == [("b", 2), ("z", 1)]


def test_a_name_that_is_taken_is_an_error() -> None:
    with pytest.raises(DataError, match="Document already contains field : b"):
        changes(None, "db.c.a:b").document({"a": 1, "b": 2})


def test_updated_fields_match_by_path_whatever_index_stands_in_it() -> None:
    rule = changes("db.c.l.x")
    assert rule.updated_fields({"l.0.x": 1, "l.0": {"x": 1, "y": 2}, "l": [{"x": 1}], "l.x.deep": 3, "lx": 4, "l.0.1.x": 5}) == {
        "l.0": {"y": 2},
        "l": [{}],
        "lx": 4,
        "l.0.1.x": 5,
    }


def test_names_of_removed_fields_are_left_out_or_renamed_in_place() -> None:
    assert changes("db.c.a").names(["x", "a", "a.b", "ab"]) == ["x", "a.b", "ab"]
    assert changes("db.c.a.b").names(["a", "a.b", "a.c"]) == ["a.c"]
    assert changes(None, "db.c.l.x:z").names(["l.3.x.q", "l.x", "l"]) == ["l.3.x.q", "l.z", "l"]
