"""Connect data as Protobuf and back, as Confluent's ProtobufConverter does it (`ProtobufData.java`).

Needs the extra `protobuf`. Messages are read and written by Google's library; only schemas are built and printed here.
"""
