"""The programs of the documentation that records can go to, and what they hold."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from contextlib import closing
from pathlib import Path

from app.child import Child
from sandbox.ports import LOOPBACK
from sandbox.server import Server

_FOLDER = Path(__file__).parents[1] / "docs" / "examples"
SQLITE = _FOLDER / "sqlite_sink.py"
POSTGRES_MODULE = _FOLDER / "postgres_sink"
USER = "kcga"


class Postgres(Server):
    """A Postgres of this machine, whose databases are gone with it.

    Args:
        programs: the folder with Postgres' own.
    """

    title = "Postgres"

    def __init__(self, programs: Path) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="kcga-postgres-")), None)
        self._programs = programs
        # It does not run as root.
        user = ("--reuid=nobody", "--regid=nogroup", "--clear-groups")
        self._as_user: tuple[str, ...] = ("setpriv", *user) if os.geteuid() == 0 else ()

    def create_database(self) -> str:
        """A new database, by its address."""
        name = f"test_{uuid.uuid4().hex}"
        self.ask(self._database("postgres"), f"CREATE DATABASE {name}")
        return self._database(name)

    def ask(self, database: str, what: str) -> list[tuple[str, ...]]:
        """The rows of an answer."""
        command = (self._programs / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-c", what, database)
        said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        return [tuple(line.split("|")) for line in said.splitlines()]

    def stop(self) -> None:
        super().stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _database(self, name: str) -> str:
        return f"postgres://{USER}@{self.address}/{name}"

    def _prepare(self, port: int) -> Child:
        data = self._folder / "data"
        if not data.exists():
            if self._as_user:
                shutil.chown(self._folder, "nobody")
            initdb = (self._programs / "initdb", "-D", data, "-U", USER, "--auth=trust", "--no-sync")
            subprocess.run((*self._as_user, *initdb), check=True, capture_output=True, cwd="/")
        settings = {"listen_addresses": LOOPBACK, "port": port, "unix_socket_directories": "", "fsync": "off"}
        options = (f"--{name}={value}" for name, value in settings.items())
        return Child(self.title, [*self._as_user, self._programs / "postgres", "-D", data, *options], self.log)

    def _answers(self) -> bool:
        command = (self._programs / "pg_isready", "-q", "-d", self._database("postgres"))
        return subprocess.run(command, check=False).returncode == 0


class SQLiteExample:
    """Keeps records in a file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.command = (sys.executable, str(SQLITE), str(file))

    def held(self, what: str) -> list[tuple[int, ...]]:
        """What a query answers."""
        with closing(sqlite3.connect(self._file)) as connection:
            return connection.execute(what).fetchall()


class PostgresExample:
    """Keeps records in a database of its own."""

    def __init__(self, program: Path, server: Postgres) -> None:
        self._server = server
        self._database = server.create_database()
        self.command = (str(program), self._database)

    def held(self, what: str) -> list[tuple[int, ...]]:
        return [tuple(map(int, row)) for row in self._server.ask(self._database, what)]


Example = SQLiteExample | PostgresExample
