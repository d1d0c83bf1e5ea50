"""The authors' recorded runs, played through the window: what their producer wrote must give what their monitor saw.

`producer.log` belongs to `monitor.log`, measured every 57 ms; `producer_t1.log` to `monitor_t1.log`, measured every
second, its speeds cut to whole numbers.

An entry of a producer log is one record that was written at its time. Its size is that of all others: the time from
one entry to the next grows with 1 / speed, with a slope of 122.9 bytes in the one log and 123.0 in the other (and
7 ms that the producer does not count), and the first step in `monitor.log`, 4.1019 bytes/s over 29.99 s, is 123 bytes
too. The log is measured when an entry of the monitor log says so. When that begins the authors' monitor has already
measured an empty log for a whole window, since its first step is divided by 30 s and not by the time since its first
entry; so the replay begins one window earlier.
"""

import json
import math
from pathlib import Path

import pytest

from monitor.measure.growth import LogMeasurement
from monitor.measure.window import SpeedWindow

REFERENCE = Path(__file__).parents[3] / "shared" / "reference" / "monitor"
RECORD_BYTES = 123
WINDOW_S = 30.0

Log = list[tuple[float, float]]
"""(speed in bytes/s, seconds since the epoch)"""


def recorded(name: str) -> Log:
    file = REFERENCE / name
    if not file.exists():
        pytest.skip(f"the reference data is not here: {file}")
    return [(speed, milliseconds / 1000) for speed, milliseconds in json.loads(file.read_text())]


def replayed(producer: Log, monitor: Log) -> list[float]:
    written_at = [at for _, at in producer]
    measured_at = [at for _, at in monitor]
    interval_s = (measured_at[-1] - measured_at[0]) / (len(measured_at) - 1)
    steps_before = math.ceil(WINDOW_S / interval_s)
    window = SpeedWindow(WINDOW_S, hold_s=0)
    speeds = []
    for at in [*(measured_at[0] - step * interval_s for step in range(steps_before, 0, -1)), *measured_at]:
        stored = RECORD_BYTES * sum(written <= at for written in written_at)
        window.add(LogMeasurement(at, topic_id="recorded", leader=1, stored_bytes=stored))
        speed = window.speed(at)
        speeds.append(speed.bytes_per_s if speed else math.nan)
    return speeds[steps_before:]


@pytest.mark.parametrize("run", ["", "_t1"])
def test_the_recorded_producer_gives_the_recorded_monitor(run: str) -> None:
    monitor = recorded(f"monitor{run}.log")
    speeds = replayed(recorded(f"producer{run}.log"), monitor)
    errors = [speed - seen for speed, (seen, _) in zip(speeds, monitor, strict=True)]
    rmse = math.sqrt(math.fsum(error**2 for error in errors) / len(errors))
    print(f"monitor{run}.log: RMSE {rmse:.2f} bytes/s over {len(errors)} measurements")  # noqa: T201
    assert rmse <= 5
