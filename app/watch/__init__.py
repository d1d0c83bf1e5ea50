"""Beside a group that is not kcga's: how it stands, and what kcga would do with it. Nothing is written, to anybody."""
