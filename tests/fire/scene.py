"""The whole system on this machine, and how each fault is done to it."""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import psutil

from app.child import Child
from app.components import command, consumer_command
from app.control import ask
from app.jars import DELTA, obtain
from app.java import find_java
from app.settings import load
from app.topics import Cluster
from cli.live.recent import recent
from consumer.session import session_for
from consumer.table import COLUMNS
from controller.local_processes import LocalProcesses, running_consumers
from domain.assignment import ConsumerId
from domain.messages import ControlAction
from domain.partitions import TopicPartition
from sandbox.chaos.freezer import Freezer
from sandbox.load import LoadReport, run_load
from sandbox.load_profile import Course, LoadProfile, demo_profile
from sandbox.services import Services
from sandbox.settings_file import CONSUMER_CAPACITY, settings_text
from sandbox.spark import SparkConnectServer
from tests.broker_cluster import BROKERS, BrokerCluster
from tests.fire.disk import SmallDisk
from tests.fire.echo import Echo
from tests.fire.faults import Fault, Kind
from tests.fire.network import Network
from tests.made_tables import constrain, make

MISFITS, PICKY = "misfits", "picky"
"""A topic whose table has a column of another type, until it is mended, and one whose table refuses a record in some
thousands."""
REFUSED_OF, FIRST_REFUSED = 2000, 50
_SPEED = 0.02
"""Of each of the two, in consumers."""
RESTART_AFTER_S = 1.0
"""So long after its end a component is started again, as a supervisor would."""


