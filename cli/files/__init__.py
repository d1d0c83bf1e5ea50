"""The files that commands read and write: snapshots, streams, plans, figures."""
