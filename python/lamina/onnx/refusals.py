"""Collects the parts of a model that are refused, so that one error names all of them."""

from __future__ import annotations

from typing import Callable, Iterable, Optional

from lamina._errors import Error
from lamina.onnx.node import DataSized, NeedsShapes, NeedsValue

_MOST_NAMES = 3  # of nodes that are refused for the same reason


class Refused(Error):
    """An input or a node that is not supported: subject "node", name "'y'", and the rest of the sentence."""

    def __init__(self, subject: str, name: str, rest: str) -> None:
        super().__init__(f"{subject} {name}{rest}", "unimplemented")
        self.subject, self.name, self.rest = subject, name, rest


class Refusals:
    """What reads the result of a refused node is skipped, hence not named. This also applies to nodes whose rule requests the
    value of an input, or the shapes of all."""

    def __init__(self) -> None:
        self._found: dict = {}  # (subject, rest of the sentence): names
        self._needed: Optional[Exception] = None
        self._split = DataSized()
        self._missing: set = set()  # names of tensors that do not exist

    def attempt(self, reads: Iterable[str], writes: Iterable[str], action: Callable[[], None]) -> None:
        """Calls action(), which adds an input or a node, if everything that it reads exists."""
        if self._missing.isdisjoint(reads):
            try:
                action()
                return
            except (NeedsShapes, NeedsValue) as needed:
                self._needed = self._needed or needed
            except DataSized as found:
                self._split = DataSized(self._split.outputs | found.outputs, self._split.values | found.values)
            except Refused as refused:
                self._found.setdefault((refused.subject, refused.rest), []).append(refused.name)
        self._missing.update(name for name in writes if name)

    def raise_all(self, model: str) -> None:
        """Raises lamina.Error with everything that is refused, or else a request, or the nodes at which to split the model."""
        if self._found:
            raise Error(f"{model}: " + "; ".join(_sentence(*key, names) for key, names in self._found.items()), "unimplemented")
        if self._needed is not None:
            raise self._needed
        if self._split.outputs or self._split.values:
            raise self._split


def _sentence(subject: str, rest: str, names: list) -> str:
    if len(names) == 1:
        return f"{subject} {names[0]}{rest}"
    listed, more = names[:_MOST_NAMES], len(names) - _MOST_NAMES
    tail = [f"{more} more"] if more > 0 else [listed.pop()]
    return f"{subject}s {', '.join(listed)} and {tail[0]}{rest}"
