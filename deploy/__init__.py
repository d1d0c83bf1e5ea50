"""What `kcga deploy` applies: a base, and overlays that say where."""
