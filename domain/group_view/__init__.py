"""Who reads what, and what was decided: folded from messages, for whoever shows it."""
