"""A consumer: reads the partitions that it is told to, and writes every record to its sink: the lake, or a program.

What it decides is in `decide`: `machine`, with `events`, `actions` and what these rest on. What talks to Kafka:
`fetcher`, `offsets`, `channel`, `kafka`; to the lake: `lake`, `session`, `verify`, `maintenance`, `dead_letters` and
`replay`; to a program: `command_sink`; to a schema registry: `registry`, for `decoding`. What performs it all:
`runner`.
"""
