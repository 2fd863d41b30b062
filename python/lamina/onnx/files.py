"""Models from files and bytes, whose large weights are read once: protobuf would copy them, and NumPy once more."""

from __future__ import annotations

import math
import mmap
import os
from typing import Iterator, NamedTuple, Optional, Union

import numpy
import onnx
from onnx import external_data_helper, helper

MOST_VALUES_OF_SHAPES = 1024  # of an initializer that may determine shapes: larger ones are no part of what is parsed

# Numbers of fields (onnx.proto).
_GRAPH, _INITIALIZER = 7, 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _DOC_STRING = 1, 2, 8, 9, 12
_BYTES = 2  # the wire type of messages, strings and packed lists


class _Field(NamedTuple):
    number: int
    wire_type: int
    start: int  # of the tag
    begin: int  # of the value
    end: int


def read_file(path: Union[str, os.PathLike]) -> tuple:
    """Returns a model, and arrays of the initializers that have no data in it."""
    if os.path.splitext(path)[1] != ".onnx" or os.path.getsize(path) == 0:
        return onnx.load(path), {}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        model, weights = read_bytes(view)
    external_data_helper.load_external_data_for_model(model, os.path.dirname(path))
    return model, weights


def read_bytes(data: Union[bytes, memoryview]) -> tuple:
    """As read_file."""
    weights: dict = {}
    with memoryview(data) as view:
        try:
            parsed = _without_weights(view, weights)
        except (IndexError, ValueError):  # protobuf names what is wrong
            parsed, weights = bytes(view), {}
    model = onnx.ModelProto()
    model.ParseFromString(parsed)
    return model, weights


def _without_weights(view: memoryview, weights: dict) -> bytes:
    kept = bytearray()
    for field in _fields(view, 0, len(view)):
        if field.number != _GRAPH or field.wire_type != _BYTES:
            kept += view[field.start:field.end]
            continue
        graph = bytearray()
        for part in _fields(view, field.begin, field.end):
            header = _header(view, part, weights) if part.number == _INITIALIZER and part.wire_type == _BYTES else None
            graph += view[part.start:part.end] if header is None else _message(_INITIALIZER, header)
        kept += _message(_GRAPH, graph)
    return bytes(kept)


def _header(view: memoryview, tensor: _Field, weights: dict) -> Optional[bytes]:
    """Adds a large tensor to the weights, and returns it without its data. None: it remains as it is."""
    dims, found = [], {}
    for field in _fields(view, tensor.begin, tensor.end):
        if field.number == _DIMS and field.wire_type == _BYTES:
            at = field.begin
            while at < field.end:
                extent, at = _varint(view, at)
                dims.append(extent)
        elif field.number == _DIMS:
            dims.append(_varint(view, field.begin)[0])
        elif field.number in (_DATA_TYPE, _NAME, _RAW_DATA):
            found[field.number] = field
        elif field.number != _DOC_STRING:
            return None
    if found.keys() != {_DATA_TYPE, _NAME, _RAW_DATA} or math.prod(dims) <= MOST_VALUES_OF_SHAPES:
        return None
    number, raw = _varint(view, found[_DATA_TYPE].begin)[0], found[_RAW_DATA]
    if number not in helper.get_all_tensor_dtypes() or number == onnx.TensorProto.STRING:
        return None
    dtype = helper.tensor_dtype_to_np_dtype(number)
    if math.prod(dims) * dtype.itemsize != raw.end - raw.begin:  # also values of less than a byte
        return None
    name = str(view[found[_NAME].begin:found[_NAME].end], "utf-8")
    weights[name] = numpy.empty(dims, dtype)
    weights[name].reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer(view[raw.begin:raw.end], numpy.uint8)
    return onnx.TensorProto(name=name, data_type=number, dims=dims).SerializeToString()


def _fields(view: memoryview, at: int, end: int) -> Iterator[_Field]:
    """The fields of a message."""
    while at < end:
        start = at
        tag, at = _varint(view, at)
        begin, size = at, {1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            at = _varint(view, at)[1]
        elif tag & 7 == _BYTES:
            size, begin = _varint(view, at)
            at = begin + size
        elif size is not None:
            at += size
        else:
            raise ValueError("a wire type that messages do not have")
        if at > end:
            raise ValueError("a field that ends behind its message")
        yield _Field(tag >> 3, tag & 7, start, begin, at)


def _varint(view: memoryview, at: int) -> tuple:
    """Returns a number, and the place behind it."""
    number = shift = 0
    while True:
        byte = view[at]
        number |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return number, at


def _message(number: int, content: Union[bytes, bytearray]) -> bytes:
    size, rest = bytearray(), len(content)
    while rest > 127:
        size.append(rest & 127 | 128)
        rest >>= 7
    return bytes((number << 3 | _BYTES,)) + bytes(size) + bytes((rest,)) + content
