"""Each rule of the heuristics on the smallest instance that shows it."""

from collections.abc import Mapping

import pytest

from domain.assignment import Assignment
from domain.partitions import TopicPartition
from heuristics import HEURISTICS, pack

CAPACITY = 100.0
DECREASING = ("nfd", "ffd", "wfd", "bfd")
MODIFIED = ("mwf", "mwfp", "mbf", "mbfp")


def packed(
    name: str, items: Mapping[str, tuple[float, int | None]], *, first_consumer: int = 1, seed: int = 0
) -> dict[int, set[str]]:
    """Who holds what, of partitions given as topic -> (speed, current consumer)."""
    plan = pack(
        name,
        {TopicPartition(topic, 0): speed for topic, (speed, _) in items.items()},
        CAPACITY,
        Assignment({TopicPartition(topic, 0): owner for topic, (_, owner) in items.items() if owner is not None}),
        first_consumer=first_consumer,
        seed=seed,
    )
    return {consumer: {partition.topic for partition in held} for consumer, held in plan.by_consumer.items()}


def test_the_twelve_have_the_names_of_the_paper() -> None:
    assert HEURISTICS == ("nf", "nfd", "ff", "ffd", "wf", "wfd", "bf", "bfd", "mwf", "mwfp", "mbf", "mbfp")


@pytest.mark.parametrize("name", DECREASING)
def test_a_new_consumer_is_the_current_one_of_its_first_partition(name: str) -> None:
    assert packed(name, {"a": (60, None), "b": (55, 7), "c": (51, 3)}) == {1: {"a"}, 7: {"b"}, 3: {"c"}}


@pytest.mark.parametrize("name", DECREASING)
def test_a_new_consumer_is_the_lowest_that_is_not_open_where_the_current_one_is(name: str) -> None:
    assert packed(name, {"a": (60, 1), "b": (55, 1), "c": (51, 1)}) == {1: {"a"}, 2: {"b"}, 3: {"c"}}


@pytest.mark.parametrize("name", HEURISTICS)
def test_new_consumers_are_numbered_from_first_consumer_on(name: str) -> None:
    assert packed(name, {"a": (60, None), "b": (55, None)}, first_consumer=5).keys() == {5, 6}


@pytest.mark.parametrize("name", [*DECREASING[1:], *MODIFIED])
def test_a_current_consumer_below_first_consumer_stays(name: str) -> None:
    assert packed(name, {"a": (60, 0), "b": (55, None)}, first_consumer=5) == {0: {"a"}, 5: {"b"}}


@pytest.mark.parametrize("name", ["nf", "nfd"])
def test_next_fit_starts_on_the_lowest_consumer_whoever_has_the_first_partition(name: str) -> None:
    assert packed(name, {"a": (60, 7)}) == {1: {"a"}}


def test_next_fit_never_looks_back() -> None:
    assert packed("nfd", {"a": (70, None), "b": (60, None), "c": (30, None), "d": (20, None)}) == {
        1: {"a"},
        2: {"b", "c"},
        3: {"d"},
    }


def test_first_fit_goes_by_number_and_not_by_when_a_consumer_was_opened() -> None:
    assert packed("ffd", {"a": (60, 5), "b": (55, 2), "c": (30, None)}) == {5: {"a"}, 2: {"b", "c"}}


def test_worst_fit_takes_the_least_loaded_consumer_and_best_fit_the_most_loaded() -> None:
    items = {"a": (60, 1), "b": (50, 2), "c": (55, 3), "d": (10, None)}
    assert packed("wfd", items) == {1: {"a"}, 2: {"b", "d"}, 3: {"c"}}
    assert packed("bfd", items) == {1: {"a", "d"}, 2: {"b"}, 3: {"c"}}


@pytest.mark.parametrize("name", ["wfd", "bfd"])
def test_of_equal_loads_the_lower_number_takes_it(name: str) -> None:
    assert packed(name, {"a": (60, 5), "b": (60, 2), "c": (10, None)}) == {5: {"a"}, 2: {"b", "c"}}


def test_equal_speeds_are_taken_in_partition_order() -> None:
    assert packed("ffd", {"c": (60, None), "a": (60, None), "b": (60, None)}) == {1: {"a"}, 2: {"b"}, 3: {"c"}}


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_partition_above_the_capacity_is_alone_even_beside_idle_ones(name: str) -> None:
    plan = packed(name, {"big": (101, 1), "idle": (0, 1), "small": (10, 1)})
    assert {"big"} in plan.values()


@pytest.mark.parametrize("name", HEURISTICS)
def test_a_full_consumer_takes_an_idle_partition(name: str) -> None:
    assert packed(name, {"full": (100, 1), "idle": (0, 1)}) == {1: {"full", "idle"}}


