"""What lamina tells while it works, through Python's `logging`: logger "lamina", and "lamina.verbose" for lines that were asked for."""

from __future__ import annotations

import logging
import time
from typing import Any, Callable, Optional

from lamina import _core

log = logging.getLogger("lamina")
log.addHandler(logging.NullHandler())
_lines = logging.getLogger("lamina.verbose")

# Called as progress(done, total, name); true stops.
Progress = Callable[[float, int, str], Any]


def set_verbose(level: int) -> None:
    """Has each compilation and execution (level 1), each pass over a graph too (2), or nothing (0) logged to "lamina.verbose":
    compilations at INFO, the rest at DEBUG. They are the lines of LAMINA_VERBOSE, which otherwise go to stdout; -1: as that says.

    For the whole process. Raises lamina.Error for another level."""
    _core.set_verbose(level, _log_line if level > 0 else None)


def _log_line(line: str) -> None:
    text = line.removeprefix("lamina,")
    _lines.log(logging.INFO if text.startswith("compile,") else logging.DEBUG, "%s", text)


class Compilations:
    """Compiles the partitions of one graph: tells `progress` how far it is, in partitions, and the log what it was."""

    def __init__(self, total: int, progress: Optional[Progress] = None) -> None:
        self._total, self._progress, self._done, self._start = total, progress, 0, time.perf_counter()

    def compile(self, partition: _core.Partition, inputs: list, outputs: list) -> _core.CompiledPartition:
        code = partition.compile(inputs, outputs, None if self._progress is None else self._step)
        self._done += 1
        if log.isEnabledFor(logging.DEBUG):
            log.debug("compiled partition %d: %s", partition.id, code.info_json().replace("\n", ""))
        return code

    def _step(self, done: int, total: int, name: str) -> Any:
        return self._progress(self._done + (done / total if total else 1.0), self._total, name)

    def finish(self) -> None:
        if self._progress is not None:
            self._progress(float(self._total), self._total, "")
        log.info("compiled %d partition%s in %.1f ms", self._total, "" if self._total == 1 else "s", (time.perf_counter() - self._start) * 1e3)
