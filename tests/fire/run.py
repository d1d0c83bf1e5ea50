"""Breaks things at random under load, and counts what is left: `python -m tests.fire.run --for 600`.

One table takes nothing until the load is over, another refuses a record in some thousands; with `--sound` none does.
Afterwards everything that was produced must be in its table or among the dead letters once; no partition may have had
two readers whose reads took effect; the group must have converged; `kcga plan` would have answered each decision as it
was; and nothing may be left behind. The seed is printed: the same seed does the same faults at the same moments again.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import psutil

from app import logs
from app.errors import KcgaError
from bench.pipeline import waits_of
from consumer.verify import verify
from domain.messages import Decision
from domain.partitions import TopicPartition
from tests.fire.faults import Fault, Kind, schedule
from tests.fire.scene import FIRST_REFUSED, MISFITS, PICKY, REFUSED_OF, Scene
from tests.fire.witness import Witness
from tests.recorded_decisions import not_foretold_of, on_topics

CONVERGES_WITHIN_S = 1_200.0
"""A quiet machine takes a minute."""
CONNECTS_AGAIN_AFTER_S = 60.0
DECISIONS_SHOWN = 12
MARK = "KCGA_FIRE"
"""The environment variable by which all processes of a run are known."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left after the fire."""

    seed: int
    seconds: float
    faults: tuple[Fault, ...]
    acknowledged: int
    """Records that the producers were told are in Kafka."""
    in_kafka: int
    read_meanwhile: int
    """Records that the group had committed when the load and the faults ended."""
    in_the_lake: int
    """Records, each partition and offset counted once."""
    doubled: int
    most_readers: int
    """Of a partition at one time, among reads that took effect."""
    converged_after_s: float | None
    """From the end of the load until everything was read by one consumer each; none where that never was."""
    decisions: int
    """Of all controllers."""
    dead_letters: int
    refused: int
    """Records that their table does not take: they must be the dead letters, and no others may."""
    p99_s: float | None
    """From produced to in the lake, of the topics whose tables took everything; none where nothing came."""
    not_foretold: tuple[str, ...]
    """Those of them that `kcga plan`, asked at that moment, would not have answered."""
    picture: str = ""
    """Of a group that did not converge."""
    left_behind: tuple[str, ...] = ()
    """Processes that still run when everything has ended."""

    @property
    def faults_found(self) -> list[str]:
        """What is not as it must be, a sentence each."""
        found = []
        if self.in_kafka < self.acknowledged:
            found.append(f"Kafka lost {self.acknowledged - self.in_kafka:,} records that it had acknowledged")
        if self.in_the_lake != self.in_kafka:
            found.append(f"of {self.in_kafka:,} records in Kafka, {self.in_the_lake:,} are in the lake")
        if self.dead_letters != self.refused:
            found.append(f"{self.dead_letters:,} records are dead letters, {self.refused:,} were refused")
        if self.doubled:
            found.append(f"{self.doubled:,} rows are doubled")
        if self.most_readers > 1:
            found.append(f"a partition had {self.most_readers} readers at one time")
        if self.converged_after_s is None:
            found.append(f"the group did not converge within {CONVERGES_WITHIN_S:g} s\n{self.picture}")
        if self.left_behind:
            found.append(f"still running: {'; '.join(self.left_behind)}")
        return found

    def __str__(self) -> str:
        converged = "never" if self.converged_after_s is None else f"after {self.converged_after_s:.0f} s"
        p99 = "no p99" if self.p99_s is None else f"p99 {self.p99_s:.1f} s"
        return (
            f"seed {self.seed}, {self.seconds:g} s, {len(self.faults)} faults: {self.acknowledged:,} records "
            f"acknowledged, {self.in_kafka:,} in Kafka, {self.read_meanwhile:,} of them read meanwhile, "
            f"{self.in_the_lake:,} in the lake, of which {self.dead_letters:,} are dead letters, {self.doubled:,} "
            f"doubled, {self.most_readers} reader at most, {p99} from produced to in the lake where tables are sound, "
            f"converged {converged}, {self.decisions - len(self.not_foretold)} of {self.decisions} decisions foretold"
        )


