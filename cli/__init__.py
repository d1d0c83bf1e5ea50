"""The `kcga` command, and the composition of the processes that kcga is made of."""
