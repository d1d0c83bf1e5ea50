"""A whole group on this machine: a broker, Spark, a load, one demonstration and its proof. Tests and benches stand on
it."""
