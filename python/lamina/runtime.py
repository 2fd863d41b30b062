"""Runs exported models (`lamina.export`, docs/export.md) by liblamina_runtime, which needs no compiler."""

from __future__ import annotations

import ctypes
import functools
import os
from typing import Any, NamedTuple, Optional, Sequence, Union

from lamina import _arrays, _core
from lamina._errors import Error

_DYNAMIC = -2**63
_NUMBERS, _TYPES = _core.type_numbers(), _core.array_types()
_NAMES = {number: name for name, number in _NUMBERS.items()}
_STATUSES = {1: "out_of_memory", 2: "invalid_arguments", 3: "unimplemented", 5: "runtime_error", 512: "index_out_of_range"}


class TensorInfo(NamedTuple):
    """An input or output of a model. Extents and strides (in elements) that differ between variants are None."""

    name: str
    dtype: str
    shape: tuple
    strides: tuple


class _Tensor(ctypes.Structure):
    """lamina_runtime_tensor_t"""

    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int), ("ndims", ctypes.c_int), ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


class _ModelOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("verify_weights", ctypes.c_int)]


class _RunOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int), ("pool", ctypes.c_void_p)]


@functools.cache
def _library() -> ctypes.CDLL:
    """LAMINA_RUNTIME_LIBRARY, the library beside liblamina, or the system's."""
    major, minor, _ = _core.version().split(".")
    soname = "liblamina_runtime.so." + (f"0.{minor}" if major == "0" else major)  # cmake/layout.cmake
    given = os.environ.get("LAMINA_RUNTIME_LIBRARY")
    beside = [os.path.join(os.path.dirname(_core.library_path()), name) for name in (soname, "liblamina_runtime.so")]
    path = given or next(filter(os.path.exists, beside), soname)
    try:
        library = ctypes.CDLL(path)
    except OSError as failed:
        raise Error(f"the runtime cannot be loaded: {failed}; LAMINA_RUNTIME_LIBRARY is the path of liblamina_runtime.so", "runtime_error") from None
    library.lamina_runtime_last_error.restype = ctypes.c_char_p
    library.lamina_model_isa.restype = ctypes.c_char_p
    for name in ("lamina_model_input_count", "lamina_model_output_count", "lamina_model_variant_count"):
        getattr(library, name).restype = ctypes.c_size_t
    library.lamina_model_destroy.restype = None
    return library


def _check(status: int) -> None:
    if status:
        raise Error(_library().lamina_runtime_last_error().decode(), _STATUSES.get(status, "runtime_error"))


