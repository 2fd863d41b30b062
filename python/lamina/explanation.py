"""Explanations of a graph's partitions: as data, as a page in the browser, or as a picture in a notebook."""

from __future__ import annotations

import html
import json
import os
import pathlib
import tempfile
import webbrowser
from typing import Any, Optional, Sequence, Union

from lamina import _core
from lamina.profile import profile

__all__ = ["Explanation"]


class Explanation(list):
    """A list with a dict per partition: "supported", "unsupported_reason" if it is not supported, and "ops" with their
    "reasons" (code and sentence): why an op is in this partition. A notebook displays it as a page; `show()` opens the page
    in the browser.

    partitions: of one graph, in an order in which they can run. compiled: the CompiledPartition of each, or None. Kernels,
    schedules and tiles are explained for the shapes of the CompiledPartition, or else for the shapes that the graph knows.
    title: the heading."""

    def __init__(self, partitions: Sequence[_core.Partition], compiled: Sequence[Optional[_core.CompiledPartition]] = (),
                 title: str = "") -> None:
        super().__init__(json.loads(partition.reasons_json()) for partition in partitions)
        self._partitions, self._compiled, self.title = list(partitions), list(compiled), title

    def text(self, format: str = "html", *, compile: bool = True,
             report: Union[None, str, os.PathLike, profile] = None) -> str:
        """Returns the whole explanation as one text: "html" (a self-contained page), "dot" (for Graphviz) or "json".

        compile: whether to include kernels, schedules and tiles, which requires compiling partitions that are not compiled.
        report: a file written by `lamina replay --bench --report` or by `lamina profile --json`, or a `lamina.profile`, whose times
        are included. Raises lamina.Error for another format, or a report or profile of another graph."""
        times = None
        if isinstance(report, profile):
            times = json.dumps(report.data)
        elif report is not None:
            times = pathlib.Path(report).read_text(encoding="utf-8")
        return _core.explain(self._partitions, self._compiled, compile, format, self.title, times)

    def data(self, **options: Any) -> dict:
        """Returns the explanation as a dict: "tensors", "ops" and "partitions" with their kernels, schedules, tiles and
        bytes."""
        return json.loads(self.text("json", **options))

    def save(self, path: Union[str, os.PathLike], **options: Any) -> pathlib.Path:
        """Writes the page, or the dot or json format if the name ends in .dot or .json. Options as for `text`. Returns the
        path."""
        target = pathlib.Path(path)
        format = target.suffix[1:] if target.suffix in (".dot", ".json") else "html"
        target.write_text(self.text(format, **options), encoding="utf-8")
        return target

    def show(self, **options: Any) -> pathlib.Path:
        """Opens the page in the browser. Options as for `text`. Returns the path of the file, which is not deleted."""
        handle, name = tempfile.mkstemp(prefix="lamina-", suffix=".html")
        os.close(handle)
        target = self.save(name, **options)
        webbrowser.open(target.as_uri())
        return target

    def _repr_html_(self) -> str:
        return framed(self.text())


def framed(*pages: str) -> str:
    """Embeds pages in another page, each in a separate frame."""
    return "\n".join(f'<iframe srcdoc="{html.escape(page)}" width="100%" height="640" style="border: 1px solid #8888; border-radius: 6px">'
                     "</iframe>" for page in pages)
