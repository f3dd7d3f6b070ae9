"""What the converters with a schema registry share: the client, subjects, the wire format and the flow of a record.

Only `client.py` imports the registry's client library, which the extras `avro`, `protobuf` and `jsonschema` bring.
"""
