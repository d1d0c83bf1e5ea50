"""Calls of what may not answer, each in a thread of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

Result = TypeVar("Result")


def in_thread(call: Callable[[], Result]) -> Future[Result]:
    """Runs `call` in a thread that does not keep the process from ending, whatever it waits for."""
    future: Future[Result] = Future()

    def body() -> None:
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=body, daemon=True).start()
    return future
