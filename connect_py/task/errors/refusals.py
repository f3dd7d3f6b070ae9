"""What becomes of records that Kafka refuses (`WorkerSourceTask.producerSendFailed`).

With ``errors.tolerance=none`` the task fails. With ``all`` the record is reported and skipped, and its source offset advances; where the
connector has a dead letter queue, a letter takes the record's place first. The task's thread owns a `Refusals`.
"""

from __future__ import annotations

from collections import deque

from connect_py.api import SourceRecord
from connect_py.errors import ConnectError, FatalTaskError
from connect_py.kafka.producer import RECORD_TOO_LARGE
from connect_py.task.errors.dead_letters import refused_letter
from connect_py.task.errors.source_reporter import SourceErrors, refused_record
from connect_py.task.errors.tolerance import Tolerance
from connect_py.task.producing import Produced
from connect_py.task.submitted import Submission

#: The class that the reference names for this stage.
_PRODUCES = "org.apache.kafka.connect.runtime.WorkerSourceTask"


class Refusals:
    """See the module.

    Attributes:
        failure: what the task fails with; None while nothing has failed it.
        letters: dead letters to be sent, each with the submission that it belongs to, which is held until then, and what it was made of.
    """

    def __init__(self, tolerance: Tolerance, errors: SourceErrors) -> None:
        self.failure: ConnectError | None = None
        self.letters: deque[tuple[Produced, Submission, SourceRecord | None]] = deque()
        self._tolerance = tolerance
        self._errors = errors

    def take(self, cause: ConnectError, submission: Submission, produced: Produced, record: SourceRecord | None = None) -> bool:
        """Kafka refused what was produced.

        Args:
            record: what it was made of, where that is known.

        Returns:
            Whether the record is skipped, and no dead letter takes its place.
        """
        is_too_large = cause.java_name == RECORD_TOO_LARGE and produced.value is not None
        if produced.is_dead_letter:
            if is_too_large:
                self._send(self._errors.without_value(produced), submission, record)
            else:
                self._errors.letter_failed()
                self._fail(refused_letter(produced.topic, cause), cause, submission)
        elif not self._tolerance.is_skipping:
            self._fail(FatalTaskError("Unrecoverable exception from producer send callback"), cause, submission)
        else:
            self._errors.record = record or refused_record(submission.partition, submission.offset, produced)
            self._tolerance.failed("KAFKA_PRODUCE", _PRODUCES, cause)
            letter = self._errors.letter_of(produced)
            if letter is None:
                return True
            self._send(self._errors.without_value(letter) if is_too_large else letter, submission, record)
        return False

    def _send(self, letter: Produced, submission: Submission, record: SourceRecord | None) -> None:
        submission.held += 1
        self.letters.append((letter, submission, record))

    def _fail(self, failure: ConnectError, cause: ConnectError, submission: Submission) -> None:
        submission.failed = True
        if self.failure is None:
            failure.__cause__ = cause
            self.failure = failure
