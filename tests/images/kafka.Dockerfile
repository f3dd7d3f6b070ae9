# Stands in for apache/kafka:4.3.1: the broker's jars from Maven Central (the build's folder has them in libs/) on Debian's Java.
FROM python:3.13-slim-trixie
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install -y --no-install-recommends openjdk-21-jre-headless \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --uid 1000 --create-home appuser \
 && install -d -o appuser -m 755 /var/lib/kafka/data /opt/kafka/config
COPY libs /opt/kafka/libs
COPY kafka-entrypoint.sh /opt/kafka/run
USER appuser
VOLUME /var/lib/kafka/data
EXPOSE 9092
CMD ["/opt/kafka/run"]
