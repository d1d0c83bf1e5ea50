"""`kcga doctor`: whether everything that kcga needs is here, a line for each thing, and what to do where it is not."""

from cli.doctor.examination import examine

__all__ = ["examine"]
