"""What `kcga up` shows while it runs, and what it proves in the end: folded from the messages on kcga's own topics."""
