"""Read and change levels of loggers while the worker runs (KIP-495; `runtime/Loggers.java`).

Java's names are understood: `io.debezium` and its connectors, `org.apache.kafka.connect` and `org.apache.kafka.clients` stand for this
project's packages, so that the curl line of a Debezium guide does what the guide says. Any thread may call; Python's logging has the lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

#: log4j's level names as Python's numbers; TRACE and FATAL have no name of their own in Python.
LEVELS: Mapping[str, int] = {
    "OFF": logging.CRITICAL + 50,
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": 5,
    "ALL": 1,
}

#: Packages that a Java logger's name speaks of, most specific first.
JAVA_NAMES: Mapping[str, tuple[str, ...]] = {
    "io.debezium.connector.postgresql": ("connectors.postgres",),
    "io.debezium.connector.mysql": ("connectors.mysql",),
    "io.debezium.connector.mongodb": ("connectors.mongodb",),
    "io.debezium": ("connectors",),
    "org.apache.kafka.connect.runtime.rest": ("rest_api",),
    "org.apache.kafka.connect": ("connect_py", "offsets", "rest_api"),
    "org.apache.kafka.clients": ("connect_py.kafka",),
}

_ONE_LOGGER = "CONNECT_LOG4J_LOGGER_"


@dataclass(frozen=True)
class LoggerLevel:
    """A logger's level by log4j's name, and when it was changed (epoch milliseconds; None: not since the start)."""

    level: str
    last_modified: int | None = None


class Loggers:
    """The loggers of this process."""

    def __init__(self) -> None:
        self._changed: dict[str, LoggerLevel] = {}
        self._followers: list[Callable[[str, int], None]] = []

    def follow(self, follower: Callable[[str, int], None]) -> Callable[[], None]:
        """Tell somebody of each change of a Python logger's level (its name, empty for root, and the number); returns what ends that."""
        self._followers.append(follower)

        def end() -> None:
            if follower in self._followers:
                self._followers.remove(follower)

        return end

    def all(self) -> dict[str, LoggerLevel]:
        """Return loggers with a level of their own, Java's names of this project's packages, and `root`, sorted by name."""
        found = {name: self._of(name, logger) for name, logger in self._known().items() if logger.level != logging.NOTSET}
        found |= {name: self._of_java(name) for name in JAVA_NAMES}
        found["root"] = self._of("root", logging.getLogger())
        return dict(sorted({**found, **self._changed}.items()))

    def level(self, name: str) -> LoggerLevel | None:
        """A logger's effective level, None when there is no such logger. `root` may be written in any case; below Java's names of this
        project's packages there is every logger."""
        if name.lower() == "root":
            return self._of("root", logging.getLogger())
        if name in self._changed:
            return self._changed[name]
        if len(_targets(name)) > 1:
            return self._of_java(name)
        logger = self._known().get(name)
        return None if logger is None else self._of(name, logger)

    def set_level(self, name: str, level: str) -> list[str]:
        """Set a level on the logger and on every logger whose name starts with its name; `root` means all.

        Args:
            name: a logger's name; one that does not exist is created.
            level: a key of `LEVELS`, in any case.

        Returns:
            The names that were given another level, sorted.

        Raises:
            KeyError: there is no such level.
        """
        level = level.upper()
        number = LEVELS[level]
        if name.lower() == "root":
            names = ["root", *self._known()]
        else:
            names = sorted({name, *(known for known in self._known() if known.startswith(name))})
        now = LoggerLevel(level, int(time.time() * 1000))
        changed = [each for each in names if self._effective(each) != number]
        for each in changed:
            self._changed[each] = now
            for target in _targets(each):
                logging.getLogger(target).setLevel(number)
                for follower in list(self._followers):
                    follower(target, number)
        return sorted(changed)

    def _of(self, name: str, logger: logging.Logger) -> LoggerLevel:
        return self._changed.get(name) or LoggerLevel(_level_name(logger.getEffectiveLevel()))

    def _of_java(self, name: str) -> LoggerLevel:
        return self._changed.get(name) or LoggerLevel(_level_name(self._effective(name)))

    def _effective(self, name: str) -> int:
        if name in self._changed:
            return LEVELS[self._changed[name].level]
        return logging.getLogger(_targets(name)[:2][-1] if name != "root" else None).getEffectiveLevel()

    @staticmethod
    def _known() -> dict[str, logging.Logger]:
        return {name: logger for name, logger in logging.Logger.manager.loggerDict.items() if isinstance(logger, logging.Logger)}


def levels_from_environment(environ: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the root's level and those of single loggers, as the variables of the usual images give them.

    ``CONNECT_PY_LOG_LEVEL`` wins over the images' ``LOG_LEVEL`` (Debezium) and ``CONNECT_LOG4J_ROOT_LOGLEVEL`` (Confluent).
    ``CONNECT_LOG4J_LOGGERS`` is ``name=LEVEL,…`` (Confluent), or begins with the root's level (Debezium: ``DEBUG, stdout``);
    ``CONNECT_LOG4J_LOGGER_IO_DEBEZIUM=TRACE`` is one logger (Debezium). A level that is none is left out.
    """
    singles: dict[str, str] = {}
    root = ""
    for part in environ.get("CONNECT_LOG4J_LOGGERS", "").split(","):
        name, is_single, level = part.strip().partition("=")
        if is_single and level.strip().upper() in LEVELS:
            singles[name.strip()] = level.strip().upper()
        elif not is_single and not root and name.upper() in LEVELS:
            root = name.upper()
    for variable, value in environ.items():
        if variable.startswith(_ONE_LOGGER) and value.strip().upper() in LEVELS:
            singles[variable.removeprefix(_ONE_LOGGER).lower().replace("_", ".")] = value.strip().upper()
    for variable in ("CONNECT_LOG4J_ROOT_LOGLEVEL", "LOG_LEVEL", "CONNECT_PY_LOG_LEVEL"):
        if environ.get(variable, "").strip().upper() in LEVELS:
            root = environ[variable].strip().upper()
    return root or "INFO", singles


#: The one that the worker uses: Python's loggers belong to the process, and so does what is known of their changes.
PROCESS = Loggers()


def _targets(name: str) -> tuple[str, ...]:
    """Return Python's loggers of a name: itself, and the packages that a Java name stands for. `root` is Python's root."""
    if name == "root":
        return ("",)
    for prefix, packages in JAVA_NAMES.items():
        if name == prefix or name.startswith(prefix + "."):
            return (name, *packages)
    return (name,)


def _level_name(number: int) -> str:
    return next((name for name, value in LEVELS.items() if value <= number), "ALL")
