# One image for all components: `kcga monitor`, `kcga controller`, `kcga consumer`, `kcga spark`.
#
#     docker build --tag kcga .
#
# It runs as nobody in particular, and needs no file system that it can write to but /tmp.
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
    && /opt/kcga/bin/python -m compileall -q /opt/kcga/lib

FROM ${BASE}
# Java is for `kcga spark`, and for consumers with a session of Spark of their own (spark_master).
RUN apt-get update \
    && apt-get install --yes --no-install-recommends openjdk-17-jre-headless python3 tini \
    && rm -rf /var/lib/apt/lists/* /tmp/* \
    && useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin kcga
COPY --from=build /opt/kcga /opt/kcga
ENV KCGA_CACHE=/opt/kcga/cache \
    PATH=/opt/kcga/bin:/usr/bin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
USER 10001:10001
ENTRYPOINT ["tini", "--", "kcga"]
