"""What is raised for a record that was not delivered. The rest is tested on brokers (`test_kafka_clients`)."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError

from connect_py.kafka.producer import delivery_error

#: What librdkafka itself says of a topic that it does not find.
UNKNOWN_TOPIC = -188


@pytest.mark.parametrize(
    ("code", "topic", "java_name"),
    [
        (KafkaError.TOPIC_EXCEPTION, "a b", "InvalidTopicException"),
        (UNKNOWN_TOPIC, "a b", "InvalidTopicException"),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, "..", "InvalidTopicException"),
        (UNKNOWN_TOPIC, "a.b", "TimeoutException"),
    ],
)
def test_a_name_that_no_topic_can_have_is_called_so_whatever_the_client_says(code: int, topic: str, java_name: str) -> None:
    error = delivery_error(KafkaError(code), topic)
    assert error.java_name == f"org.apache.kafka.common.errors.{java_name}"
    assert (str(error) == f"Invalid topics: [{topic}]") is (java_name == "InvalidTopicException")
