"""Rules for ops that move elements: look-ups and their gradients, padding, inserting a part into a whole, rolling."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import Args, Refused, dtype_of
from lamina.torch.rules import result_type

INTEGERS = ("s32", "s64")


def indices_of(l: Lowering, node: Node) -> Any:
    found = l.tensor(node)
    if found.dtype not in INTEGERS:
        raise Refused(f"indices of {found.dtype}")
    return found


def places_from_0(l: Lowering, node: Node, extent: int) -> Any:
    """Returns indices that must not count from the end: a negative index becomes one past the end, which Gather reports as an
    error."""
    found, known = indices_of(l, node), l.constants.get(node)
    if known is not None:
        with unset_fake_temporarily():
            if bool((known >= 0).all()):
                return found
    if extent > 2**31 - 1:
        raise Refused("more than 2^31 - 1 positions")
    place, number = l.cast(found, "f64"), lambda value: l.constant(float(value), "f64")
    inside = l.op("LogicalAnd", [l.op("GreaterEqual", [place, number(0)]), l.op("Less", [place, number(extent)])])
    behind = l.filled(extent, found.shape, "f64")
    return l.cast(l.op("Select", [inside, place, behind]), "s32")


def embedding(l: Lowering, a: Args) -> Any:
    result_type(a)
    return l.op("Gather", [l.tensor(a.weight), places_from_0(l, a.indices, a.weight.meta["val"].shape[0])], axis=0)


def embedding_backward(l: Lowering, a: Args) -> Any:
    dtype = result_type(a)
    if a.scale_grad_by_freq:
        raise Refused("gradients scaled by frequency")
    left_out = {"ignore_index": int(a.padding_idx)} if a.padding_idx >= 0 else {}
    return l.op("ScatterAdd", [l.parameter(a.grad_output, dtype), indices_of(l, a.indices)], axis=0, extent=int(a.num_weights), **left_out)


def index_select(l: Lowering, a: Args) -> Any:
    source = l.tensor(a.self)
    made = l.op("Gather", [source if source.shape else l.reshape(source, [1]), places_from_0(l, a.index, a.self.meta["val"].shape[a.dim] if source.shape else 1)], axis=a.dim)
    return l.reshape(made, a.value.shape)


def axes_of(given: list) -> dict:
    """Returns {axis: indices}. Raises Refused unless the axes are adjacent, in which case the indexed axes keep their
    position."""
    chosen = {axis: node for axis, node in enumerate(given) if node is not None}
    if not chosen or list(chosen) != list(range(min(chosen), min(chosen) + len(chosen))):
        raise Refused("index tensors of axes that are not adjacent")
    return chosen


def are_apart(chosen: dict) -> bool:
    """Whether each axis of the broadcast indices belongs to one index tensor, in their order: then a sequence of look-ups
    along one axis each is equivalent."""
    taken = None
    for node in chosen.values() if len(chosen) > 1 else ():
        shape = node.meta["val"].shape
        own = [axis - len(shape) for axis, extent in enumerate(shape) if extent != 1]  # counted from the last axis
        if len(own) > 1 or (own and taken is not None and own[0] <= taken):
            return False
        taken = own[0] if own else taken
    return True


def joint_places(l: Lowering, chosen: dict, extents: list) -> Any:
    """For index tensors that share axes: returns indices into the indexed axes flattened to one. An index out of range
    becomes one past the end, which Gather reports as an error. These indices are exact in f64."""
    if math.prod(extents) > 2**31 - 1:
        raise Refused("more than 2^31 - 1 positions")
    number = lambda value: l.constant(float(value), "f64")
    place = inside = None
    for node, extent in zip(chosen.values(), extents):
        at = l.cast(indices_of(l, node), "f64")
        behind = l.op("Select", [l.op("Less", [at, number(0)]), l.filled(extent, at.shape, "f64"), number(0)])
        at = l.op("Add", [at, behind])
        fits = l.op("LogicalAnd", [l.op("GreaterEqual", [at, number(0)]), l.op("Less", [at, number(extent)])])
        place = at if place is None else l.op("Add", [l.op("Multiply", [place, number(extent)]), at])
        inside = fits if inside is None else l.op("LogicalAnd", [inside, fits])
    return l.cast(l.op("Select", [inside, place, l.filled(math.prod(extents), place.shape, "f64")]), "s32")


def flat_indices(l: Lowering, chosen: dict, axis: int) -> Any:
    found = indices_of(l, chosen[axis])
    return found if len(chosen) == 1 and found.shape else l.reshape(found, [chosen[axis].meta["val"].numel()])


def index(l: Lowering, a: Args) -> Any:
    made, chosen = l.tensor(a.self), axes_of(a.indices)
    if not are_apart(chosen):
        first, last = min(chosen), max(chosen) + 1
        extents = list(made.shape[first:last])
        whole = l.reshape(made, [*made.shape[:first], math.prod(extents), *made.shape[last:]])
        return l.reshape(l.op("Gather", [whole, joint_places(l, chosen, extents)], axis=first), a.value.shape)
    for axis in reversed(chosen):
        made = l.op("Gather", [made, flat_indices(l, chosen, axis)], axis=axis)
    return l.reshape(made, a.value.shape)


def added(l: Lowering, a: Args) -> Any:
    """self + the sums of the values at their indices. self is usually zero, because this is a gradient."""
    dtype, chosen = result_type(a), axes_of(a.indices)
    whole = [int(n) for n in a.value.shape]
    first, last, apart = min(chosen), max(chosen) + 1, are_apart(chosen)
    places = [node.meta["val"] for node in chosen.values()]
    if not apart:
        among = torch.broadcast_shapes(*(place.shape for place in places))
    else:
        among = places[0].shape if len(places) == 1 and places[0].dim() else [place.numel() for place in places]
    made = expanded_to(l, l.tensor(a.values, dtype), [*whole[:first], *among, *whole[last:]])
    if apart:
        for axis in chosen:
            made = l.op("ScatterAdd", [made, flat_indices(l, chosen, axis)], axis=axis, extent=whole[axis])
    else:
        extents = whole[first:last]
        made = l.op("ScatterAdd", [made, joint_places(l, chosen, extents)], axis=first, extent=math.prod(extents))
        made = l.reshape(made, whole)
    return made if l.uniform(a.self) == 0 else l.op("Add", [l.tensor(a.self, dtype), made])


def expanded_to(l: Lowering, tensor: Any, shape: Any) -> Any:
    shape = [int(n) for n in shape]
    if list(tensor.shape) == shape:
        return tensor
    return l.op("Expand", [l.reshape(tensor, [1] * (len(shape) - len(tensor.shape)) + list(tensor.shape))], shape=shape)


# ---- inserting parts into a whole

def owned(l: Lowering, made: Any) -> Any:
    """Adds a copy if the rule computes nothing."""
    return made if made.id not in l.sources else l.op("Reorder", [made])


def sliced(l: Lowering, source: Any, axis: int, start: int, end: int, step: int = 1) -> Any:
    return l.op("Slice", [source], starts=[start], ends=[end], axes=[axis], steps=[step])


def joined(l: Lowering, parts: list, axis: int) -> Any:
    parts = [part for part in parts if part is not None]
    parts = [part for part in parts if part.shape[axis] > 0] or parts[:1]
    return l.concatenated(parts, axis)


def repeat(l: Lowering, a: Args) -> Any:
    """Repeats each axis the given number of times."""
    source, shape = l.tensor(a.self), [int(n) for n in a.value.shape]
    own = [1] * (len(shape) - len(source.shape)) + list(source.shape)
    apart = [n for extent in own for n in (1, extent)]
    wide = [n for times, extent in zip(a.repeats, own) for n in (int(times), extent)]
    return owned(l, l.reshape(l.op("Expand", [l.reshape(source, apart)], shape=wide), shape))


def roll(l: Lowering, a: Args) -> Any:
    dims, made = list(a.dims), l.tensor(a.self)
    if not dims:  # rolls all elements as one row
        made, dims = l.reshape(made, [a.value.numel()]), [0]
    for shift, axis in zip(a.shifts, dims):
        axis, extent = axis % len(made.shape), made.shape[axis]
        if extent > 1 and shift % extent:
            cut = extent - shift % extent
            made = joined(l, [sliced(l, made, axis, cut, extent), sliced(l, made, axis, 0, cut)], axis)
    return owned(l, l.reshape(made, a.value.shape))


def flip(l: Lowering, a: Args) -> Any:
    """Reverses axes: a look-up by constant indices for each."""
    made = l.tensor(a.self)
    for axis in (dim % max(len(made.shape), 1) for dim in a.dims):
        extent = made.shape[axis] if made.shape else 1
        if extent > 1:
            made = l.op("Gather", [made, backwards(l, extent)], axis=axis)
    return owned(l, made)


def backwards(l: Lowering, extent: int) -> Any:
    """The indices from the last to the first."""
    with unset_fake_temporarily():
        return l.known_tensor(f"lamina_backwards_{extent}", torch.arange(extent - 1, -1, -1, dtype=torch.int32))


def window_places(l: Lowering, count: int, size: int, step: int) -> Any:
    """[count, size]: the positions of each window's elements."""
    with unset_fake_temporarily():
        places = torch.arange(count, dtype=torch.int32)[:, None] * step + torch.arange(size, dtype=torch.int32)
    return l.known_tensor(f"lamina_windows_{count}_{size}_{step}", places)


