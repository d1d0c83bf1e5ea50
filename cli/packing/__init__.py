"""A stream of write speeds, replayed through engines."""
