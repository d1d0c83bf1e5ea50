"""The `kcga` command: what it is asked, the files that it reads and writes, terminal, plots, manifests."""
