#!/bin/sh
# What the Strimzi operator starts in a Connect pod. The operator has written the worker's properties; this worker reads them as they are.
# Its REST API answers on 8083 and, when metrics are on, its figures on 9404, where the operator's PodMonitors look.
set -eu

# The pod's name in the headless service, by which workers of the group call each other; the properties refer to it.
ADVERTISED_HOSTNAME="$(hostname -f | cut -d . -f 1-4)"
export ADVERTISED_HOSTNAME

# Where Strimzi's image has its properties; the variable is for tests.
given="${KAFKA_CONNECT_PROPERTIES:-/opt/kafka/custom-config/kafka-connect.properties}"
own="$(mktemp "${TMPDIR:-/tmp}/connect-XXXXXX")"
cat "$given" > "$own"
echo >> "$own"
if [ "${KAFKA_CONNECT_JMX_EXPORTER_ENABLED:-${KAFKA_CONNECT_METRICS_ENABLED:-false}}" = true ]; then
    echo "metrics.listeners=http://:9404" >> "$own"
fi
exec connect-py distributed "$own"
