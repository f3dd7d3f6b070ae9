"""Tools for the tests of plugins, this project's own and other people's (docs/plugins.md).

`check_plugin`, `check_transform`, `check_predicate`, `check_converter`, `check_header_converter` and `check_provider` say in an
AssertionError which rule of the contract a class breaks. `SourceRun` and `SinkRun` take a connector and its tasks through their life as
the runtime does, without Kafka. Nothing here needs pytest, a broker or a database.
"""

from connect_py.testing.plugin_checks import (
    check_converter,
    check_header_converter,
    check_plugin,
    check_predicate,
    check_provider,
    check_source_record,
    check_transform,
    check_value,
)
from connect_py.testing.runs import SinkRun, SourceRun

__all__ = [
    "SinkRun",
    "SourceRun",
    "check_converter",
    "check_header_converter",
    "check_plugin",
    "check_predicate",
    "check_provider",
    "check_source_record",
    "check_transform",
    "check_value",
]
