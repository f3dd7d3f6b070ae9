"""From the driver's errors to ours: the class is the decision (mongodb.md §14)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pymongo.errors as driver
from bson.errors import BSONError

from connect_py.errors import ConnectError, FatalTaskError, RetriableError

UNAUTHORIZED, AUTHENTICATION_FAILED = 13, 18
#: The place to go on from is not there any more, or its token is none of this server: InvalidResumeToken, ChangeStreamFatalError,
#: ChangeStreamHistoryLost, CappedPositionLost; FailedToParse is what a token of another kind of server gives.
LOST_POSITION: Final = frozenset({260, 280, 286, 136, 9})
#: BSONObjectTooLarge, and its twin inside of aggregations.
TOO_LARGE: Final = frozenset({10334, 17280, 5159})
#: What passes by itself: a server that steps down, shuts down or is interrupted, a lost cursor, a time limit.
PASSING: Final = frozenset(
    {6, 7, 43, 50, 63, 89, 91, 112, 133, 134, 150, 189, 234, 237, 262, 9001, 10058, 10107, 11600, 11602, 13388, 13435, 13436, 50915}
)


class ServerError(ConnectError):
    """The server refused. `code` is its number, 0 where the driver failed; `reason` its own text."""

    def __init__(self, message: str, code: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or message


class LostConnectionError(ServerError, RetriableError):
    """The connection broke, or no server can be used just now: worth another attempt."""


class LostPositionError(ServerError):
    """The server's log no longer holds the place from which the connector must go on."""


class TooLargeError(ServerError, FatalTaskError):
    """A change event is larger than the 16 MB of a BSON document."""


def server_error(error: Exception, what: str) -> ServerError:
    """The error to raise for one of the driver's."""
    code, text = _code_and_text(error)
    message = f"{what}: {text}"
    if isinstance(error, driver.OperationFailure):
        labels = error.has_error_label("NonResumableChangeStreamError")
        if code in TOO_LARGE or "BSONObjectTooLarge" in text:
            return TooLargeError(
                f"{message}. A change event is larger than 16 MB. Nothing behind it was read. Set cursor.oversize.handling.mode=split "
                "(MongoDB 6.0.9 and newer) or skip with a threshold",
                code,
                text,
            )
        if code in LOST_POSITION or (labels and code not in PASSING):
            return LostPositionError(message, code, text)
        if code in PASSING or error.has_error_label("ResumableChangeStreamError"):
            return LostConnectionError(message, code, text)
        return ServerError(message, code, text)
    if isinstance(error, (driver.ConnectionFailure, driver.WTimeoutError, driver.WaitQueueTimeoutError, OSError)):
        return LostConnectionError(message, code, text)
    return ServerError(message, code, text)


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise the driver's errors as ours; `what` says what was tried."""
    try:
        yield
    except (driver.PyMongoError, BSONError, OSError) as error:
        raise server_error(error, what) from error


def _code_and_text(error: Exception) -> tuple[int, str]:
    if isinstance(error, driver.OperationFailure):
        details = error.details or {}
        name = details.get("codeName")
        text = str(details.get("errmsg") or error).rstrip(".")
        return error.code or 0, f"Command failed with error {error.code or 0}{f' ({name})' if name else ''}: '{text}'"
    # the driver adds its view of the whole cluster
    return 0, (str(error) or type(error).__name__).partition(", Timeout:")[0]
