"""The public face: what `connect_py.api`, `.data`, `.errors` and `.testing` offer to authors of plugins, complete and documented."""

from __future__ import annotations

import importlib
import inspect
import types
from typing import Any

import pytest

PUBLIC = ["connect_py.api", "connect_py.data", "connect_py.testing"]

#: What authors import. A name that leaves this list breaks somebody's plugin: say so in the changelog.
API = {
    "BadRecord", "BatchSinkContext", "BatchSinkTask", "ConfigData", "ConfigDef", "ConfigKey", "ConfigProvider", "ConfigType", "ConfigValue",
    "Connector", "Conversion", "ConvertedColumn", "Converter", "CustomConverter", "EncodedBatch", "Header", "HeaderConverter",
    "Importance", "JsonEncoding", "MetricGroup", "MetricValue", "Password", "PostProcessor", "Predicate", "REQUIRED", "Route",
    "SinkConnector", "SinkRecord", "SinkTask", "SinkTaskContext", "SourceConnector", "SourceOffset", "SourcePartition", "SourceRecord",
    "SourceTask", "SourceTaskContext", "TopicPartition", "Transform", "Validator", "Width", "all_of", "between", "non_empty", "one_of",
    "one_of_ignoring_case", "ConnectorContext", "RecordMetadata",
}  # fmt: skip


def members(name: str) -> dict[str, Any]:
    module = importlib.import_module(name)
    return {each: getattr(module, each) for each in module.__all__}


def test_nothing_that_authors_import_has_gone() -> None:
    assert set(members("connect_py.api")) >= API


@pytest.mark.parametrize("name", PUBLIC)
def test_every_name_is_listed_and_every_listed_name_is_there(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    offered = {each for each, value in vars(module).items() if not each.startswith("_") and not isinstance(value, types.ModuleType)}
    assert offered == set(module.__all__)


def documented() -> list[tuple[str, Any]]:
    """(name, object) of every public class and function, and of their public methods and properties."""
    found = []
    for module in [*PUBLIC, "connect_py.errors"]:
        loaded = importlib.import_module(module)
        for name in getattr(loaded, "__all__", None) or [each for each in vars(loaded) if not each.startswith("_")]:
            value = getattr(loaded, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)) or not value.__module__.startswith("connect_py"):
                continue
            found.append((f"{module}.{name}", value))
            if inspect.isclass(value):
                parts = [
                    (part, inspect.unwrap(getattr(each, "fget", None) or getattr(each, "__func__", each)))
                    for part, each in vars(value).items()
                ]
                found += [
                    (f"{module}.{name}.{part}", each) for part, each in parts if not part.startswith("_") and inspect.isfunction(each)
                ]
    return found


@pytest.mark.parametrize(("name", "value"), documented())
def test_everything_public_says_what_it_is_for(name: str, value: Any) -> None:
    text = inspect.getdoc(value) or ""
    assert text.strip(), f"{name} has no docstring"
    assert not text.startswith(f"{value.__name__}("), f"{name} has only the docstring that dataclass writes"
