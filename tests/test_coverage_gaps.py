"""What is said of what tests run."""

from tests.coverage_gaps import LONG, Gap, gaps, report


def test_a_gap_is_statements_one_after_the_other_of_which_none_was_run() -> None:
    assert list(gaps("a.py", [1, 2, 9], [4, 6, 7, 11])) == [Gap("a.py", 4, 7), Gap("a.py", 11, 11)]


def test_long_gaps_are_named_and_short_ones_only_counted() -> None:
    long_gap, short_gap = list(range(10, 10 + LONG + 1)), list(range(10, 10 + LONG))
    files = {
        "long.py": {"executed_lines": [1], "missing_lines": long_gap},
        "short.py": {"executed_lines": [1], "missing_lines": short_gap},
    }
    totals = {"covered_lines": 3, "num_statements": 4, "covered_branches": 1, "num_branches": 2}
    assert report({"files": files, "totals": totals}).splitlines() == [
        "Coverage: 75.0% of 4 lines, 50.0% of 2 branches",
        f"  no test runs long.py:10-{10 + LONG} ({LONG + 1} lines)",
    ]
