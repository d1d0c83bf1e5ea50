from hypothesis import given
from hypothesis import strategies as st

from consumer.decide.lease import Lease

LEASE = Lease(length_s=15.0, runs_from=100.0)


def test_a_lease_runs_out_after_its_length() -> None:
    assert not LEASE.over(114.9)
    assert LEASE.over(115.0)


def test_an_acknowledged_report_renews_it_from_when_it_was_sent() -> None:
    renewed = LEASE.renewed(sent_at=104.0, now=109.0)
    assert not renewed.over(118.9)
    assert renewed.over(119.0)


def test_an_older_report_that_is_acknowledged_late_does_not_shorten_it() -> None:
    assert LEASE.renewed(sent_at=98.0, now=109.0) == LEASE


def test_a_lease_that_has_run_out_stays_so_whatever_is_acknowledged() -> None:
    """A process that was frozen sends a report when it wakes up, and it arrives."""
    assert LEASE.renewed(sent_at=159.5, now=160.0).over(160.0)


@given(st.lists(st.tuples(st.floats(0.0, 5.0), st.floats(0.0, 30.0)), max_size=20), st.floats(0.0, 60.0))
def test_it_is_never_held_longer_than_its_length_after_the_newest_acknowledged_report(
    reports: list[tuple[float, float]], asked_after_s: float
) -> None:
    lease, now, newest = LEASE, LEASE.runs_from, LEASE.runs_from
    was_over = False
    for pause_s, on_its_way_s in reports:
        now += pause_s
        sent_at = now - on_its_way_s
        newest = max(newest, sent_at)
        lease = lease.renewed(sent_at, now)
        was_over = was_over or lease.over(now)
        assert lease.over(now) or not was_over
    now += asked_after_s
    assert lease.over(now) or now < newest + lease.length_s