class Scene:
    """Three brokers, Spark, monitor, controller with its consumers, and producers.

    Args:
        stack: ends everything when it is closed.
        folder: takes everything.
        seed: of records and repeated messages.
        sound: there are none but tables that take everything.
    """

    def __init__(self, stack: ExitStack, folder: Path, seed: int, *, sound: bool = False) -> None:
        self.sound = sound
        self._folder = folder
        self._stack = stack
        self._seed = seed
        self.disk = SmallDisk(folder / "lake")
        stack.callback(self.disk.close)
        java = find_java()
        self._network = Network(BROKERS)
        self._network.start()
        stack.callback(self._network.stop)
        self._brokers = BrokerCluster(folder / "kafka", java, self._network)
        self._spark = SparkConnectServer(folder / "spark", jars=obtain(DELTA), java=java)
        with ThreadPoolExecutor() as pool:
            for server in (self._brokers, self._spark):
                stack.callback(server.stop)
            for started in [pool.submit(server.start) for server in (self._brokers, self._spark)]:
                started.result()
        services = Services(self._brokers.bootstrap_servers, self._spark.remote, prefix="")
        courses = demo_profile(CONSUMER_CAPACITY).courses
        even = Course(((0, _SPEED * CONSUMER_CAPACITY), (1, _SPEED * CONSUMER_CAPACITY)))
        unsound = {} if sound else {TopicPartition(topic, 0): even for topic in (MISFITS, PICKY)}
        self.profile = LoadProfile({**courses, **unsound})
        self._settings_file = folder / "settings.toml"
        self._write_settings(services)
        self.settings = load(self._settings_file)
        cluster = Cluster(self.settings.kafka.bootstrap_servers)
        cluster.ensure_internal_topics(self.settings.topics.names, self.settings.controller.highest_consumer)
        cluster.create(self.profile.topics)
        while not self._brokers.know(self.profile.topics):
            time.sleep(0.1)
        if not sound:
            with session_for(self.spark_remote, self.settings.consumer.lake_root) as session:
                make(session, self._table(MISFITS), f"{COLUMNS}, amount DATE")
                constrain(session, self._table(PICKY), f"offset % {REFUSED_OF} <> {FIRST_REFUSED}")
        names = self.settings.topics
        topics = {names.metadata: self.settings.controller.highest_consumer + 1, names.write_speed: 1}
        self._echo = Echo(self.settings.kafka.bootstrap_servers, topics, seed)
        stack.callback(self._echo.close)
        self._components: dict[str, Child] = {}
        self._began: Counter[str] = Counter()
        self._freezer = Freezer()
        self._starters = stack.enter_context(ThreadPoolExecutor())
        self._restarts: list[Future[None]] = []
        """Of brokers that were killed: each takes some seconds."""
        self._load_over = threading.Event()
        self._load_report: LoadReport | None = None
        self._load = threading.Thread(target=self._produce, daemon=True)
        stack.callback(self._end_consumers)

    @property
    def spark_remote(self) -> str:
        return self._spark.remote

    @property
    def began(self) -> str:
        """How often each component did."""
        return ", ".join(f"{name} began {times} times" for name, times in self._began.items())

    def begin(self) -> None:
        """Starts the components, and the load."""
        self.look_after()
        self._load.start()

    def break_something(self, fault: Fault) -> None:
        """Does the fault; what it takes to end it is done by `look_after` when it is due."""
        match fault.kind:
            case Kind.KILL_CONSUMER:
                for _, process in self._one_consumer(fault):
                    process.kill()
            case Kind.FREEZE_CONSUMER:
                for _, process in self._one_consumer(fault):
                    self._freezer.freeze(process, fault.lasts_s)
            case Kind.CUT_OFF_CONSUMER:
                for number, _ in self._one_consumer(fault):
                    self._cut_off(f"kcga-consumer-{number}", fault.lasts_s)
            case Kind.KILL_CONTROLLER:
                self._kill("controller")
            case Kind.FREEZE_CONTROLLER:
                self._freezer.freeze(psutil.Process(self._components["controller"].pid), fault.lasts_s)
            case Kind.SECOND_CONTROLLER:
                # The first is not told: it finds out when it sends the next time.
                self._start("controller")
            case Kind.KILL_MONITOR:
                self._kill("monitor")
            case Kind.FREEZE_BROKER:
                self._freezer.freeze(psutil.Process(self._brokers.pids[self._one_broker(fault)]), fault.lasts_s)
            case Kind.KILL_BROKER:
                number = self._one_broker(fault)
                self._brokers.kill(number)
                self._freezer.later(fault.lasts_s, lambda: self._begin_broker_again(number))
            case Kind.PAUSE_NETWORK:
                for pid in self._brokers.pids.values():
                    self._freezer.freeze(psutil.Process(pid), fault.lasts_s)
            case Kind.FREEZE_SPARK:
                self._freezer.freeze(psutil.Process(self._spark.child.pid), fault.lasts_s)
            case Kind.FULL_DISK:
                self.disk.fill()
                self._freezer.later(fault.lasts_s, self.disk.free)
            case Kind.REPEAT_MESSAGES:
                self._echo.repeat(fault.lasts_s)

    def look_after(self) -> None:
        """Ends faults that are over, and starts components again that have ended. Called often."""
        self._freezer.look_after()
        for restarted in [restart for restart in self._restarts if restart.done()]:
            self._restarts.remove(restarted)
            restarted.result()
        self._echo.work()
        for name in ("controller", "monitor"):
            if name not in self._components or not self._components[name].running:
                time.sleep(RESTART_AFTER_S if name in self._components else 0)
                self._start(name)

    def mend_everything(self) -> None:
        """Ends all faults; returns when all brokers serve again."""
        self._freezer.end_all()
        for restart in self._restarts:
            restart.result()
        self._restarts = []

    @property
    def parked(self) -> bool:
        """Whether a topic is, by the newest claim."""
        with recent(self.settings) as (told, _):
            return told.claim is not None and bool(told.claim.parked)

    def mend_tables(self) -> None:
        """Gives the column its type."""
        with session_for(self.spark_remote, self.settings.consumer.lake_root) as session:
            make(session, self._table(MISFITS), f"{COLUMNS}, amount DOUBLE")

    def unpark(self) -> None:
        """Has the mended table tried at once, if its topic is parked."""
        if self.parked:
            ask(self.settings, ControlAction.UNPARK, MISFITS)

    def _table(self, topic: str) -> str:
        return self.settings.consumer.table(topic)

    def end_load(self) -> LoadReport:
        """Ends the producers; what became of their records."""
        self._load_over.set()
        self._load.join()
        assert self._load_report is not None
        return self._load_report

    def end_components(self) -> None:
        for child in self._components.values():
            child.stop()
        self._end_consumers()

    def consumers(self) -> dict[ConsumerId, psutil.Process]:
        """The processes of the consumers that exist, in ascending order of their numbers."""
        return running_consumers(self.settings.local.folder)

    def _write_settings(self, services: Services) -> None:
        """Those of the consumers lead them over the network that can hold them up."""
        of_consumers = self._folder / "consumers.toml"
        text = settings_text(services, self.profile, self._folder)
        if not self.sound:
            text = text.replace("[local]\n", f'[consumer.schemas."{MISFITS}"]\namount = "double"\n\n[local]\n')
        of_consumers.write_text(text.replace(services.bootstrap_servers, self._network.bootstrap_servers))
        named = f"[local]\nconsumer_settings = {json.dumps(str(of_consumers))}\n"
        self._settings_file.write_text(text.replace("[local]\n", named))

    def _one_consumer(self, fault: Fault) -> Iterator[tuple[ConsumerId, psutil.Process]]:
        """The one that the fault chooses; none where there is none."""
        consumers = self.consumers()
        if consumers:
            with suppress(psutil.NoSuchProcess):
                yield list(consumers.items())[int(fault.choice * len(consumers))]

    def _one_broker(self, fault: Fault) -> int:
        """The one that the fault chooses of those that were not killed: only one is at a time."""
        numbers = list(self._brokers.pids)
        return numbers[int(fault.choice * len(numbers))]

    def _begin_broker_again(self, number: int) -> None:
        self._restarts.append(self._starters.submit(self._brokers.begin_again, number))

    def _start(self, name: str) -> None:
        self._began[name] += 1
        arguments = command(name, "--settings", str(self._settings_file))
        log = self._folder / f"{name}-{self._began[name]}.log"
        self._components[name] = self._stack.enter_context(Child(f"the {name}", arguments, log))

    def _kill(self, name: str) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._components[name].pid, signal.SIGKILL)

    def _cut_off(self, client: str, seconds: float) -> None:
        self._network.hold_up(client)
        self._freezer.later(seconds, lambda: self._network.go_on(client))

    def _produce(self) -> None:
        servers = self.settings.kafka.bootstrap_servers
        self._load_report = run_load(servers, self.profile, stop=self._load_over, seed=self._seed)

    def _end_consumers(self) -> None:
        fleet = LocalProcesses(
            self.settings.local.folder,
            lambda number, _: consumer_command(number, self._settings_file),
            self.settings.local.grace_s,
        )
        fleet.close()
