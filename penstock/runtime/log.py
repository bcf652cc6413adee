"""Logs: one JSON object a line on standard error, from structlog and from the standard library
alike.

ERROR: something is lost, wrong or down. WARNING: unexpected, but recovered. INFO: a state changed.
What happens per record is DEBUG, unless its writer asked to follow it (`penstock.runtime.traces`).
Files and their rotation belong to whoever started the process.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, MutableMapping
from typing import Any, TextIO

import structlog

_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
    structlog.processors.format_exc_info,
]
#: libraries that say at INFO what belongs to DEBUG
_TALKATIVE = (
    "aiokafka",
    "faust",
    "mode",
    "py4j",
    "urllib3",
    "httpx",
    "httpcore",
    "websockets",
    "aiohttp.access",
    "asyncio",
    "fsspec",
)


def configure(
    service: str, level: str = "INFO", keep: Callable[[str], object] | None = None
) -> None:
    """Send every log line of this process to standard error as JSON, with *service* in it. Calling
    it again replaces the set-up.

    Args:
        keep: gets the same lines, but for those of DEBUG.
    """
    structlog.contextvars.clear_contextvars()
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )

    handler = logging.StreamHandler(sys.stderr) if keep is None else _KeepingHandler(keep)
    handler.setFormatter(formatter(service))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(
            max(logging.WARNING, root.level) if level != "DEBUG" else logging.INFO
        )
    logging.captureWarnings(True)


class _KeepingHandler(logging.StreamHandler[TextIO]):
    """Writes to standard error. *keep* gets the same lines, which are made once."""

    def __init__(self, keep: Callable[[str], object]) -> None:
        super().__init__(sys.stderr)
        self._keep = keep

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        if record.levelno >= logging.INFO:
            self._keep(line)
        return line


def formatter(service: str) -> logging.Formatter:
    """Makes lines as this process logs them, for a handler of its own."""

    def add_service(
        _logger: Any, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        # a processor and not a context variable: threads start with empty contexts
        event.setdefault("service", service)
        # the field's former name, which log pipelines may still ask for
        event.setdefault("room", service)
        return event

    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            add_service,
            structlog.processors.JSONRenderer(default=str, ensure_ascii=False),
        ],
    )


def get(name: str, **bound: Any) -> structlog.stdlib.BoundLogger:
    """A logger called *name* with *bound* in every line, such as stream=…, partition=…."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(name)
    return logger.bind(**bound) if bound else logger
