# The worker with every extra, Spark, Java and the lakehouse libraries: nothing is fetched or missing when a connector starts.
#
#   docker build -t connect-py-worker .
#   docker run -p 8083:8083 -e BOOTSTRAP_SERVERS=kafka:9092 -e GROUP_ID=1 -e CONFIG_STORAGE_TOPIC=my_connect_configs \
#       -e OFFSET_STORAGE_TOPIC=my_connect_offsets -e STATUS_STORAGE_TOPIC=my_connect_statuses connect-py-worker

FROM python:3.11-slim-bookworm AS base
RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless \
 && rm -rf /var/lib/apt/lists/*
ENV CONNECT_PY_CACHE=/opt/connect/cache

FROM base AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE NOTICE constraints.txt ./
COPY connect_py connect_py
COPY connectors connectors
COPY offsets offsets
COPY rest_api rest_api
COPY spark_sink spark_sink
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/connect/venv \
 && /opt/connect/venv/bin/pip install --no-cache-dir --constraint constraints.txt "$(echo /wheels/*.whl)[postgres,mysql,jdbc,mongodb,spark-connect,scripting,tracing,protobuf,verify]"
RUN /opt/connect/venv/bin/python -c "from spark_sink.spark.jars import SINK_JARS, cached, resolve; resolve(SINK_JARS, cached(SINK_JARS, 'spark-sink'))" \
 && rm -rf "$CONNECT_PY_CACHE/ivy"

FROM base
RUN useradd --system --uid 1001 --create-home connect \
 && install -d -o connect -g connect /warehouse /files
COPY --from=build /opt/connect /opt/connect
COPY docker/healthcheck.py /opt/connect/healthcheck.py
# No module is ever imported from the working directory.
ENV PATH=/opt/connect/venv/bin:$PATH PYTHONSAFEPATH=1
USER connect
WORKDIR /home/connect
VOLUME /warehouse
EXPOSE 8083
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s --retries=6 CMD ["python", "/opt/connect/healthcheck.py"]
# Without a properties file the worker takes its properties from the environment.
ENTRYPOINT ["connect-py", "distributed"]
