"""How long records wait to be read, simulated: kcga beside what users have today. `python -m bench.latency`."""
