#!/bin/bash
# As in the official image, KAFKA_NAME_OF_A_PROPERTY is the broker's property name.of.a.property, and the storage is formatted once.
set -euo pipefail
properties=/opt/kafka/config/server.properties
env | sed -nE '/^KAFKA_(HEAP_OPTS|OPTS)=/d; s/^KAFKA_([A-Z_]+)=(.*)$/\1 \2/p' | while read -r name value; do
    echo "$(echo "$name" | tr 'A-Z_' 'a-z.')=$value"
done > "$properties"
java=(java ${KAFKA_HEAP_OPTS:-} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp '/opt/kafka/libs/*')
"${java[@]}" kafka.tools.StorageTool format --ignore-formatted -t 5L6g3nShT-eMCtK--X86sw -c "$properties"
exec "${java[@]}" kafka.Kafka "$properties"
