"""What a worker's clients have of the worker, of the connector and of their own."""

import pytest

from connect_py.kafka.client import source_producer_properties
from connect_py.kafka.settings import ClientKind, librdkafka_config

WORKER = {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("worker", "config", "milliseconds"),
    [
        (WORKER, {}, 20),
        ({**WORKER, "producer.retry.backoff.ms": "300"}, {}, 300),
        ({**WORKER, "producer.retry.backoff.ms": "300"}, {"producer.override.retry.backoff.ms": "400"}, 400),
    ],
)
def test_a_source_asks_again_soon_for_a_topic_that_is_created_unless_the_user_says_otherwise(
    worker: dict[str, str], config: dict[str, str], milliseconds: int
) -> None:
    properties = source_producer_properties(worker, "c", 0, config)
    assert librdkafka_config(properties, ClientKind.PRODUCER)["retry.backoff.ms"] == milliseconds
