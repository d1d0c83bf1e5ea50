"""What a component is made of outside of its package: a group's settings, its composition, what it tells over HTTP, and
the programs that it needs (Java, Spark)."""
