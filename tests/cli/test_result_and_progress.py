"""Standard output is the result's: what native code prints goes elsewhere, and so does how far work is."""

import ctypes
import os
import sys

import pyarrow as pa
import pytest
from rich.console import Console

from app import memory
from cli.terminal import progress as progress_module
from cli.terminal.progress import progress, waiting
from cli.terminal.standard_output import kept_for_the_result


def test_what_is_written_to_the_descriptor_meanwhile_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    print("before")  # noqa: T201
    with kept_for_the_result():
        os.write(1, b"native\n")
        ctypes.CDLL(None).printf(b"buffered by C\n")
    os.write(1, b"after\n")
    out, err = capfd.readouterr()
    assert out == "before\nafter\n"
    assert err == "native\nbuffered by C\n"


def test_standard_output_is_back_when_the_work_fails(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ZeroDivisionError), kept_for_the_result():
        raise ZeroDivisionError
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


def test_nothing_is_shown_of_how_far_work_is_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("work", 3) as advance:
        for _ in range(3):
            advance("step")
    with waiting("Reading ..."):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_terminal_shows_what_is_being_done_and_the_result_nothing_of_it(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(
        progress_module, "Console", lambda stderr: Console(stderr=stderr, force_terminal=True, width=100)
    )
    with progress("generate", 3) as advance:
        advance("the second step")
    out, err = capfd.readouterr()
    assert out == ""
    assert "the second step" in err
    assert "1/3" in err


class FakeLibc:
    def __init__(self) -> None:
        self.options: dict[int, int] = {}

    def mallopt(self, option: int, value: int) -> None:
        self.options[option] = value


def test_a_consumer_keeps_little_of_its_memory_where_its_libc_can_be_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pools: list[object] = []
    monkeypatch.setattr(pa, "set_memory_pool", lambda pool: pools.append(pool.backend_name))
    libc = FakeLibc()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: libc)
    memory.keep_little()
    assert libc.options == {-8: 1, -3: 16 * 2**20, -1: 8 * 2**20}
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    memory.keep_little()
    assert pools == ["system", "system"]
