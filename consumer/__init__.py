"""A consumer: reads the partitions that it is told to, and writes every record to the lake table of its topic.

Decisions, without a clock, a client or a log: `commands`, `claims`, `append_note`, `lease`, `rate`, `spans`, `batch`,
`cycle`, `backoff`, `table`, `location`, `settings`. What talks to Kafka: `fetcher`, `offsets`, `channel`, `kafka`; to
the lake: `lake`, `session`, `writing`, `verify`, `maintenance`; to both: `takeover`. The loop over them: `runner`.
"""
