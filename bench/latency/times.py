"""How long the steps of a handover take, from runs of `kcga up --keep FOLDER`: `python -m bench.latency.times FOLDER`.

The simulation draws from what was measured. It is kept in `measured.json`, with the machine and the day.
"""

import argparse
import json
from collections.abc import Iterable, Iterator
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


def measure(folders: Iterable[Path]) -> Times:
    """What the logs of the controller and its consumers in each of `folders` tell."""
    spans: dict[str, list[float]] = {"creation": [], "stop": [], "start": []}
    for folder in folders:
        created: dict[int, float] = {}
        commands: dict[tuple[int, str, str], float] = {}
        for at, number, line in _happened(folder):
            match line["event"]:
                case "a consumer is created":
                    created[line["consumer"]] = at
                case "a command is sent":
                    for partition in line["partitions"]:
                        commands.setdefault((line["consumer"], line["action"], partition), at)
                case "a Spark session is there" if number in created:
                    spans["creation"].append(at - created.pop(number))
                case "a command was obeyed":
                    for partition in line["stopped"]:
                        if (sent := commands.pop((number, "stop", partition), None)) is not None:
                            spans["stop"].append(at - sent)
                case "a partition is read":
                    if (sent := commands.pop((number, "start", line["partition"]), None)) is not None:
                        spans["start"].append(at - sent)
    source = f"kcga up, on {machine()}, {datetime.now(tz=UTC):%Y-%m-%d}"
    ordered = {name: tuple(round(value, 2) for value in sorted(values)) for name, values in spans.items()}
    return Times(source, ordered["creation"], ordered["stop"], ordered["start"])


def unread_s(folder: Path) -> float:
    """For how long partitions had no reader between two consumers, in partition-seconds: from the stop command, which
    ends the reading, until the next one reads."""
    stopped: dict[str, float] = {}
    unread = 0.0
    for at, number, line in _happened(folder):
        if line["event"] == "a command is sent" and line["action"] == "stop":
            stopped.update(dict.fromkeys(line["partitions"], at))
        elif line["event"] == "a partition is read" and number and line["partition"] in stopped:
            unread += at - stopped.pop(line["partition"])
    return unread


def _happened(folder: Path) -> list[tuple[float, int, dict[str, Any]]]:
    """When, to which consumer (0: the controller), and what, in the order of time."""
    logs = [(0, folder / "controller.log")]
    logs += [(int(log.stem.rpartition("-")[2]), log) for log in (folder / "consumers").glob("consumer-*.log")]
    happened = [(at, number, line) for number, log in logs for at, line in _lines(log)]
    return sorted(happened, key=lambda each: each[:2])


def _lines(log: Path) -> Iterator[tuple[float, dict[str, Any]]]:
    for text in log.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
            yield datetime.fromisoformat(line["timestamp"]).timestamp(), line
        except (ValueError, KeyError, TypeError):  # what a library prints
            continue


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.latency.times", description="Handovers of a run, measured.")
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER", help="of kcga up --keep")
    times = measure(parser.parse_args().folders)
    MEASURED.write_text(json.dumps(asdict(times), indent=2) + "\n", encoding="utf-8")
    print(times.words)


if __name__ == "__main__":
    main()
