"""`kcga up`: the whole system on this machine, under a load that rises and falls, with proof at the end."""

from cli.up.command import UpOptions, up

__all__ = ["UpOptions", "up"]
