"""Element types of models and of graphs. A tensor of a type that lamina lacks, such as int2 or float8_e4m3fnuz, is held in a type
of lamina that has all of its values. Elements are converted where they enter and leave the graph."""

from __future__ import annotations

import functools
from typing import Any, Optional

import ml_dtypes
import numpy
import onnx
from onnx import helper

from lamina import _core

_KINDS = _core.type_kinds()
FLOATS = tuple(name for name, kind in _KINDS.items() if kind in ("real", "small_float"))
SMALL_FLOATS = tuple(name for name, kind in _KINDS.items() if kind == "small_float")
PACKED = ("s4", "u4")  # two elements per byte
_NOT_NUMBERS = ("UNDEFINED", "STRING", "COMPLEX64", "COMPLEX128")

_NUMPY = {number: helper.tensor_dtype_to_np_dtype(number) for name, number in onnx.TensorProto.DataType.items() if name not in _NOT_NUMBERS}
_NUMBERS = {of_numpy.name: number for number, of_numpy in _NUMPY.items()}
# The types that both have: by lamina's name, and by ONNX's number.
ONNX_TYPES = {name: _NUMBERS[of_numpy] for name, (_, of_numpy) in _core.array_types().items()}
_OWN = {number: name for name, number in ONNX_TYPES.items()}
# The types of packed constants: their elements take half of the memory of those that are held in a byte each.
PACKED_TYPES = {"s4": onnx.TensorProto.INT4, "u4": onnx.TensorProto.UINT4}
_OF_PACKED = {number: name for name, number in PACKED_TYPES.items()}


def of_numpy(name: str) -> numpy.dtype:
    """Returns numpy's type for arrays of a type of lamina."""
    return _NUMPY[ONNX_TYPES[name]]


def _holder(of_model: numpy.dtype) -> str:
    """Returns the smallest type of lamina that has all values of a type of at most 8 bits."""
    values = numpy.arange(256, dtype="uint8").view(of_model).astype("float64")
    is_float = "float" in of_model.name
    kinds = ("small_float", "real") if is_float else ("signed_integer",) if values.min() < 0 else ("unsigned_integer",)
    for name in sorted(ONNX_TYPES, key=lambda each: (of_numpy(each).itemsize, each)):
        if _KINDS[name] in kinds and numpy.array_equal(values.astype(of_numpy(name)).astype("float64"), values, equal_nan=is_float):
            return name
    raise AssertionError(f"no type has the values of {of_model}")


_HELD_IN = {number: _holder(of_model) for number, of_model in _NUMPY.items() if number not in _OWN}


def held_in(number: int) -> Optional[str]:
    """Returns the type of lamina of the tensors of this type of ONNX; None if it is not a type of numbers."""
    return _OWN.get(number, _HELD_IN.get(number))


def is_own(number: int) -> bool:
    return number in _OWN


def packed_type(number: int) -> Optional[str]:
    """Returns s4 or u4 for the types of ONNX with elements of 4 bits."""
    return _OF_PACKED.get(number)


def number_of(array: Any) -> Optional[int]:
    """Returns ONNX's number of an array's type; None for a type of another library, or one that is not of numbers."""
    return _number_of_dtype(getattr(array, "dtype", ""))


@functools.lru_cache(maxsize=256)  # numpy takes longer to name a type than a small graph to run
def _number_of_dtype(dtype: Any) -> Optional[int]:
    return _NUMBERS.get(str(dtype))


def numpy_type(number: int) -> numpy.dtype:
    return _NUMPY[number]


def name_of(number: int) -> str:
    return onnx.TensorProto.DataType.Name(number)


def names() -> str:
    """Returns the names of all types that tensors of a model may have."""
    return ", ".join(name_of(number) for number in _NUMPY)


def limits_of(number: int) -> Any:
    """Returns ml_dtypes.finfo or iinfo of a type of ONNX."""
    return (ml_dtypes.finfo if held_in(number) in FLOATS else ml_dtypes.iinfo)(_NUMPY[number])


def is_float(number: int) -> bool:
    return held_in(number) in FLOATS


# ---- arrays

def to_graph(array: Any) -> Any:
    """Returns an array of a model as what the graph reads: held elements in the type that holds them, and types that numpy's
    protocols cannot share as raw bits. Arrays of other libraries stay as they are."""
    number = number_of(array)
    if number is None:
        return array
    if number in _HELD_IN:
        array = array.astype(of_numpy(_HELD_IN[number]))
    return array.view(_core.array_types()[held_in(number)][0]) if held_in(number) in SMALL_FLOATS else array


def from_graph(array: Any, number: int) -> Any:
    """The inverse of to_graph, for results of the type of this number."""
    if not isinstance(array, numpy.ndarray):
        return array
    name = held_in(number)
    array = array.view(of_numpy(name)) if name in SMALL_FLOATS else array
    return array.astype(_NUMPY[number]) if number in _HELD_IN else array


def packed(array: numpy.ndarray) -> numpy.ndarray:
    """Returns integers of 4 bits as bytes with two of them along the last axis, the first in the low four bits."""
    pairs = array.astype("int8").view("uint8").reshape(*array.shape[:-1], -1, 2) & 15
    return pairs[..., 0] | pairs[..., 1] << 4


def unpacked(array: numpy.ndarray, dtype: str) -> numpy.ndarray:
    """The inverse of `packed`, one integer per byte."""
    values = numpy.stack([array & 15, array >> 4], axis=-1).reshape(*array.shape[:-1], -1)
    return (values ^ 8).astype("int8") - 8 if dtype == "s4" else values
