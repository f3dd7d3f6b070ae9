"""Connect data as Avro and back, as Confluent's AvroConverter does it (`AvroData.java`)."""
