"""What kcga would do with a group that is not its own, and what that would save: no clock, client, thread or log."""
