"""What halving and doubling a parameter changes is told by one line of the page."""

from dataclasses import asdict

from bench.parameters import NOT_HERE, SAME, Run, row, variants
from solver.parameters import TUNED


def test_each_parameter_is_halved_and_doubled_alone() -> None:
    is_ = asdict(TUNED)
    for (name, _), tuned in variants().items():
        changed = {field: value for field, value in asdict(tuned).items() if value != is_[field]}
        assert set(changed) == (set() if name == SAME else {name})
    assert {name for name, _ in variants()} == {SAME, *is_} - set(NOT_HERE)


def test_a_share_stays_a_share_and_a_count_is_one_at_least() -> None:
    assert all(0 < tuned.integers <= 1 and 0 < tuned.relaxing <= 1 for tuned in variants().values())
    assert all(value > 0 for tuned in variants().values() for value in asdict(tuned).values())


def test_time_is_compared_where_both_have_a_proof_and_plans_where_one_has_none() -> None:
    before = [Run(2.0, 100.0, 100.0, True), Run(4.0, 200.0, 190.0, False), Run(1.0, 50.0, 50.0, True)]
    after = [Run(3.0, 100.0, 100.0, True), Run(4.0, 202.0, 190.0, False), Run(1.0, 50.0, 45.0, False)]
    assert row("width", "0.1", before, after) == ("width", "0.05", "0.1", "1/3", "1.50", "+0.500", "+1.000", "-5.000")


def test_where_all_is_proven_there_is_no_plan_to_compare() -> None:
    proven = [Run(2.0, 100.0, 100.0, True)]
    assert row(SAME, "", proven, proven) == (SAME, "", "", "1/1", "1.00", "", "", "")