def unfold_backward(l: Lowering, a: Args) -> Any:
    """The sum of the windows' gradients at each element."""
    sizes, grad = [int(n) for n in a.input_sizes], l.parameter(a.grad_in, result_type(a))
    if not sizes or 0 in grad.shape:
        raise Refused("a scalar, or no windows")
    axis, last = a.dim % len(sizes), len(sizes)
    if axis + 1 != last:
        grad = l.op("StaticTranspose", [grad], order=[*range(axis + 1), last, *range(axis + 1, last)])
    return l.op("ScatterAdd", [grad, window_places(l, grad.shape[axis], int(a.size), int(a.step))], axis=axis, extent=sizes[axis])


def padded(l: Lowering, a: Args) -> Any:
    made, value = l.tensor(a.self), float(a.argument("value") or 0)
    for position, (before, after) in enumerate(zip(a.pad[::2], a.pad[1::2])):
        axis = len(made.shape) - 1 - position
        if before < 0 or after < 0:
            made = sliced(l, made, axis, max(0, -before), made.shape[axis] - max(0, -after))
        around = lambda count: l.filled(value, [*made.shape[:axis], count, *made.shape[axis + 1:]], made.dtype) if count > 0 else None
        made = joined(l, [around(before), made, around(after)], axis)
    return owned(l, made)


