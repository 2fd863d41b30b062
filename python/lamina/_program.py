"""Compiles consecutive partitions and joins them into one executable."""

from __future__ import annotations

import json
import math
import struct
from typing import Callable, Mapping, NamedTuple, Optional, Sequence

from lamina import _core
from lamina._errors import Error
from lamina._verbose import Compilations, Progress


class Port(NamedTuple):
    """An argument for a graph input. `given` describes the object that the caller passes. `tensor` is what the graph reads: a
    view of that object that starts `offset` bytes after its first element."""

    tensor: _core.LogicalTensor
    given: _core.LogicalTensor
    offset: int = 0


class Linked(NamedTuple):
    run: _core.Executable
    outputs: list  # LogicalTensors, with their final shapes and strides
    compiled: list  # CompiledPartitions, in execution order
    partitions: list  # from which they were compiled
    joined: Callable  # makes an executable of other CompiledPartitions of the same partitions and tensors


def whole(tensor: _core.LogicalTensor) -> Port:
    return Port(tensor, tensor, 0)


def packed_port(tensor: _core.LogicalTensor, shape: Sequence[int]) -> Port:
    """Returns the port of a tensor of s4 or u4 whose bytes, two elements each, the caller passes as a dense array of this
    shape."""
    given = _core.LogicalTensor(tensor.id, "u8", shape, _dense(shape))
    if not shape:
        raise Error(f"tensor {tensor.id} of {tensor.dtype} is given as a scalar, allowed is an array of bytes with two elements each")
    elements = (*shape[:-1], 2 * shape[-1])
    return Port(_core.LogicalTensor(tensor.id, tensor.dtype, elements, _dense(elements)), given)


def _dense(shape: Sequence[int]) -> list:
    return [math.prod(max(extent, 1) for extent in shape[axis + 1:]) for axis in range(len(shape))]


class _Format(NamedTuple):
    """A float of 8 or 16 bits, as src/interface/small_float.h describes it."""

    size: int
    mantissa_bits: int
    bias: int
    infinity: int  # the bits of the first number that is too large
    nan: int


_SMALL_FLOATS = {"f16": _Format(2, 10, 15, 0x7C00, 0x7E00), "bf16": _Format(2, 7, 127, 0x7F80, 0x7FC0),
                 "f8_e5m2": _Format(1, 2, 15, 0x7C, 0x7E), "f8_e4m3": _Format(1, 3, 7, 0x7F, 0x7F)}


def _small_float_bytes(value: float, form: _Format) -> bytes:
    if value != value:
        return form.nan.to_bytes(form.size, "little")
    bits = form.infinity
    if abs(value) != math.inf:
        exponent = max(math.frexp(value)[1] - 1, 1 - form.bias) if value else 1 - form.bias
        steps = round(math.ldexp(abs(value), form.mantissa_bits - exponent))  # half to even
        bits = min(((exponent + form.bias - 1) << form.mantissa_bits) + steps, form.infinity)
    sign = 1 << (8 * form.size - 1) if math.copysign(1, value) < 0 else 0
    return (bits | sign).to_bytes(form.size, "little")


def scalar_bytes(value: float, dtype: str) -> bytes:
    """Returns the bytes of a number of this dtype, rounded to the nearest."""
    if dtype in _SMALL_FLOATS:
        return _small_float_bytes(value, _SMALL_FLOATS[dtype])
    form, _ = _core.array_types()[dtype]
    if form == "bool":
        return bytes([bool(value)])
    kind, size = form[1], int(form[2:])
    if kind == "f":
        return struct.pack({4: "<f", 8: "<d"}[size], value)
    return int(value).to_bytes(size, "little", signed=kind == "i")


def link(partitions: Sequence[_core.Partition], inputs: Sequence[Port], outputs: Sequence[_core.LogicalTensor],
         constants: Mapping[int, tuple] = {}, progress: Optional[Progress] = None) -> Linked:
    """Compiles partitions, which are in an order in which they can run, for these inputs. outputs: the tensors to return;
    their shapes may be unknown, and strides None mean dense. constants: tensor id -> (tensor, value) of scalars that the
    graph knows; passes may compile some of them in. progress: as for Graph.compile. Raises lamina.Error if a partition cannot
    be compiled."""
    known = {tensor_id: tensor for tensor_id, (tensor, _) in constants.items()}
    known.update((port.tensor.id, port.tensor) for port in inputs)
    wanted = {tensor.id: tensor for tensor in outputs}
    compiled, made = [], []
    compilations = Compilations(len(partitions), progress)
    for partition in partitions:
        ins = [known[port.id] for port in partition.inputs]
        outs = [wanted.get(port.id) or _core.LogicalTensor(port.id, port.dtype) for port in partition.outputs]
        code = compilations.compile(partition, ins, outs)
        compiled.append((code, [t.id for t in ins], [t.id for t in outs]))
        for tensor in outs:
            known[tensor.id] = code.tensor(tensor.id)
            made.append(tensor.id)
    compilations.finish()
    slot = {}
    for port in inputs:
        slot.setdefault(port.tensor.id, len(slot))
    final = [known[tensor.id] for tensor in outputs]
    for tensor in final:
        slot[tensor.id] = len(slot)
    inner = [known[tensor_id] for tensor_id in made if tensor_id not in slot]
    for tensor in inner:
        slot[tensor.id] = len(slot)
    scalars = []
    for tensor_id in sorted({i for _, ins, _ in compiled for i in ins if i in constants}):
        slot[tensor_id] = len(slot)
        tensor, value = constants[tensor_id]
        scalars.append((tensor, scalar_bytes(value, tensor.dtype)))
    slots = [([slot[i] for i in ins], [slot[i] for i in outs]) for _, ins, outs in compiled]

    def joined(codes: Sequence[_core.CompiledPartition]) -> _core.Executable:
        steps = [(code, *places) for code, places in zip(codes, slots)]
        return _core.Executable(steps, [tuple(port) for port in inputs], final, inner, scalars)

    codes = [code for code, _, _ in compiled]
    return Linked(joined(codes), final, codes, list(partitions), joined)


def first_reason(partition: _core.Partition) -> str:
    told = json.loads(partition.reasons_json())
    return told.get("unsupported_reason", "")


