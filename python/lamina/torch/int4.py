"""Weights of 4 bits that torch has packed for its own kernels (`_convert_weight_to_int4pack_for_cpu`), in the order that lamina's
products read.

torch's layout depends on the processor. It is found by packing numbers: what torch writes to a place tells which weight belongs
there."""

from __future__ import annotations

import functools
import threading
import weakref

import torch
from torch import Tensor
from torch.fx import GraphModule

aten = torch.ops.aten


@functools.lru_cache(maxsize=4)
def places(rows: int, columns: int) -> Tensor:
    """Returns for each weight, in row-major order, its place among the integers of 4 bits in torch's layout."""
    count = rows * columns
    number = torch.arange(count).reshape(rows, columns)
    found = torch.zeros(count, dtype=torch.int64)
    for digit in range(0, max(count - 1, 1).bit_length(), 4):
        packed = aten._convert_weight_to_int4pack_for_cpu(((number >> digit) & 15).to(torch.int32), 1)
        found |= halves(packed).reshape(-1).to(torch.int64) << digit
    result = torch.empty(count, dtype=torch.int64)
    result[found] = torch.arange(count)
    return result


def halves(packed: Tensor) -> Tensor:
    """Returns the integers of 4 bits of each byte along the last axis, the low one first."""
    return torch.stack([packed & 15, packed >> 4], -1).flatten(-2)


def unpacked(packed: Tensor) -> Tensor:
    """Returns weights packed by torch as [n, k / 2] bytes with two successive entries of a row, as signed integers."""
    n, k = packed.shape[0], 2 * packed.shape[1]
    values = halves(packed).reshape(-1)[places(n, k)].reshape(n, k // 2, 2)
    return (values[..., 0] | values[..., 1] << 4) ^ 0x88


_known: dict = {}  # by address and shape: a reference to the storage, its count of writes, the result
_lock = threading.RLock()


def rows_of(packed: Tensor) -> Tensor:
    """As `unpacked`, computed once for weights that torch has not written to since. Writes that torch does not count (.data,
    numpy) are not noticed: these weights have no layout that a caller could write."""
    storage = packed.untyped_storage()
    key = (packed.data_ptr(), tuple(packed.shape))
    version = 0 if packed.is_inference() else packed._version
    with _lock:
        found = _known.get(key)
        if found is None or found[0]() is not storage or found[1] != version:
            reference = weakref.ref(storage, lambda _: _known.pop(key, None))
            found = _known[key] = (reference, version, unpacked(packed))
        return found[2]


rows_of.lamina_reason = "it brings weights that torch has packed in another order, once"


@torch.library.custom_op("lamina::int4_mm", mutates_args=())
def int4_mm(self: Tensor, rows: Tensor, group: int, scales_and_zeros: Tensor) -> Tensor:
    signed = (halves(rows) ^ 8).to(torch.int8) - 8
    scales, zeros = (scales_and_zeros[..., i].float().t().repeat_interleave(group, 1) for i in range(2))
    return (self.float() @ (signed * scales + zeros).t()).to(self.dtype)


@int4_mm.register_fake
def _(self: Tensor, rows: Tensor, group: int, scales_and_zeros: Tensor) -> Tensor:
    return self.new_empty((self.shape[0], rows.shape[0]))


def unpack_int4(module: GraphModule) -> None:
    """Replaces products with weights packed by torch by products with the weights of `rows_of`."""
    for node in list(module.graph.nodes):
        if node.target is not aten._weight_int4pack_mm_for_cpu.default:
            continue
        x, packed, group, scales_and_zeros = node.args
        with module.graph.inserting_before(node):
            rows = module.graph.call_function(rows_of, (packed,))
            made = module.graph.call_function(torch.ops.lamina.int4_mm.default, (x, rows, group, scales_and_zeros))
        rows.meta["val"] = packed.meta["val"].new_empty(packed.meta["val"].shape)
        made.meta.update(node.meta)
        node.replace_all_uses_with(made)
        module.graph.erase_node(node)
