"""Each line of a log tells whose it is, whichever thread it comes from."""

import json
import subprocess
import sys
from typing import NoReturn

import pytest
from kubernetes import client
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.testing import capture_logs
from urllib3.exceptions import HTTPError

from controller.kubernetes.election import Election
from controller.kubernetes.mirror import Mirror
from tests.patience import wait_until

LEASE_S = 1


def away(*_: object, **__: object) -> NoReturn:
    raise HTTPError("refused")


def test_the_component_is_named_by_every_thread() -> None:
    program = """
from threading import Thread
import structlog
from app import logs
logs.configure("consumer 3")
thread = Thread(target=structlog.get_logger().warning, args=("from another thread",))
thread.start()
thread.join()
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stderr
    assert json.loads(said)["component"] == "consumer 3"


def test_what_watches_kubernetes_for_a_group_names_the_group() -> None:
    with bound_contextvars(group="orders"):
        mirror = Mirror("pods", "V1Pod", away)
    with capture_logs([merge_contextvars]) as lines:
        mirror.start()
        wait_until(lambda: lines)
        mirror.close()
    assert {(line["what"], line["group"]) for line in lines} == {("pods", "orders")}


def test_what_renews_the_lease_of_a_group_names_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    with bound_contextvars(group="orders"):
        election = Election(
            client.ApiClient(),
            namespace="kcga",
            name="orders-controller",
            identity="a",
            lease_s=LEASE_S,
            on_lost=lambda: None,
        )
    monkeypatch.setattr(election, "_renew", away)
    with capture_logs([merge_contextvars]) as lines:
        election._renewal.start()
        wait_until(lambda: lines)
        election.give_back()
    assert [(line["lease"], line["group"]) for line in lines] == [("orders-controller", "orders")]
