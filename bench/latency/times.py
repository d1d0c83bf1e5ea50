"""How long the steps of a handover take, from a run of `kcga up --keep FOLDER`: `python -m bench.latency.times FOLDER`.

The simulation draws from what was measured. It is kept in `measured.json`, with the machine and the day.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from bench.figures import machine

MEASURED = Path(__file__).with_name("measured.json")


@dataclass(frozen=True, slots=True)
class Times:
    """Each a list of what was measured, in seconds, in ascending order."""

    source: str
    """What was run, where and when."""
    creation_s: tuple[float, ...]
    """From the creation of a consumer until it has its Spark session: it is ready."""
    stop_s: tuple[float, ...]
    """From a stop command until it is carried out: the batch in hand is written and committed first."""
    start_s: tuple[float, ...]
    """From a start command until the partition is read: the batch in hand, and the taking over."""

    @property
    def words(self) -> str:
        return "; ".join(
            f"{what} {values[0]:.1f} to {values[-1]:.1f} s, median {median(values):.1f} s ({len(values)} measured)"
            for what, values in (("creation", self.creation_s), ("stop", self.stop_s), ("start", self.start_s))
        )


def load(file: Path = MEASURED) -> Times:
    kept = json.loads(file.read_text(encoding="utf-8"))
    return Times(kept["source"], *(tuple(kept[name]) for name in ("creation_s", "stop_s", "start_s")))


def measure(folder: Path) -> Times:
    """What the logs of the controller and its consumers in `folder` tell."""
    created: dict[int, float] = {}
    commands: dict[tuple[int, str, str], float] = {}
    controller = list(_lines(folder / "controller.log"))
    spans: dict[str, list[float]] = {"creation": [], "stop": [], "start": []}
    consumers = [
        (int(log.stem.rpartition("-")[2]), at, line)
        for log in (folder / "consumers").glob("consumer-*.log")
        for at, line in _lines(log)
    ]
    happened = [(at, 0, line) for at, line in controller] + [(at, number, line) for number, at, line in consumers]
    for at, number, line in sorted(happened, key=lambda each: each[0]):
        match line["event"]:
            case "a consumer is created":
                created[line["consumer"]] = at
            case "command":
                for partition in line["partitions"]:
                    commands.setdefault((line["consumer"], line["action"], partition), at)
            case "has a Spark session" if number in created:
                spans["creation"].append(at - created.pop(number))
            case "obeyed":
                for partition in line["stopped"]:
                    if (sent := commands.pop((number, "stop", partition), None)) is not None:
                        spans["stop"].append(at - sent)
            case "reads" if (sent := commands.pop((number, "start", line["partition"]), None)) is not None:
                spans["start"].append(at - sent)
    source = f"kcga up, on {machine()}, {datetime.now(tz=UTC):%Y-%m-%d}"
    ordered = {name: tuple(round(value, 2) for value in sorted(values)) for name, values in spans.items()}
    return Times(source, ordered["creation"], ordered["stop"], ordered["start"])


def _lines(log: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
            yield datetime.fromisoformat(line["timestamp"]).timestamp(), line
        except (ValueError, KeyError):  # what a library prints
            continue


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency.times", description="Handovers of a run, measured.")
    parser.add_argument("folder", type=Path, help="of kcga up --keep")
    times = measure(parser.parse_args().folder)
    MEASURED.write_text(json.dumps(asdict(times), indent=2) + "\n", encoding="utf-8")
    print(times.words)


if __name__ == "__main__":
    main()
