# One image for all components: `kcga monitor`, `kcga controller`, `kcga consumer`, `kcga spark`.
#
#     docker build --tag kcga .
#
# And one without a JVM, for all but `kcga spark` and consumers with a session of Spark of their own (spark_master):
#
#     docker build --target without-jvm --tag kcga:without-jvm .
#
# Both run as nobody in particular, and need no file system that they can write to but /tmp. For a release, BASE is named
# by its digest (`make images`).
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
# What changes seldom comes first: the versions that are locked, by their hashes, and jars.
COPY requirements.txt ./
RUN python3 -m venv /opt/kcga \
    && /opt/kcga/bin/python -m pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements.txt
COPY . .
RUN /opt/kcga/bin/python -m pip install --no-cache-dir --disable-pip-version-check --no-deps . \
    && KCGA_CACHE=/opt/kcga/cache /opt/kcga/bin/python -c "from app.spark_needs import needs; needs(['gs', 's3a'])" \
    && /opt/kcga/bin/python -m compileall -q /opt/kcga/lib \
    && KCGA_CACHE=/opt/kcga/cache /opt/kcga/bin/python -m sandbox.class_data

FROM build AS build-without-jvm
# The folder stays: PySpark takes itself for what it is by it.
RUN rm -rf /opt/kcga/cache /opt/kcga/class-data /opt/kcga/lib/python3.*/site-packages/pyspark/jars/*

FROM ${BASE} AS base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 tini \
    && rm -rf /var/lib/apt/lists/* /tmp/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin kcga
ENV KCGA_CACHE=/opt/kcga/cache \
    PATH=/opt/kcga/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
ENTRYPOINT ["tini", "--", "kcga"]

FROM base AS without-jvm
COPY --from=build-without-jvm /opt/kcga /opt/kcga
USER 10001:10001

FROM base
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless \
    && rm -rf /var/lib/apt/lists/* /tmp/*
COPY --from=build /opt/kcga /opt/kcga
USER 10001:10001
