"""The contract between the runtime and its plugins: what a plugin's author implements and what the runtime provides (docs/plugins.md).

Everything a plugin needs is here, in `connect_py.data` (schemas and values), `connect_py.errors` and, for its tests, `connect_py.testing`.
"""

from connect_py.api.config import (
    REQUIRED,
    ConfigDef,
    ConfigKey,
    ConfigType,
    ConfigValue,
    Importance,
    Password,
    Validator,
    Width,
    all_of,
    between,
    non_empty,
    one_of,
    one_of_ignoring_case,
)
from connect_py.api.connector import Connector, ConnectorContext, SinkConnector, SourceConnector
from connect_py.api.converter import Converter, HeaderConverter
from connect_py.api.custom import Conversion, ConvertedColumn, CustomConverter, PostProcessor
from connect_py.api.metrics import MetricGroup, MetricValue
from connect_py.api.provider import ConfigData, ConfigProvider
from connect_py.api.record import (
    EncodedBatch,
    Header,
    JsonEncoding,
    RecordMetadata,
    Route,
    SinkRecord,
    SourceOffset,
    SourcePartition,
    SourceRecord,
    TopicPartition,
)
from connect_py.api.task import (
    BadRecord,
    BatchSinkContext,
    BatchSinkTask,
    RecordConversion,
    RecordReader,
    SinkTask,
    SinkTaskContext,
    SourceTask,
    SourceTaskContext,
)
from connect_py.api.transform import Predicate, Transform

__all__ = [
    "REQUIRED",
    "BadRecord",
    "BatchSinkContext",
    "BatchSinkTask",
    "ConfigData",
    "ConfigDef",
    "ConfigKey",
    "ConfigProvider",
    "ConfigType",
    "ConfigValue",
    "Connector",
    "ConnectorContext",
    "Conversion",
    "ConvertedColumn",
    "Converter",
    "CustomConverter",
    "EncodedBatch",
    "Header",
    "HeaderConverter",
    "Importance",
    "JsonEncoding",
    "MetricGroup",
    "MetricValue",
    "Password",
    "PostProcessor",
    "Predicate",
    "RecordConversion",
    "RecordMetadata",
    "RecordReader",
    "Route",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceOffset",
    "SourcePartition",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "TopicPartition",
    "Transform",
    "Validator",
    "Width",
    "all_of",
    "between",
    "non_empty",
    "one_of",
    "one_of_ignoring_case",
]
