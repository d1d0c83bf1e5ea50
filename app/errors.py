"""The errors that a person can do something about."""

from domain.secrecy import masked


class KcgaError(Exception):
    """One line that says what is wrong, where, and what would be right; ends the command with exit code 1."""

    exit_code = 1

    def __str__(self) -> str:
        """Without secrets, wherever it is shown: it may quote settings, and what others said of them."""
        return masked(super().__str__())


class UsageError(KcgaError):
    """What was asked for cannot be understood or is out of range: options, settings, input files; exit code 2."""

    exit_code = 2
