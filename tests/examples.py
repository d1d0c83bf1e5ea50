"""How many examples properties are tried on, and of what."""

import os

import hypothesis
from hypothesis import strategies as st

QUICK, WHOLE, DEEP = "quick", "whole", "deep"
"""The profiles of `make unit`, of `make test` and of `make explore`: `--hypothesis-profile`."""
TIMES = 10
"""What each has of the examples of the one before."""


def register_profiles() -> None:
    """On a busy machine any example may take a second. In CI the examples are the same each time, as hypothesis has it
    by default: what they find there is of the change. Everywhere else they are new ones in each run."""
    whole = hypothesis.settings(deadline=None, derandomize=bool(os.environ.get("CI")))
    hypothesis.settings.register_profile(WHOLE, whole)
    hypothesis.settings.register_profile(QUICK, whole, max_examples=100 // TIMES)
    hypothesis.settings.register_profile(DEEP, deadline=None, max_examples=100 * TIMES)
    hypothesis.settings.load_profile(WHOLE)


def examples(whole: int) -> int:
    """So many in all tests, a share of them where it has to be quick, and many more where it may take long."""
    share = {QUICK: 1 / TIMES, DEEP: TIMES}.get(hypothesis.settings.get_current_profile_name(), 1)
    return max(1, int(whole * share))


PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
"""What `str.isprintable` takes."""
