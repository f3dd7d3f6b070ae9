"""The sink's task: records in, bulk writes out (`sink/MongoDbSinkConnectorTask.java`, `MongoDbChangeEventSink.java`).

The order of records is kept: consecutive writes into one collection are one ordered bulk write. Every write but that of a row without key
gives the same document when it is repeated, and such a row gets an `_id` of its offset in Kafka, so records that come again after a failure
change nothing. The reference loses, without a word, what a poll brought when a write fails, when a tombstone is among it, or when it begins
with a delete or a row without key; here a server that is unavailable makes the runtime bring the records again, and a record that is no
change event, or that the server refuses, goes where `errors.tolerance` says.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pymongo import DeleteMany, DeleteOne, ReplaceOne, UpdateOne
from pymongo.errors import BulkWriteError, PyMongoError

from connect_py.api import SinkRecord, SinkTask, SinkTaskContext
from connect_py.errors import DataError, RetriableError, noted
from connectors.engine.sink_records import ErrantRecords
from connectors.mongodb.config import connection_part
from connectors.mongodb.config import parse_config as parse_connection
from connectors.mongodb.server.connection import PASSING, Client, LostConnectionError, open_client, server_error
from connectors.mongodb.sink.config import SinkConfig, parse_config
from connectors.mongodb.sink.writes import Delete, Replace, Truncate, Update, Write, writes_of

log = logging.getLogger(__name__)

#: How long after a lost server the records come again.
RETRY_SECONDS = 2.0
_Model = ReplaceOne[dict[str, Any]] | UpdateOne | DeleteOne | DeleteMany


class _Planned(NamedTuple):
    """A write and where it goes."""

    record: SinkRecord
    collection: str
    model: _Model


class MongoDbSinkTask(SinkTask):
    """Writes into one database."""

    def __init__(self) -> None:
        self._client: Client | None = None

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Open a client, which connects when it first writes. Raises ConfigError."""
        self._config: SinkConfig = parse_config(config)
        self._context = context
        self._errant = ErrantRecords(config, context)
        self._client = open_client(parse_connection(connection_part(config, context.connector)))

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the records.

        Raises:
            RetriableError: no server can be written to just now.
            DataError: a record is no change event or the server refuses it, and nothing tolerates that.
        """
        for batch in self._batches(self._planned(records)):
            self._write(batch)

    def stop(self) -> None:
        """Close the client."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _planned(self, records: Sequence[SinkRecord]) -> Iterator[_Planned]:
        for record in records:
            try:
                collection = self._config.collection.of(record.topic, record.value)
                found = [] if collection is None else [_model(write) for write in writes_of(record) if self._wants(write, record)]
            except DataError as error:
                self._errant.report(record, error)
                continue
            for model in found:
                assert collection is not None
                yield _Planned(record, collection, model)

    def _wants(self, write: Write, record: SinkRecord) -> bool:
        if isinstance(write, Truncate) and not self._config.truncates:
            log.info("A truncate in %s is not followed: truncate.enabled is false", record.topic)
            return False
        return True

    def _batches(self, planned: Iterator[_Planned]) -> Iterator[list[_Planned]]:
        batch: list[_Planned] = []
        for item in planned:
            if batch and (len(batch) == self._config.batch_size or batch[-1].collection != item.collection):
                yield batch
                batch = []
            batch.append(item)
        if batch:
            yield batch

    def _write(self, batch: list[_Planned]) -> None:
        """Write a batch in order; what comes after a refused write is written still."""
        assert self._client is not None
        collection = self._client[self._config.database][batch[0].collection]
        while batch:
            try:
                collection.bulk_write([item.model for item in batch], ordered=True)
                return
            except BulkWriteError as error:
                batch = self._after_refusal(batch, error)
            except PyMongoError as error:
                raise self._failure(error) from error

    def _after_refusal(self, batch: list[_Planned], error: BulkWriteError) -> list[_Planned]:
        details: Mapping[str, Any] = error.details or {}
        refusals = details.get("writeErrors") or ()
        if not refusals or refusals[0].get("code") in PASSING:
            raise self._failure(error) from error
        index = int(refusals[0]["index"])
        refused = batch[index]
        reason = f"MongoDB refused a write into {refused.collection}: {refusals[0].get('errmsg')} (error {refusals[0].get('code')})"
        self._errant.report(refused.record, DataError(reason))
        return batch[index + 1 :]

    def _failure(self, error: PyMongoError) -> Exception:
        found = server_error(error, f"The database {self._config.database} cannot be written to")
        if isinstance(found, LostConnectionError) or (isinstance(error, BulkWriteError) and not (error.details or {}).get("writeErrors")):
            self._context.retry_after(RETRY_SECONDS)
            lost = found if isinstance(found, RetriableError) else LostConnectionError(str(found), found.code, found.reason)
            return noted(lost, "The records come again; offsets stand before them.")
        return found


def _model(write: Write) -> _Model:
    if isinstance(write, Replace):
        return ReplaceOne(write.filter, write.document, upsert=True)
    if isinstance(write, Update):
        return UpdateOne(write.filter, write.changes, upsert=True)
    return DeleteOne(write.filter) if isinstance(write, Delete) else DeleteMany({})
