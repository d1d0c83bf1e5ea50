"""`kcga plan`."""

import gc
import os
import time
from typing import Annotated

import typer

from cli.options import OutputFormat, SettingsFile


def plan(
    settings: SettingsFile,
    output: Annotated[OutputFormat, typer.Option(help="Words, or the record of the decision.")] = OutputFormat.TEXT,
) -> None:
    asked_at = time.monotonic()
    # A large group's measurements are read by the hundred thousand, and hold no cycles: looking for some takes longer.
    gc.disable()

    from app.settings import load
    from cli.live.plan import in_words, plan_now

    decision = plan_now(load(settings), asked_at)
    print(decision.model_dump_json() if output is OutputFormat.JSON else "\n".join(in_words(decision)), flush=True)  # noqa: T201
    # An engine that was left behind when its time was up may be in native code for long: nobody has to wait for it.
    os._exit(0)
