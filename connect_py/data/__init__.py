"""The data model: schemas, structs and logical types."""

from connect_py.data.schema import Field, Schema, Type
from connect_py.data.struct import Struct

__all__ = ["Field", "Schema", "Struct", "Type"]
