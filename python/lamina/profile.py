"""Profiles: the time of each step of compiled graphs, compared with what the machine can do."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Union

from lamina import _core

__all__ = ["profile"]


class profile:
    """Measures what the calling thread runs through lamina in a `with` block: graphs, functions, ONNX and torch models.

    >>> with lamina.profile("my model") as profile:
    ...     for _ in range(20):
    ...         run(x)
    >>> print(profile)

    The table has a line for each step (a kernel, a step of a primitive library, a chain of tiles), the longest first: its time
    per execution, the idle time before it, the bytes that it must move, its arithmetic, and how much of its bound it reaches.
    The bound is the time that the machine needs to read and write the bytes, or for the arithmetic. Run the code once before,
    so that nothing is compiled in the block. title: the heading."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self._profile = _core.Profile()

    def __enter__(self) -> "profile":
        self._profile.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._profile.stop()

    def __str__(self) -> str:
        return self._profile.text("table", self.title)

    @property
    def data(self) -> dict:
        """The profile as a dict: "us", "idle_us", "bound_us", "of_bound", "machine" and "partitions" with their "steps", as
        `lamina profile --json` writes them."""
        return json.loads(self._profile.text("json", self.title))

    def write_trace(self, path: Union[str, "pathlib.Path"]) -> None:
        """Writes all executions in Chrome's trace event format, which Perfetto (ui.perfetto.dev) opens."""
        pathlib.Path(path).write_text(self._profile.text("trace", self.title), encoding="utf-8")
