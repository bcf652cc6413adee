# Every image of Penstock that is not somebody else's. Targets: `service` (all services without Spark, the command says which),
# `spark` (the same and Java and Spark: master, worker, driver), `edge` (the way in to several gateways and notifiers).
# Base images are arguments. On a network with a private CA: `--secret id=ca,src=/etc/ssl/certs/ca-certificates.crt`.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
ARG JRE_IMAGE=eclipse-temurin:17-jre
ARG DEBIAN_IMAGE=debian:bookworm-slim

# Layers are in the order of how seldom they change: a change of our own sources makes a few megabytes anew.

# ---- what services need of the lock, in /opt/venv
FROM ${PYTHON_IMAGE} AS build
ARG PIP_INDEX_URL=
ENV UV_SYSTEM_CERTS=1 UV_LINK_MODE=copy UV_HTTP_TIMEOUT=180 UV_NO_CACHE=1 VIRTUAL_ENV=/opt/venv PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements-uv.lock ./
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,required=false \
    python3 -m venv /opt/build && /opt/build/bin/pip install --quiet --require-hashes -r requirements-uv.lock
COPY requirements.lock pyproject.toml ./
# uv does not read pip's configuration. Only what the lock names is installed, and its digests are checked
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,required=false \
    index=$(/opt/build/bin/pip config get global.index-url 2>/dev/null || true); \
    if [ -n "${PIP_INDEX_URL:-$index}" ]; then export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-$index}"; fi; \
    python3 -m venv --without-pip /opt/venv && /opt/build/bin/uv pip install --verify-hashes --compile-bytecode \
        -c requirements.lock -r pyproject.toml --extra server --extra gateway --extra services \
 && grep -A60 '^setuptools==' requirements.lock | sed -n '1p; 2,/^[a-z]/{/^ /p}' >/tmp/setuptools.lock \
 && /opt/build/bin/pip install --quiet --require-hashes -r /tmp/setuptools.lock \
 && find /opt/venv -type d \( -name tests -o -name include \) -path '*/pyarrow/*' -prune -exec rm -rf {} + \
 && find /opt/venv -type d -name tests -path '*/site-packages/*/tests' -prune -exec rm -rf {} +

# ---- our own packages, in /opt/app
FROM build AS app
COPY . .
# the services stand beside the package, as in a checkout
RUN /opt/build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
 && /opt/build/bin/uv pip install --quiet --no-deps --compile-bytecode --target /opt/app /tmp/wheel/*.whl \
 && cp -r gateway schemas services spark_jobs /opt/app && chmod -R a+rX /opt/app \
 && cd /opt/app && python3 -m compileall -q gateway schemas services spark_jobs

# ---- Java out of its image, without links into the rest of it
FROM ${JRE_IMAGE} AS java
RUN cp -rL "$JAVA_HOME" /opt/jre && rm -rf /opt/jre/man /opt/jre/legal /opt/jre/lib/server/classes_nocoops.jsa

# ---- pyspark without the parts that no job of ours touches; and what state in an object store needs
FROM build AS pyspark
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,required=false \
    index=$(/opt/build/bin/pip config get global.index-url 2>/dev/null || true); \
    if [ -n "${PIP_INDEX_URL:-$index}" ]; then export UV_DEFAULT_INDEX="${PIP_INDEX_URL:-$index}"; fi; \
    /opt/build/bin/uv pip install --verify-hashes --compile-bytecode --target /opt/pyspark --no-deps -c requirements.lock pyspark py4j \
        s3fs aiobotocore botocore aioitertools jmespath wrapt \
 && cd /opt/pyspark/pyspark && rm -rf examples data licenses \
 && cd jars && rm -f hive-*.jar derby*.jar datanucleus-*.jar spark-hive*.jar spark-mllib*.jar breeze*.jar spire*.jar cats-kernel*.jar \
        lapack-*.jar blas-*.jar arpack*.jar rocksdbjni-*.jar spark-connect_*.jar spark-repl_*.jar spark-graphx*.jar

# ---- the pinned jars of Spark's Kafka source
FROM pyspark AS jars
ARG PENSTOCK_MAVEN_URL=
COPY --from=app /opt/app /opt/app
RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt,required=false --mount=type=cache,target=/cache \
    PENSTOCK_CACHE_DIR=/cache PYTHONPATH=/opt/app:/opt/pyspark /opt/venv/bin/python -c 'from penstock.setup.jar_download import fetch; fetch("spark")' \
 && cp -r /cache /opt/penstock && chmod -R a+rX /opt/penstock

# ---- what both kinds of service stand on
FROM ${PYTHON_IMAGE} AS base
# a process that reaps what others leave behind is number one; backups may go to an rsync daemon
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends tini rsync >/dev/null && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin \
 && useradd --uid 10001 --user-group --home-dir /tmp --no-create-home --shell /usr/sbin/nologin penstock \
 && install -d -o penstock -g penstock /data /data/state /data/segments /data/backup /data/federation /data/tables && install -d -m 0700 -o penstock -g penstock /data/secrets
COPY --chmod=0755 deploy/compose/ready.sh /usr/local/bin/ready
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/app/bin:/opt/venv/bin:$PATH PYTHONPATH=/opt/app PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp \
    PENSTOCK_HOST=0.0.0.0 PENSTOCK_HEALTH_PORT=7790 PENSTOCK_DATA_DIR=/data ARROW_DEFAULT_MEMORY_POOL=system MALLOC_ARENA_MAX=2
WORKDIR /data
ENTRYPOINT ["tini", "--"]
# a service that cannot reach Kafka for a while gets well by itself; `up --wait` gives up at the first that is unhealthy
HEALTHCHECK --interval=10s --timeout=5s --retries=6 --start-period=120s --start-interval=1s CMD ["ready", "7790"]

# ---- every service but spark_jobs
FROM base AS service
COPY --from=app /opt/app /opt/app
USER 10001:10001
CMD ["penstock", "--help"]

# ---- Spark: master, worker, driver
FROM base AS spark
COPY --from=java /opt/jre /opt/jre
COPY --from=pyspark /opt/pyspark /opt/pyspark
COPY --chmod=0755 deploy/compose/spark.sh /usr/local/bin/spark-daemon
COPY --from=jars /opt/penstock /opt/penstock
COPY --from=app /opt/app /opt/app
ENV JAVA_HOME=/opt/jre PATH=/opt/app/bin:/opt/venv/bin:/opt/jre/bin:$PATH PENSTOCK_CACHE_DIR=/opt/penstock \
    PYTHONPATH=/opt/app:/opt/pyspark PYSPARK_PYTHON=/opt/venv/bin/python SPARK_LOCAL_DIRS=/tmp JDK_JAVA_OPTIONS=-XX:-UsePerfData
USER 10001:10001
CMD ["python", "-m", "spark_jobs"]

# ---- the way in: stable ports before any number of gateways and notifiers
FROM ${DEBIAN_IMAGE} AS edge
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends haproxy >/dev/null && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
COPY deploy/compose/haproxy.cfg /etc/haproxy/haproxy.cfg
COPY --chmod=0755 deploy/compose/ready.sh /usr/local/bin/ready
USER haproxy
CMD ["haproxy", "-W", "-db", "-f", "/etc/haproxy/haproxy.cfg"]
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --start-interval=1s CMD ["ready", "7799"]
