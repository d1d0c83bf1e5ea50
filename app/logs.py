"""How kcga's processes log: to standard error, readable in a terminal, one JSON object a line elsewhere."""

import logging
import sys
from typing import TextIO

import structlog

from domain.secrecy import redacted


def _without_secrets(
    _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    shown: structlog.typing.EventDict = redacted(event)
    return shown


def _of(component: str) -> structlog.typing.Processor:
    """Names the component in each line, whichever thread it comes from."""

    def add_component(
        _logger: structlog.typing.WrappedLogger, _method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        event.setdefault("component", component)
        return event

    return add_component


def configure(component: str, stream: TextIO = sys.stderr) -> None:
    """Sets logging up for this process; each line names the component."""
    renderer: structlog.typing.Processor = (
        # Tracebacks as anywhere: the ones in colour show variables, and what is secret in them.
        structlog.dev.ConsoleRenderer(colors=True, exception_formatter=structlog.dev.plain_traceback)
        if stream.isatty()
        else structlog.processors.JSONRenderer(default=str)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            _of(component),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _without_secrets,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
