"""Reports through Python's `logging`: logger "lamina", and "lamina.verbose" for the lines that set_verbose requests."""

from __future__ import annotations

import time
from typing import Any, Callable, Optional

from lamina import _core

_DEBUG, _INFO = 10, 20  # as in logging, which takes longer to import than all of lamina


class _Log:
    """logging.getLogger("lamina"), which is imported when it is used first."""

    def __getattr__(self, name: str) -> Any:
        import logging

        logger = logging.getLogger("lamina")
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())
        return getattr(logger, name)


log = _Log()

# Called as progress(done, total, name); a true result cancels the compilation.
Progress = Callable[[float, int, str], Any]


def set_verbose(level: int) -> None:
    """Logs each compilation and execution (level 1), also each pass over a graph (level 2), or nothing (level 0) to
    "lamina.verbose": compilations at INFO, the rest at DEBUG. These are the lines of LAMINA_VERBOSE, which otherwise go to
    stdout; level -1 follows that variable.

    Applies to the whole process. Raises lamina.Error for another level."""
    _core.set_verbose(level, _log_line if level > 0 else None)


def _log_line(line: str) -> None:
    text = line.removeprefix("lamina,")
    log.getChild("verbose").log(_INFO if text.startswith("compile,") else _DEBUG, "%s", text)


class Compilations:
    """Compiles the partitions of one graph. Reports the number of compiled partitions to `progress`, and the compiled code to
    the log."""

    def __init__(self, total: int, progress: Optional[Progress] = None) -> None:
        self._total, self._progress, self._done, self._start = total, progress, 0, time.perf_counter()

    def compile(self, partition: _core.Partition, inputs: list, outputs: list) -> _core.CompiledPartition:
        code = partition.compile(inputs, outputs, None if self._progress is None else self._step)
        self._done += 1
        if log.isEnabledFor(_DEBUG):
            log.debug("compiled partition %d: %s", partition.id, code.info_json().replace("\n", ""))
        return code

    def _step(self, done: int, total: int, name: str) -> Any:
        return self._progress(self._done + (done / total if total else 1.0), self._total, name)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress(float(self._total), self._total, "")
        log.info("compiled %d partition%s in %.1f ms", self._total, "" if self._total == 1 else "s", (time.perf_counter() - self._start) * 1e3)
