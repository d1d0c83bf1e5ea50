"""How kcga's processes log: to standard error, readable in a terminal, one JSON object a line elsewhere."""

import logging
import sys
from typing import TextIO

import structlog


def configure(component: str, stream: TextIO = sys.stderr) -> None:
    """Sets logging up for this process; each line names the component."""
    rendered: list[structlog.typing.Processor] = (
        [structlog.dev.ConsoleRenderer(colors=True)]
        if stream.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *rendered,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=True,
    )
    structlog.contextvars.bind_contextvars(component=component)
