"""A standalone Spark cluster: a master, and workers that do what it gives them, as processes of PySpark's own jars."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from app.child import Child
from app.java import Java
from app.pyspark_home import pyspark_home
from app.spark_server import spark_environment
from consumer import jvm
from sandbox.ports import LOOPBACK
from sandbox.server import Server

WORKER_MB = 1024


class _Daemon(Server):
    """One of its processes.

    Args:
        folder: takes its files.
        java: what runs it, and what it starts.
        arguments: besides where it listens.
        options: of its JVM.
    """

    main: ClassVar[str]
    says_when_ready: ClassVar[tuple[str, ...]]
    """One of these."""

    def __init__(self, folder: Path, java: Java, *arguments: str, options: tuple[str, ...] = ()) -> None:
        super().__init__(folder, None)
        self._java = java
        self._arguments = arguments
        self._options = (*jvm.SAFE, *jvm.QUICK_START, *options)

    def kill(self) -> None:
        """As when its machine is lost: with all that it started. It can be begun again."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        self.child.wait()
        self.log.rename(self.log.with_name("log-before"))  # the next one has not said yet that it is ready

    def _prepare(self, port: int) -> Child:
        of_spark = spark_environment(self._java)
        options = {"SPARK_DAEMON_JAVA_OPTS": " ".join(self._options), "SPARK_DAEMON_MEMORY": "256m"}
        where = ("--host", LOOPBACK, "--port", str(port), "--webui-port", "0")
        program = pyspark_home() / "bin" / "spark-class"
        return Child(
            self.title,
            [program, self.main, *where, *self._arguments],
            self.log,
            folder=self._folder,
            environment=of_spark | options,
        )

    def _answers(self) -> bool:
        return any(said in line for line in self.child.tail(1000) for said in self.says_when_ready)


class _Master(_Daemon):
    title = "the Spark master"
    main = "org.apache.spark.deploy.master.Master"
    says_when_ready = ("New state: ALIVE", "Recovery complete")


class _Worker(_Daemon):
    title = "a Spark worker"
    main = "org.apache.spark.deploy.worker.Worker"
    says_when_ready = ("Successfully registered with master",)


class SparkCluster:
    """A master that remembers its workers and applications when it begins again, and workers of one core each.

    Args:
        folder: takes everything.
        java: what runs it.
        workers: how many.
    """

    def __init__(self, folder: Path, java: Java, workers: int) -> None:
        self._folder = folder
        self._java = java
        remembers = ("recoveryMode=FILESYSTEM", f"recoveryDirectory={folder.absolute() / 'recovery'}")
        options = tuple(f"-Dspark.deploy.{setting}" for setting in remembers)
        # Where its port is lost to another program it must end, not take the next one, and it needs no other fixed one.
        on_its_port = ("-Dspark.port.maxRetries=0", "-Dspark.master.rest.enabled=false")
        self.master = _Master(folder / "master", java, options=(*options, *on_its_port))
        self.workers: list[_Worker] = []
        self._many = workers

    @property
    def url(self) -> str:
        """As Spark's `spark.master` has it; known once it is started."""
        return f"spark://{self.master.address}"

    def __enter__(self) -> "SparkCluster":
        try:
            self.master.start()
            sizes = ("--cores", "1", "--memory", f"{WORKER_MB}m")
            for number in range(1, self._many + 1):
                folder = self._folder / f"worker-{number}"
                self.workers.append(_Worker(folder, self._java, *sizes, "--work-dir", str(folder / "work"), self.url))
                self.workers[-1].start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for server in (*self.workers, self.master):
            server.stop()
