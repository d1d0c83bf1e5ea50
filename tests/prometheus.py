"""A real Prometheus: it scrapes what kcga serves, and is asked what a dashboard asks it."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml

from app.child import Child
from sandbox.ports import LOOPBACK
from sandbox.server import Server
from tests import web
from tests.patience import PATIENCE_S

JOB = "kcga"
INTERVAL = "1s"


class Prometheus(Server):
    """A server on the loopback address; its data is in its folder.

    Args:
        folder: takes all its files.
        program: `prometheus`.
        rules: files of rules that it evaluates.
    """

    title = "Prometheus"

    def __init__(self, folder: Path, program: Path, rules: Iterable[Path] = ()) -> None:
        super().__init__(folder, port=None)
        self._program = program
        self._rules = tuple(rules)
        self._targets = self._folder / "targets.json"

    def scrape(self, addresses: Iterable[str]) -> None:
        """From now on, every second, these (`host:port`) and no others."""
        new = self._targets.with_suffix(".new")
        new.write_text(json.dumps([{"targets": sorted(addresses)}]))
        new.replace(self._targets)

    def query(self, expression: str) -> list[float]:
        """The value of each series that the expression has now."""
        return [float(series["value"][1]) for series in self._ask("query", {"query": expression})["result"]]

    def query_range(self, expression: str, start: float, end: float) -> list[float]:
        """The values of all series between these moments (s since the epoch), second by second."""
        parameters = {"query": expression, "start": str(start), "end": str(end), "step": "1"}
        return [
            float(value) for series in self._ask("query_range", parameters)["result"] for _, value in series["values"]
        ]

    def label_values(self, label: str, selector: str) -> list[str]:
        """The values that a label has in the series that the selector names."""
        values: list[str] = self._ask(f"label/{label}/values", {"match[]": selector})
        return values

    def rules(self) -> list[dict[str, Any]]:
        """The rules as it evaluates them: each with `health`, `lastError` and `state`."""
        return [rule for group in self._ask("rules", {})["groups"] for rule in group["rules"]]

    def _ask(self, what: str, parameters: Mapping[str, str]) -> Any:
        answer = web.get(f"http://{self.address}/api/v1/{what}", params=parameters, timeout=PATIENCE_S).json()
        assert answer["status"] == "success", f"{what} {parameters}: {answer.get('error')}"
        return answer["data"]

    def _prepare(self, port: int) -> Child:
        config = {
            "global": {"scrape_interval": INTERVAL, "evaluation_interval": INTERVAL},
            "rule_files": [str(file.resolve()) for file in self._rules],
            "scrape_configs": [{"job_name": JOB, "file_sd_configs": [{"files": [str(self._targets)]}]}],
        }
        file = self._folder / "prometheus.yml"
        file.write_text(yaml.safe_dump(config))
        self.scrape([])
        command: list[str | Path] = [
            self._program,
            f"--config.file={file}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{port}",
            "--log.level=warn",
        ]
        return Child(self.title, command, self.log)

    def _answers(self) -> bool:
        try:
            return web.get(f"http://{self.address}/-/ready").status_code == 200
        except httpx.TransportError:
            return False
