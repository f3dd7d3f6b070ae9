"""The data model: schemas, structs and logical types.

A schema is a constant such as `INT64` or is built by the functions of `connect_py.data.schema`:
``struct([("id", INT64), ("tags", array(STRING))], name="shop.Order")``; ``STRING.as_optional()`` allows null. The docstring of `Struct`
says which Python type goes with which schema.
"""

from connect_py.data.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_BYTES,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    Struct,
    Type,
)

__all__ = [
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DECIMAL",
    "FLOAT32",
    "FLOAT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "OPTIONAL_BYTES",
    "OPTIONAL_INT64",
    "OPTIONAL_STRING",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "Field",
    "Schema",
    "Struct",
    "Type",
]