@pytest.mark.parametrize("name", HEURISTICS)
def test_idle_partitions_share_one_consumer(name: str) -> None:
    assert list(packed(name, dict.fromkeys("abcd", (0, None))).values()) == [set("abcd")]


@pytest.mark.parametrize("name", MODIFIED)
def test_modified_any_fit_gives_up_all_that_is_smaller_than_the_first_misfit(name: str) -> None:
    """20 and 10 would fit beside 60, but 50 does not, so all three look for a place anew."""
    plan = packed(name, {"60": (60, 0), "50": (50, 0), "20": (20, 0), "10": (10, 0)}, first_consumer=0)
    assert plan == ({0: {"60", "10"}, 1: {"50", "20"}} if name.startswith("mw") else {0: {"60", "20", "10"}, 1: {"50"}})


@pytest.mark.parametrize("name", MODIFIED)
def test_modified_any_fit_moves_the_smallest_partitions_first_and_stops_at_the_first_that_fits_nowhere(
    name: str,
) -> None:
    """Consumer 2 gives 10 to consumer 1 and keeps 25 and 30: 25 does not fit any more, so 30 is not even tried."""
    plan = packed(name, {"70": (70, 1), "30": (30, 2), "25": (25, 2), "10": (10, 2)})
    assert plan == {1: {"70", "10"}, 2: {"30", "25"}}


@pytest.mark.parametrize(
    ("name", "first"), [("mwf", "total"), ("mbf", "total"), ("mwfp", "largest"), ("mbfp", "largest")]
)
def test_modified_any_fit_begins_with_the_greatest_total_or_largest_partition(name: str, first: str) -> None:
    """Whoever begins opens first and keeps; the other one gives it the partition of 20."""
    plan = packed(name, {"60": (60, 1), "20": (20, 1), "45": (45, 2), "40": (40, 2)})
    assert (
        plan
        == {
            "total": {2: {"45", "40"}, 1: {"60", "20"}},
            "largest": {1: {"60", "20"}, 2: {"45", "40"}},
        }[first]
    )


@pytest.mark.parametrize("name", MODIFIED)
def test_of_equal_keys_modified_any_fit_begins_with_the_lower_number(name: str) -> None:
    """Consumer 2 keeps its 60 and gets the 40 of consumer 9, which is the other way round where 9 begins."""
    plan = packed(name, {"a": (60, 9), "b": (40, 9), "c": (60, 2), "d": (40, 2)})
    assert plan == {2: {"c", "d"}, 9: {"a", "b"}}


@pytest.mark.parametrize("name", MODIFIED)
def test_modified_any_fit_dissolves_a_consumer_whose_partitions_fit_elsewhere(name: str) -> None:
    assert packed(name, {"a": (60, 1), "b": (30, 2)}) == {1: {"a", "b"}}


@pytest.mark.parametrize("name", HEURISTICS)
def test_partitions_that_vanished_are_left_aside(name: str) -> None:
    gone, here = TopicPartition("gone", 0), TopicPartition("here", 0)
    assert set(pack(name, {here: 10.0}, CAPACITY, Assignment({gone: 1, here: 1}))) == {here}


@pytest.mark.parametrize("name", HEURISTICS)
def test_no_partitions_need_no_consumers(name: str) -> None:
    assert pack(name, {}, CAPACITY, Assignment({TopicPartition("gone", 0): 1})) == Assignment()


@pytest.mark.parametrize("name", HEURISTICS)
def test_loads_are_summed_in_plain_floating_point(name: str) -> None:
    """0.1 + 0.1 + 0.1 is 0.30000000000000004: one ulp too much for a capacity of 0.3."""
    speeds = {TopicPartition("t", number): 0.1 for number in range(3)}
    assert len(pack(name, speeds, 0.3).consumers) == 2


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="no heuristic 'zfd': it must be one of nf, nfd, ff, ffd"):
        pack("zfd", {}, CAPACITY)


@pytest.mark.parametrize("capacity", [0.0, -1.0, float("nan"), float("inf")])
def test_a_capacity_that_is_not_above_zero_is_refused(capacity: float) -> None:
    with pytest.raises(ValueError, match=r"capacity is .*: it must be a number of bytes/s above 0"):
        pack("bfd", {}, capacity)


@pytest.mark.parametrize("speed", [-1.0, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed: float) -> None:
    with pytest.raises(ValueError, match=r"the write speed of t-0 is .*: it must be a number of bytes/s, 0 or more"):
        pack("bfd", {TopicPartition("t", 0): speed}, CAPACITY)


def test_a_negative_first_consumer_is_refused() -> None:
    with pytest.raises(ValueError, match="first_consumer is -1: it must be 0 or more"):
        pack("bfd", {}, CAPACITY, first_consumer=-1)
