"""A group of 10,000 partitions and 1,000 consumers over a real broker: `python -m bench.scale`."""
