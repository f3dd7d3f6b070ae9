"""What is wrong with the custom converters and post-processors of a configuration, for its validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from connect_py.api import ConfigValue, JsonEncoding
from connect_py.errors import ConfigError
from connectors.engine.plugins.custom_converters import CustomConverters
from connectors.engine.plugins.post_processors import RESELECT, PostProcessors, configured
from connectors.engine.plugins.reselect import Reselect


def plugin_problems(config: Mapping[str, str | None], *, reselects: bool) -> dict[str, str]:
    """Property → problem.

    Args:
        reselects: whether the connector can read columns again.
    """
    given = {name: text for name, text in config.items() if text is not None}

    def post_processors() -> None:
        if not reselects and any(each.type == RESELECT for each in configured(given)):
            raise ConfigError(f"{RESELECT} is not built for this connector")
        Reselect.parse(given)
        PostProcessors.make(given, JsonEncoding())

    checks: dict[str, Callable[[], object]] = {"converters": lambda: CustomConverters.parse(given), "post.processors": post_processors}
    found = {}
    for name, check in checks.items():
        try:
            check()
        except ConfigError as error:
            found[name] = str(error)
    return found


def add_problems(values: list[ConfigValue], problems: Mapping[str, str]) -> None:
    """Put problems to the values of their properties, where there is none yet."""
    for value in values:
        if value.name in problems and not value.errors:
            value.errors.append(f"The '{value.name}' value is invalid: {problems[value.name]}")
