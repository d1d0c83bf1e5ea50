"""Decides how many consumers there are and which partition each reads, and carries it out: stop, acknowledge, start."""
