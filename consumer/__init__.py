"""A consumer: reads the partitions that it is told to, and writes every record to the lake table of its topic.

What it decides is in `decide`: `machine`, with `events`, `actions` and what these rest on. What talks to Kafka:
`fetcher`, `offsets`, `channel`, `kafka`; to the lake: `lake`, `session`, `verify`, `maintenance`. What performs it all:
`runner`.
"""
