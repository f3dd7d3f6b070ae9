# Two images of one worker.
#
#   docker build --target slim -t connect-py-worker:slim .     sources, converters, JDBC and MongoDB sinks; no Java
#   docker build -t connect-py-worker .                        the same and the lakehouse sink: Spark, Java, their libraries
#
#   docker run -p 8083:8083 -e BOOTSTRAP_SERVERS=kafka:9092 -e GROUP_ID=1 -e CONFIG_STORAGE_TOPIC=my_connect_configs \
#       -e OFFSET_STORAGE_TOPIC=my_connect_offsets -e STATUS_STORAGE_TOPIC=my_connect_statuses connect-py-worker
#
# Nothing is fetched when a connector starts. Both run as any user of group 0 with a read-only root file system; /tmp must be writable.

ARG PYTHON_IMAGE=python:3.13-slim-trixie

FROM ${PYTHON_IMAGE} AS wheel
WORKDIR /src
RUN python -m venv /build && /build/bin/pip install --no-cache-dir "mkdocs>=1.6,<2"
COPY pyproject.toml mkdocs.yml README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE NOTICE ./
COPY docs docs
COPY connect_py connect_py
COPY connectors connectors
COPY offsets offsets
COPY rest_api rest_api
COPY spark_sink spark_sink
RUN /build/bin/mkdocs build --strict --quiet && /build/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM ${PYTHON_IMAGE} AS packages
COPY --from=wheel /wheels /opt/connect/wheels
COPY constraints.txt /opt/connect/constraints.txt
RUN python -m venv /opt/connect/venv \
 && /opt/connect/venv/bin/pip install --no-cache-dir --constraint /opt/connect/constraints.txt \
    "$(echo /opt/connect/wheels/*.whl)[postgres,mysql,jdbc,mongodb,scripting,tracing,protobuf]"
COPY docker/sbom.py /opt/connect/sbom.py
RUN /opt/connect/venv/bin/python /opt/connect/sbom.py > /opt/connect/sbom.cdx.json

FROM ${PYTHON_IMAGE} AS slim
LABEL org.opencontainers.image.title="connect-py-worker" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.description="Kafka Connect and Debezium in Python: sources, converters, JDBC and MongoDB sinks" \
      org.opencontainers.image.licenses="Apache-2.0"
# The user is a number, so that Kubernetes sees that it is not root; group 0 owns what the worker writes, since OpenShift chooses the user.
RUN useradd --uid 1001 --gid 0 --home-dir /home/connect --create-home connect \
 && install -d -g 0 -m 2775 /files /kafka/connect /opt/kafka/custom-config /opt/kafka/plugins \
 && chmod g=u /home/connect
COPY --from=packages /opt/connect /opt/connect
COPY docker/kafka_connect_run.sh /opt/kafka/kafka_connect_run.sh
# No module is ever imported from the working directory. A user without a name has no home of its own.
ENV PATH=/opt/connect/venv/bin:$PATH \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/home/connect \
    KAFKA_CONNECT_PLUGINS_DIR=/kafka/connect \
    CONNECT_HEALTH_LISTENERS=http://:8085
USER 1001
WORKDIR /home/connect
EXPOSE 8083 8085
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["connect-py", "health"]
# Without a properties file the worker takes its properties from the environment.
ENTRYPOINT ["connect-py", "distributed"]

FROM slim AS lakehouse
LABEL org.opencontainers.image.description="Kafka Connect and Debezium in Python: sources, converters, sinks, Spark for lakehouse tables"
USER 0
# Spark asks for the name of the user that runs it, and a user that is only a number has none.
ENV CONNECT_PY_CACHE=/opt/connect/cache \
    HADOOP_USER_NAME=connect \
    SPARK_USER=connect
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends openjdk-21-jre-headless \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -g 0 -m 2775 /warehouse
RUN /opt/connect/venv/bin/pip install --no-cache-dir --constraint /opt/connect/constraints.txt \
    "$(echo /opt/connect/wheels/*.whl)[spark-connect,verify]"
RUN python -c "from spark_sink.spark.jars import SINK_JARS, cached, local_files, resolve; resolve(SINK_JARS, cached(SINK_JARS, 'spark-sink')); local_files()" \
 && rm -rf "$CONNECT_PY_CACHE/ivy" \
 && chmod -R g=u "$CONNECT_PY_CACHE" \
 && python /opt/connect/sbom.py > /opt/connect/sbom.cdx.json
# An archive of classes with which Spark starts in half of the time. It belongs to this Java at this path, so it is made here. Only its own
# folder gets other rights: a file that is changed is in the image twice.
RUN connect-py spark-archive && chmod -R g=u "$CONNECT_PY_CACHE/archives"
USER 1001
VOLUME /warehouse