def bounds(start: Optional[int], end: Optional[int], extent: int) -> tuple:
    clip = lambda value, default: default if value is None else min(max(value + extent if value < 0 else value, 0), extent)
    start = clip(start, 0)
    return start, max(clip(end, extent), start)


def placed(l: Lowering, whole: Any, part: Any, axis: int, start: int) -> Any:
    """Returns `whole` with `part` inserted from `start` along axis. `whole` may be a shape: the other elements are then zero.
    """
    shape = list(whole) if isinstance(whole, (list, tuple)) else list(whole.shape)
    end = start + part.shape[axis]

    def rest(first: int, last: int) -> Any:
        if first == last:
            return None
        if isinstance(whole, (list, tuple)):
            return l.filled(0.0, [*shape[:axis], last - first, *shape[axis + 1:]], part.dtype)
        return sliced(l, whole, axis, first, last)

    return joined(l, [rest(0, start), part, rest(end, shape[axis])], axis)


def slice_backward(l: Lowering, a: Args) -> Any:
    sizes, dtype = [int(n) for n in a.input_sizes], result_type(a)
    axis = a.dim % len(sizes)
    start, _ = bounds(a.start, a.end, sizes[axis])
    part = l.parameter(a.grad_output, dtype)
    if a.step != 1:
        part = spread(l, part, axis, int(a.step))
        part = sliced(l, part, axis, 0, min(part.shape[axis], sizes[axis] - start))
    return owned(l, placed(l, sizes, part, axis, start))


def spread(l: Lowering, part: Any, axis: int, step: int) -> Any:
    """Inserts step - 1 zeros after each entry along axis."""
    shape = list(part.shape)
    apart = l.reshape(part, [*shape[:axis + 1], 1, *shape[axis + 1:]])
    zeros = l.filled(0.0, [*shape[:axis + 1], step - 1, *shape[axis + 1:]], part.dtype)
    return l.reshape(l.op("Concat", [apart, zeros], axis=axis + 1), [*shape[:axis], shape[axis] * step, *shape[axis + 1:]])


def select_backward(l: Lowering, a: Args) -> Any:
    sizes = [int(n) for n in a.input_sizes]
    axis = a.dim % len(sizes)
    part = l.reshape(l.parameter(a.grad_output, result_type(a)), [*sizes[:axis], 1, *sizes[axis + 1:]])
    return owned(l, placed(l, sizes, part, axis, int(a.index) % sizes[axis]))


def slice_scatter(l: Lowering, a: Args) -> Any:
    if a.step != 1:
        raise Refused(f"step {a.step}")
    dtype = dtype_of(a.value)
    axis = a.dim % len(a.value.shape)
    start, end = bounds(a.start, a.end, int(a.value.shape[axis]))
    whole = [int(n) for n in a.value.shape] if l.uniform(a.self) == 0 else l.parameter(a.self, dtype)
    return owned(l, placed(l, whole, l.parameter(a.src, dtype), axis, start)) if end > start else l.op("Reorder", [l.tensor(a.self)])


def memory_order(shape: Any, strides: Any) -> list:
    """Returns the axes in memory order, outermost first. Raises Refused unless the elements fill memory densely, each once.
    """
    order, expected = sorted((d for d in range(len(shape)) if shape[d] != 1), key=lambda d: -strides[d]), 1
    for d in reversed(order):
        if strides[d] != expected:
            raise Refused("strides that leave gaps or overlap")
        expected *= shape[d]
    return [d for d in range(len(shape)) if shape[d] == 1] + order


def laid_anew(l: Lowering, source: Any, strides: Any, shape: Any, new_strides: Any) -> Any:
    """Returns a tensor with `strides`, reinterpreted in memory as `shape` with `new_strides`."""
    before, after = memory_order(source.shape, strides), memory_order(shape, new_strides)
    inner = source if before == sorted(before) else l.op("StaticTranspose", [source], order=before)
    inner = l.reshape(inner, [shape[d] for d in after])
    back = [after.index(d) for d in range(len(after))]
    return inner if back == sorted(back) else l.op("StaticTranspose", [inner], order=back)


def as_strided_scatter(l: Lowering, a: Args) -> Any:
    """Returns src, if it replaces all of self."""
    whole, src = a.self.meta["val"], a.src.meta["val"]
    if src.numel() != whole.numel() or (a.storage_offset or 0) != whole.storage_offset():
        raise Refused("values that replace only a part of the tensor")
    return owned(l, laid_anew(l, l.parameter(a.src, dtype_of(a.value)), list(a.stride), [int(n) for n in whole.shape], whole.stride()))