class Model:
    """A model from a file. It is called as a function of its inputs, also by several threads at the same time.

    inputs, outputs: a TensorInfo for each. isa: the instruction set of the program that was selected for this machine.
    variants: for each list of input shapes that the model has, (inputs, outputs)."""

    def __init__(self, path: Union[str, os.PathLike], verify_weights: bool = False) -> None:
        self._library, self._handle = _library(), ctypes.c_void_p()
        options = _ModelOptions(ctypes.sizeof(_ModelOptions), int(verify_weights))
        _check(self._library.lamina_model_load(ctypes.byref(self._handle), os.fsencode(path), ctypes.byref(options)))
        self.path = os.fspath(path)
        counts = [getattr(self._library, f"lamina_model_{kind}_count")(self._handle) for kind in ("input", "output")]
        self.inputs, self.outputs = (self._ports(kind, count) for kind, count in zip(("input", "output"), counts))
        variants = range(self._library.lamina_model_variant_count(self._handle))
        self.variants = [tuple(self._ports(f"variant_{kind}", count, ctypes.c_size_t(v)) for kind, count in zip(("input", "output"), counts))
                         for v in variants]
        self.isa = self._library.lamina_model_isa(self._handle).decode()
        self._by_shapes = {tuple(port.shape for port in inputs): outputs for inputs, outputs in self.variants}

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.lamina_model_destroy(self._handle)

    def _ports(self, kind: str, count: int, *variant: Any) -> list:
        get, ports, tensor = getattr(self._library, f"lamina_model_{kind}"), [], _Tensor()
        for index in range(count):
            _check(get(self._handle, *variant, ctypes.c_size_t(index), ctypes.byref(tensor)))
            shape, strides = (tuple(None if n == _DYNAMIC else n for n in numbers[:tensor.ndims]) for numbers in (tensor.dims, tensor.strides))
            ports.append(TensorInfo(tensor.name.decode(), _NAMES[tensor.dtype], shape, strides))
        return ports

    def __call__(self, *arrays: Any, out: Any = None, threads: int = 0) -> Any:
        """Runs the model on arrays of numpy, torch, or any objects with `__dlpack__` or the buffer protocol, or on one dict of
        these by name. Arrays are not copied: their types, shapes and strides are those of a variant. numpy's unsigned integers may
        contain the raw bits of a type that numpy lacks; elements of 4 bits are `uint8`, two each along the last axis.

        out: an array or a sequence of arrays to write to; default: new ones of the first input's library. threads: at most; 0: as
        many as OpenMP would use. Returns one array, or a tuple in the order of the outputs."""
        arrays = self._in_order(arrays)
        given = [_described(port, array) for port, array in zip(self.inputs, arrays)]
        sources = [_bound(port, *each, _core.address(array, False)) for port, each, array in zip(self.inputs, given, arrays)]
        results = self._new(arrays, given) if out is None else list(out) if isinstance(out, (list, tuple)) else [out]
        if len(results) != len(self.outputs):
            raise Error(f"out has {len(results)} arrays, allowed is {len(self.outputs)}")
        sinks = [_bound(port, *_described(port, array), _core.address(array, True)) for port, array in zip(self.outputs, results)]
        options = _RunOptions(ctypes.sizeof(_RunOptions), threads, None)
        _check(self._library.lamina_model_run(self._handle, (_Tensor * len(sources))(*sources), ctypes.c_size_t(len(sources)),
                                              (_Tensor * len(sinks))(*sinks), ctypes.c_size_t(len(sinks)), ctypes.byref(options)))
        return results[0] if len(results) == 1 else tuple(results)

    def _in_order(self, arrays: Sequence[Any]) -> Sequence[Any]:
        if len(arrays) == 1 and isinstance(arrays[0], dict):
            missing = [port.name for port in self.inputs if port.name not in arrays[0]]
            if missing:
                raise Error(f"{self.path}: input {missing[0]!r} is missing")
            return [arrays[0][port.name] for port in self.inputs]
        if len(arrays) != len(self.inputs):
            raise Error(f"{self.path}: {len(arrays)} inputs are given, allowed is {len(self.inputs)}: {', '.join(port.name for port in self.inputs)}")
        return arrays

    def _new(self, arrays: Sequence[Any], given: Sequence[tuple]) -> list:
        """New arrays for the outputs. If no variant has these shapes, the run says which ones exist."""
        ports = self._by_shapes.get(tuple(shape for shape, _ in given), self.variants[0][1])
        kind = type(arrays[0]) if arrays else type(None)
        return [_arrays.maker_of(kind, *_held(port))() for port in ports]


def _held(port: TensorInfo) -> tuple:
    """The type and shape of the array that holds a tensor's elements."""
    return ("u8", (*port.shape[:-1], port.shape[-1] // 2)) if port.dtype in ("s4", "u4") else (port.dtype, port.shape)


def _described(port: TensorInfo, array: Any) -> tuple:
    """The shape and strides of an array, in the elements of the port."""
    dtype, shape, strides = _core.describe(array)
    if port.dtype in ("s4", "u4") and dtype == "u8" and shape:
        shape = (*shape[:-1], 2 * shape[-1])
        return shape, _dense(shape)
    is_held = port.dtype in _TYPES and dtype.startswith("u") and _TYPES[port.dtype][0] == _TYPES[dtype][0]
    if dtype != port.dtype and not is_held:
        raise Error(f"{port.name!r} is {dtype}{list(shape)}, the model has {port.dtype}")
    return shape, strides


def _dense(shape: Sequence[int]) -> tuple:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _bound(port: TensorInfo, shape: tuple, strides: tuple, address: int) -> _Tensor:
    numbers = ctypes.c_int64 * max(len(shape), 1)
    return _Tensor(port.name.encode(), _NUMBERS[port.dtype], len(shape), numbers(*shape), numbers(*strides), address)


def load(path: Union[str, os.PathLike], verify_weights: bool = False) -> Model:
    """Loads a model that `lamina.export` or `lamina export` wrote.

    verify_weights: compare the digest of the weights, which reads all of them. Raises lamina.Error for a file that is damaged, of
    another version, or without a program for this machine."""
    return Model(path, verify_weights)
