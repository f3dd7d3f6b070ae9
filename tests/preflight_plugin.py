"""A source that answers what it is asked about transactions as its configuration says (`MonitorableSourceConnector`)."""

from __future__ import annotations

from collections.abc import Mapping

from connect_py.api import ConfigDef, ConfigKey, ConfigType, Importance, SourceConnector, SourceTask
from connect_py.errors import FatalTaskError

_ANSWERS = {"null": None, "no": False, "yes": True}


class AnsweringSource(SourceConnector):
    java_name = "tests.AnsweringSource"
    java_task_name = "tests.AnsweringTask"
    version = "1"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            [ConfigKey(name, ConfigType.STRING, "null", Importance.LOW, "null, no, yes, or a text to fail with.") for name in NAMES]
        )

    def start(self, config: Mapping[str, str]) -> None:
        """Is never started."""

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return []

    def task_class(self) -> type[SourceTask]:
        return SourceTask

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        return _answer(config["supports"])

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool | None:  # type: ignore[override]  # which it must not
        return _answer(config["boundaries"])


NAMES = ("supports", "boundaries")


def _answer(text: str) -> bool | None:
    if text not in _ANSWERS:
        raise FatalTaskError(text.strip())
    return _ANSWERS[text]
