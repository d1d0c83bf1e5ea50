"""The commands that pack partitions without a cluster: solve a snapshot, simulate a stream, generate one."""
