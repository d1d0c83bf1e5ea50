"""The loads of the comparison: what they are called after is what they do, the same for the same seed."""

import numpy as np
import pytest

from bench.latency.shapes import PARTITIONS, SHAPES, Load, load

STEPS = 240


def total(shape: str) -> np.ndarray:
    sums: np.ndarray = load(shape, STEPS, 1).shares.sum(axis=1)
    return sums


@pytest.mark.parametrize("shape", SHAPES)
def test_every_load_has_a_speed_for_each_partition_and_step_that_a_consumer_can_keep_up_with(shape: str) -> None:
    made = load(shape, STEPS, 1)
    assert made.shares.shape == (STEPS, PARTITIONS) == (STEPS, len(set(made.partitions)))
    assert made.shares.min() >= 0
    assert made.shares.max() <= 1


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_seed_makes_the_same_load_and_another_one_another(shape: str) -> None:
    def shares(made: Load) -> list[list[float]]:
        rows: list[list[float]] = made.shares.tolist()
        return rows

    assert shares(load(shape, 20, 1)) == shares(load(shape, 20, 1))
    assert shares(load(shape, 20, 1)) != shares(load(shape, 20, 2))


def test_a_steady_load_is_steady_and_a_day_has_a_night() -> None:
    assert total("steady").max() / total("steady").min() < 1.04
    day = total("diurnal")
    assert day[STEPS // 2 - 10 : STEPS // 2 + 10].mean() > 3 * day[:10].mean()


def test_bursts_are_those_of_whole_topics() -> None:
    made = load("bursty", STEPS, 1)
    by_topic = {
        topic: made.shares[:, [place for place, name in enumerate(made.partitions) if name.topic == topic]].sum(axis=1)
        for topic in {name.topic for name in made.partitions}
    }
    ratios = [np.round(sums / sums.min(), 6) for sums in by_topic.values()]
    assert any(ratio.max() > 3 for ratio in ratios)
    assert all(ratio.max() <= 4 for ratio in ratios)


def test_steps_are_from_one_moment_to_the_next() -> None:
    changes = np.abs(np.diff(np.log(total("steps"))))
    assert set(np.flatnonzero(changes > 0.5) % 30) == {9, 19}
    assert np.sort(changes)[: -STEPS // 15].max() < 0.1
