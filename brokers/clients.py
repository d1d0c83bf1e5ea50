"""Settings that clients of several components share, by librdkafka's names."""

REQUEST_LIMIT_S = 10.0
"""A request to the brokers that takes longer has failed."""

PATIENCE = {"socket.timeout.ms": int(1000 * REQUEST_LIMIT_S), "topic.metadata.refresh.interval.ms": 10_000}
"""For a broker that hangs: with the clients' defaults it would hold everything up for a minute."""

QUIET = {"log_level": 0}
"""A client that cannot connect says so on standard error twenty times a second; it tells `error_cb`, too, or whoever
asked. With `log_level` in `kafka.client` it speaks again."""

LARGE_MESSAGES = {"message.max.bytes": 50_000_000, "compression.type": "lz4"}
"""What names every partition can be larger than what clients send unless told otherwise; brokers judge it by its
compressed size, about a tenth."""

NO_COMMITS = {"enable.auto.commit": False, "enable.auto.offset.store": False}
"""For who reads: the group's commits are made by hand, or not at all."""

ON_NEW_TOPICS = {"max.in.flight.requests.per.connection": 1}
"""For an idempotent producer whose topic may just have been created: one request at a time. With several, a broker
before 4.5 can refuse the first, since the log is not there yet, and take the second; it has no place for the first any
more, and the client, which takes it for written, tells that it was (KAFKA-15591)."""