def run(seconds: float, seed: int, folder: Path, say: Callable[[str], None], *, sound: bool = False) -> Outcome:
    """Sets the scene, lets it burn for so long, and looks at what is left.

    Args:
        seconds: how long the load and the faults last.
        seed: of both.
        folder: an empty one; all that the scene leaves is in it.
        say: is told each fault.
        sound: all tables take everything.
    """
    mark = uuid.uuid4().hex
    os.environ[MARK] = mark
    try:
        with ExitStack() as stack:
            scene = Scene(stack, folder, seed, sound=sound)
            kinds = [kind for kind in Kind if kind is not Kind.FULL_DISK or scene.disk.can_be_filled]
            if Kind.FULL_DISK not in kinds:
                say("no disk can be filled: it takes the right to mount")
            faults = schedule(seed, seconds, kinds)
            kafka, names = scene.settings.kafka, scene.settings.topics
            silent_after_s = scene.settings.controller.heartbeat_timeout_s
            witness = Witness(
                kafka.bootstrap_servers, kafka.group, names.metadata, scene.profile.topics, silent_after_s
            )
            stack.callback(witness.close)
            _burn(scene, faults, seconds, say)
            read_meanwhile = witness.committed()
            report = scene.end_load()
            say(f"the load is over: {report.as_json()['produced']:,} records")
            if not sound:
                say(_mend(scene))
            converged_after_s = _converge(scene, witness)
            picture = "" if converged_after_s is not None else witness.picture()
            scene.end_components()
            said = on_topics(scene.settings)
            decisions = [each.message for each in said if isinstance(each.message, Decision)]
            settings = scene.settings.consumer
            accounts = verify(scene.spark_remote, settings.lake_root, scene.profile.topics)
            picky = accounts.get(TopicPartition(PICKY, 0))
            refused = 0 if picky is None else len(range(FIRST_REFUSED, picky.distinct_offsets, REFUSED_OF))
            sound_topics = (topic for topic in scene.profile.topics if topic not in (MISFITS, PICKY))
            outcome = Outcome(
                seed=seed,
                seconds=seconds,
                faults=tuple(faults),
                acknowledged=sum(report.delivered.values()),
                in_kafka=witness.records(),
                read_meanwhile=read_meanwhile,
                in_the_lake=sum(account.distinct_offsets for account in accounts.values()),
                doubled=sum(account.doubled for account in accounts.values()),
                dead_letters=sum(account.dead_letters for account in accounts.values()),
                refused=refused,
                p99_s=_p99_s(Path(settings.table(topic)) for topic in sound_topics),
                most_readers=witness.most_readers.count,
                converged_after_s=converged_after_s,
                decisions=len(decisions),
                not_foretold=tuple(not_foretold_of(scene.settings.of_controller, said)),
                picture="\n".join([picture, scene.began, *map(_outlined, decisions[-DECISIONS_SHOWN:])]),
            )
        return replace(outcome, left_behind=_left_behind(mark))
    finally:
        del os.environ[MARK]


def _burn(scene: Scene, faults: list[Fault], seconds: float, say: Callable[[str], None]) -> None:
    scene.begin()
    began = time.monotonic()
    coming = list(faults)
    while (elapsed := time.monotonic() - began) < seconds:
        while coming and coming[0].at_s <= elapsed:
            fault = coming.pop(0)
            say(str(fault))
            scene.break_something(fault)
        scene.look_after()
        time.sleep(0.1)
    scene.mend_everything()


def _mend(scene: Scene) -> str:
    """Waits until the topic whose table takes nothing is parked, and mends the table."""
    began = time.monotonic()
    while not (parked := _is_parked(scene)) and time.monotonic() - began < CONVERGES_WITHIN_S:
        scene.look_after()
        time.sleep(0.5)
    scene.mend_tables()
    return f"a table took nothing, and is mended; its topic was {'' if parked else 'not '}parked by then"


def _is_parked(scene: Scene) -> bool:
    with suppress(KcgaError):
        return scene.parked
    return False


def _p99_s(tables: Iterable[Path]) -> float | None:
    waits = [waits for table in tables for _, waits in waits_of(table / "_delta_log")]
    return float(np.quantile(np.concatenate(waits), 0.99)) if waits else None


def _converge(scene: Scene, witness: Witness) -> float | None:
    """Waits until everything is read, and every partition has one consumer; how long that took, if it was so."""
    began = connected_at = time.monotonic()
    with suppress(KcgaError):
        scene.unpark()
    while (waited := time.monotonic() - began) < CONVERGES_WITHIN_S:
        scene.look_after()
        if time.monotonic() - connected_at > CONNECTS_AGAIN_AFTER_S:
            witness.connect_again()
            with suppress(KcgaError):
                scene.unpark()
            connected_at = time.monotonic()
        if witness.converged():
            return waited
        time.sleep(0.5)
    return None


def _outlined(decision: Decision) -> str:
    lost = f", lost {', '.join(map(str, decision.lost))}" if decision.lost else ""
    return (
        f"decision {decision.number} of epoch {decision.epoch}{lost}: {'; '.join(decision.triggers)}: {decision.reason}"
    )


def _left_behind(mark: str) -> tuple[str, ...]:
    """The processes of this run that there are; this one, which set the mark for them, is none."""
    left = []
    for process in psutil.process_iter(["cmdline"]):
        with suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark:
                left.append(" ".join(process.info["cmdline"] or ())[:200])
    return tuple(left)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fire.run", description=__doc__)
    parser.add_argument("--for", dest="seconds", type=float, default=120.0, help="seconds of fire (%(default)g)")
    parser.add_argument("--seed", type=int, help="of a run that is to be done again")
    parser.add_argument("--sound", action="store_true", help="no table refuses anything")
    parser.add_argument("--keep", type=Path, help="a folder for all logs, which is left in place")
    options = parser.parse_args()
    seed = random.randrange(2**31) if options.seed is None else options.seed
    print(f"seed {seed}: python -m tests.fire.run --for {options.seconds:g} --seed {seed}", flush=True)
    folder = options.keep or Path(tempfile.mkdtemp(prefix="kcga-fire-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (folder / "fire.log").open("w", encoding="utf-8") as log:
            logs.configure("fire", log)
            outcome = run(options.seconds, seed, folder, lambda what: print(what, flush=True), sound=options.sound)
    finally:
        if options.keep is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(outcome)
    if faults := [*outcome.faults_found, *outcome.not_foretold]:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
