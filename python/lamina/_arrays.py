"""Calls with arrays of any library: results are arrays of the first argument's library."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Sequence

from lamina import _core
from lamina._errors import Error

_TYPES = _core.array_types()


def _names_of(dtype: str) -> tuple:
    if dtype not in _TYPES:
        raise Error(f"a result has type {dtype}, which arrays do not have; allowed is one of {', '.join(_TYPES)}")
    return _TYPES[dtype]


def torch_dtype(name: str) -> Any:
    return getattr(sys.modules["torch"], _names_of(name)[1])


def maker_of(kind: type, dtype: str, shape: Sequence[int]) -> Callable:
    """Returns a function that creates a dense, uninitialised array of the library of array type `kind`. numpy has no bf16 and
    no 8-bit floats; their arrays contain raw bits."""
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return functools.partial(torch.empty, tuple(shape), dtype=torch_dtype(dtype))
    try:
        import numpy
    except ImportError:
        raise Error("results for arguments that are not torch tensors are numpy arrays, and numpy is not installed; pass out=") from None
    return functools.partial(numpy.empty, tuple(shape), _names_of(dtype)[0])


class Ready:
    """A function compiled for the types, shapes and strides of its arguments. Arguments that are None are not inputs of the
    graph."""

    __slots__ = ("linked", "_run", "_makers", "_complete")

    def __init__(self, linked: Any, arrays: Sequence[Any]) -> None:
        self.linked, self._run = linked, linked.run
        self._makers: dict = {}  # by the type of the first argument
        self._complete = all(array is not None for array in arrays)

    def __call__(self, arrays: Sequence[Any], out: Any) -> Any:
        results = self._new(arrays) if out is None else self._given(out)
        self._run(arrays if self._complete else [array for array in arrays if array is not None], results)
        return results[0] if len(results) == 1 else tuple(results)

    def _new(self, arrays: Sequence[Any]) -> list:
        kind = type(arrays[0]) if arrays else type(None)
        makers = self._makers.get(kind)
        if makers is None:
            makers = self._makers[kind] = [maker_of(kind, tensor.dtype, tensor.shape) for tensor in self.linked.outputs]
        return [make() for make in makers]

    def _given(self, out: Any) -> list:
        results = list(out) if isinstance(out, (list, tuple)) else [out]
        if len(results) != len(self.linked.outputs):
            raise Error(f"out has {len(results)} arrays, allowed is {len(self.linked.outputs)}")
        return results
