# Stands in for postgres:17: Debian's PostgreSQL 17 behind an entry point that does what the official image's does with what
# docker-compose.yaml gives it.
FROM python:3.13-slim-trixie
RUN apt-get update \
 && mkdir -p /etc/postgresql-common \
 && echo 'create_main_cluster = false' > /etc/postgresql-common/createcluster.conf \
 && apt-get install -y --no-install-recommends postgresql-17 \
 && rm -rf /var/lib/apt/lists/* \
 && install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data \
 && install -d -o postgres -g postgres -m 3777 /var/run/postgresql \
 && mkdir /docker-entrypoint-initdb.d
ENV PATH=/usr/lib/postgresql/17/bin:$PATH PGDATA=/var/lib/postgresql/data
COPY postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
VOLUME /var/lib/postgresql/data
EXPOSE 5432
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
