"""Every error that this project raises on purpose.

The class is the decision; the message says what failed, what is still true and what to do::

    ConnectError
    ├── ConfigError          a property is missing or wrong; nothing was started
    ├── DataError            one record or value cannot be converted; `errors.tolerance` decides
    ├── RetriableError       the same call may succeed later; the caller waits and repeats it
    ├── FatalTaskError       the task cannot continue; it becomes FAILED with this text as its trace
    └── RestError            a request is refused; carries the HTTP status
        ├── BadRequestError      400
        ├── NotFoundError        404
        ├── AlreadyExistsError   409
        └── ConflictError        409, a rebalance or a concurrent change is under way; repeat the request

The names follow `org.apache.kafka.connect.errors` and `runtime/rest/errors/ConnectExceptionMapper.java`.
"""

from __future__ import annotations

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class ConnectError(Exception):
    """Base class. Its text is meant for the person who runs the worker and never holds a secret.

    Attributes:
        java_name: the class by which traces and dead letters name the error, for tools made for Kafka Connect; may be set on one error.
    """

    java_name: str = "org.apache.kafka.connect.errors.ConnectException"


def noted(error: E, note: str) -> E:
    """Return the error, with a note (PEP 678): what is still true and what to do, where the text itself must be Connect's."""
    error.add_note(note)
    return error


class ConfigError(ConnectError):
    """A property is missing, malformed or contradicts another one."""

    java_name = "org.apache.kafka.common.config.ConfigException"


class DataError(ConnectError):
    """A record, schema or value is not what the operation needs."""

    java_name = "org.apache.kafka.connect.errors.DataException"


class RetriableError(ConnectError):
    """A passing failure: a broker or database that does not answer just now."""

    java_name = "org.apache.kafka.connect.errors.RetriableException"


class FatalTaskError(ConnectError):
    """A failure that repeating would not mend."""


class RestError(ConnectError):
    """A refused request.

    Args:
        message: the text of the answer's ``message``.
        status: the HTTP status, which is also the answer's ``error_code``.
    """

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


class BadRequestError(RestError):
    """The request itself is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 400)


class NotFoundError(RestError):
    """What the request names does not exist."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 404)


class AlreadyExistsError(RestError):
    """What the request would create exists."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 409)


class ConflictError(RestError):
    """The worker is between two states; the same request can be repeated."""

    def __init__(self, message: str) -> None:
        super().__init__(message, 409)
