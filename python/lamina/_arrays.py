"""Arrays of whatever library the caller uses: results are made by the library that the first array comes from."""

from __future__ import annotations

import sys
from typing import Any, Sequence

from lamina._errors import Error

_NUMPY = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "uint16", "s32": "int32", "s64": "int64", "s8": "int8",
          "u8": "uint8", "boolean": "bool", "f8_e5m2": "uint8", "f8_e4m3": "uint8"}
_TORCH = {"f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "s32": "int32", "s64": "int64", "s8": "int8",
          "u8": "uint8", "boolean": "bool", "f8_e5m2": "float8_e5m2", "f8_e4m3": "float8_e4m3fn"}


def torch_dtype(name: str) -> Any:
    return getattr(sys.modules["torch"], _TORCH[name])


def _is_torch(array: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(array, torch.Tensor)


def empty_like(array: Any, dtype: str, shape: Sequence[int]) -> Any:
    """Dense and uninitialised; 16-bit brain floats and 8-bit floats are raw bits in numpy, which has no such types."""
    if _is_torch(array):
        return sys.modules["torch"].empty(shape, dtype=torch_dtype(dtype))
    try:
        import numpy
    except ImportError:
        raise Error("results of arrays that are not torch's are numpy's, which is not installed; give out=") from None
    return numpy.empty(shape, _NUMPY[dtype])


def outputs_like(arrays: Sequence[Any], tensors: Sequence[Any], out: Any) -> list:
    if out is None:
        return [empty_like(arrays[0] if arrays else None, tensor.dtype, tensor.shape) for tensor in tensors]
    given = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(given) != len(tensors):
        raise Error(f"out has {len(given)} arrays, allowed is {len(tensors)}")
    return given
