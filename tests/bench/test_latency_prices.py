"""What a group pays that is told prices."""

from itertools import product

import pytest

from bench.latency.contenders import Contender, Outcome
from bench.latency.prices import CONTENDERS, INTERVAL_S, PAID, cost, decided, handover_s, page_of
from controller.settings import ControllerSettings


def outcome(
    *, contender: str = "", seed: int = 1, hours: float, unread_s: float, fill_s: float, migrations: int = 10
) -> Outcome:
    return Outcome(
        shape="ramp",
        seed=seed,
        contender=contender,
        kind="kcga",
        mean_consumers=hours,
        consumer_hours=hours,
        p50_s=0.0,
        p99_s=0.0,
        p999_s=0.0,
        unread_s=unread_s,
        unread_fill_s=fill_s,
        migrations=migrations,
        highest_lag=0.0,
        unproven=0,
        forecasts=0,
        forecasts_held=0,
    )


@pytest.mark.parametrize("paid", PAID)
def test_lambdas_for_an_interval_and_for_the_window_follow_from_the_same_prices(paid: float) -> None:
    handed_over_s = 2.0
    prices = {
        "consumer_hour_price": 1.0,
        "unread_partition_second_price": paid * INTERVAL_S / 3600 / handed_over_s,
        "handover_s": handed_over_s,
    }
    assert ControllerSettings(**prices).weight == pytest.approx(decided(paid))
    assert ControllerSettings(**prices, scale_down_window_s=0.0).weight == pytest.approx(paid)


def test_what_is_paid_is_lambda_times_the_rscore_in_consumers_for_an_interval() -> None:
    # Ten partitions of half a consumer's fill each were moved, and had no reader for 2 s each: an Rscore of 5.
    moved = outcome(hours=3.0, unread_s=20.0, fill_s=10.0)
    assert handover_s([moved]) == pytest.approx(2.0)
    assert cost(moved, 4.0, 2.0) == pytest.approx(3.0 + 4.0 * 5.0 * INTERVAL_S / 3600)


def test_where_nothing_moved_one_line_says_what_would_be_right() -> None:
    with pytest.raises(SystemExit, match=r"no partition moved.*--shapes"):
        handover_s([outcome(hours=3.0, unread_s=0.0, fill_s=0.0, migrations=0)])


def test_the_page_sets_lambdas_and_shares_beside_each_other_seed_by_seed() -> None:
    def hours(each: Contender) -> float:
        return {None: 10.0 if each.value in PAID else 9.0, 0.85: 8.1, 0.95: 9.9}[each.share]

    outcomes = [
        outcome(contender=each.name, seed=seed, hours=seed * hours(each), unread_s=5.0, fill_s=0.0)
        for each, seed in product(CONTENDERS, (1, 2, 3))
    ]
    rows = [line for line in page_of(outcomes, "- Seeds: 1 to 3").splitlines() if line.startswith("| ramp")]
    same = "10 to 10 | 0.0 to 0.0 |"
    assert rows[len(PAID) - 1] == f"| ramp | 4 | 0.8 | -10.0 ± 0.0 % | -10.0 ± 0.0 % | -10.0 ± 0.0 % | {same}"
    assert rows[-2:] == [
        f"| ramp | 0.8 | 0.85 | -10.0 ± 0.0 % | -10.0 ± 0.0 % | {same}",
        f"| ramp | 0.8 | 0.95 | +10.0 ± 0.0 % | +10.0 ± 0.0 % | {same}",
    ]
