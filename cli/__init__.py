"""The `kcga` command: files, terminal and plots."""
