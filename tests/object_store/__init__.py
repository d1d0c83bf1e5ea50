"""Servers of object stores' APIs on this machine."""

BUCKET = "lakes"
