"""The MongoDB connectors' errors: the class is the decision (mongodb.md §14)."""

from __future__ import annotations

from connect_py.errors import DataError


class MalformedBsonError(DataError):
    """Bytes are no BSON document: cut short, a wrong length, an unknown type. Nothing of the document was used."""
