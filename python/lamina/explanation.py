"""What lamina tells of a graph's partitions: as data, as a page in the browser, as a picture in a notebook."""

from __future__ import annotations

import html
import json
import os
import pathlib
import tempfile
import webbrowser
from typing import Any, Optional, Sequence, Union

from lamina import _core

__all__ = ["Explanation"]


class Explanation(list):
    """For each partition a dict: "supported", "unsupported_reason" where it is not, and "ops" with their "reasons" (code and sentence):
    why an op is where it is. A notebook shows it as a page; `show()` opens that in the browser.

    partitions: of one graph, in an order in which they can run. compiled: the CompiledPartition of each, or None; their kernels,
    schedules and tiles are told for these shapes, those of the others for the shapes that the graph knows. title: stands above."""

    def __init__(self, partitions: Sequence[_core.Partition], compiled: Sequence[Optional[_core.CompiledPartition]] = (),
                 title: str = "") -> None:
        super().__init__(json.loads(partition.reasons_json()) for partition in partitions)
        self._partitions, self._compiled, self.title = list(partitions), list(compiled), title

    def text(self, format: str = "html", *, compile: bool = True, report: Union[None, str, os.PathLike] = None) -> str:
        """All there is to tell as one text: "html" (a page that needs nothing else), "dot" (for Graphviz) or "json".

        compile: whether kernels, schedules and tiles are told, which takes compiling where it has not been done. report: a file of
        `lamina replay --bench --report`, whose times are told. Raises lamina.Error for another format, a report of another graph."""
        times = None if report is None else pathlib.Path(report).read_text(encoding="utf-8")
        return _core.explain(self._partitions, self._compiled, compile, format, self.title, times)

    def data(self, **options: Any) -> dict:
        """The same as a dict: "tensors", "ops" and "partitions" with their kernels, schedules, tiles, bytes."""
        return json.loads(self.text("json", **options))

    def save(self, path: Union[str, os.PathLike], **options: Any) -> pathlib.Path:
        """Writes a page or, where the name ends in .dot or .json, that; options as for `text`. Returns the path."""
        target = pathlib.Path(path)
        format = target.suffix[1:] if target.suffix in (".dot", ".json") else "html"
        target.write_text(self.text(format, **options), encoding="utf-8")
        return target

    def show(self, **options: Any) -> pathlib.Path:
        """Opens the page in the browser; options as for `text`. Returns the file, which stays."""
        handle, name = tempfile.mkstemp(prefix="lamina-", suffix=".html")
        os.close(handle)
        target = self.save(name, **options)
        webbrowser.open(target.as_uri())
        return target

    def _repr_html_(self) -> str:
        return framed(self.text())


def framed(*pages: str) -> str:
    """Pages inside another one, each in a frame of its own."""
    return "\n".join(f'<iframe srcdoc="{html.escape(page)}" width="100%" height="640" style="border: 1px solid #8888; border-radius: 6px">'
                     "</iframe>" for page in pages)
