"""How many examples properties are tried on, and of what."""

import hypothesis
from hypothesis import strategies as st

QUICK, WHOLE = "quick", "whole"
"""The profiles of `make unit` and of `make test`: `--hypothesis-profile`."""
SHARE = 10


def register_profiles() -> None:
    """On a busy machine any example may take a second."""
    hypothesis.settings.register_profile(WHOLE, deadline=None)
    hypothesis.settings.register_profile(QUICK, deadline=None, max_examples=100 // SHARE)
    hypothesis.settings.load_profile(WHOLE)


def examples(whole: int) -> int:
    """So many in all tests, and a share of them where it has to be quick."""
    return max(1, whole // SHARE) if hypothesis.settings.get_current_profile_name() == QUICK else whole


PRINTABLE = st.characters(exclude_categories=("C", "Z"), include_characters=" ")
"""What `str.isprintable` takes."""
