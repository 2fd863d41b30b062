"""Rules for the order of elements, running sums, and reads and writes by index along one axis: the routing of a mixture of
experts, and caches of keys and values."""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import Node

from lamina.torch.lowering import Lowering
from lamina.torch.nodes import FLOATS, Args, Refused, base_of, dtype_of
from lamina.torch.rules import Reduce, operand, result_type, wide_type, with_an_axis
from lamina.torch.rules_index import added, axes_of, expanded_to, indices_of, joint_places, places_from_0, sliced

MOST_COMPARISONS = 1 << 24  # of places with indices; more take longer than a step of torch


# ---- sorting and running sums

def first_in_order(l: Lowering, a: Args, count: int, largest: bool) -> list:
    """The first `count` elements of each row in order, and their positions. NaN is the largest; equal elements keep their
    order."""
    source, used = with_an_axis(l, l.tensor(a.self)), l.used(a.node)
    if source.shape[a.dim] == 0:
        raise Refused("rows without elements")
    made = l.op("TopK", [source], outputs=(0 in used or not used, 1 in used), axis=a.dim, k=count, largest=largest)
    return [None if tensor is None else l.reshape(tensor, value.shape) for tensor, value in zip(made, a.value)]


def top_k(l: Lowering, a: Args) -> list:
    return first_in_order(l, a, int(a.k), bool(a.largest))


def sort(l: Lowering, a: Args) -> list:
    shape = a.self.meta["val"].shape
    return first_in_order(l, a, int(shape[a.dim]) if shape else 1, bool(a.descending))


def extreme_places(l: Lowering, a: Args, largest: bool) -> tuple:
    """The extreme of each row along a.dim (None: of all elements) and the position of the first one, [.., 1, ..]. NaN is more
    extreme than any number: TopK takes it as the largest, so the least is the largest of the negated elements."""
    source = with_an_axis(l, l.tensor(a.self))
    if a.dim is None:
        source = l.reshape(source, [math.prod(source.shape)])
    own, dim = source.dtype, -1 if a.dim is None else a.dim
    if 0 in source.shape:
        raise Refused("rows without elements")
    if own in ("boolean", "s8", "u8"):  # TopK does not take them
        source = l.cast(source, "s32")
    negated = not largest and source.dtype in FLOATS
    turn = lambda tensor: l.op("Multiply", [tensor, l.constant(-1.0, tensor.dtype)]) if negated else tensor
    extreme, place = l.op("TopK", [turn(source)], axis=dim, k=1, largest=largest or negated)
    return l.cast(turn(extreme), own), place


def extreme_along(largest: bool) -> Callable:
    """max.dim and min.dim."""
    def rule(l: Lowering, a: Args) -> list:
        return [l.reshape(tensor, value.shape) for tensor, value in zip(extreme_places(l, a, largest), a.value)]

    return rule


def extreme(largest: bool) -> Callable:
    """max and min of all elements."""
    of_floats = Reduce("ReduceMax" if largest else "ReduceMin")

    def rule(l: Lowering, a: Args) -> Any:
        if dtype_of(a.value) in FLOATS:
            return of_floats(l, a)
        a.dim = None
        return l.reshape(extreme_places(l, a, largest)[0], a.value.shape)

    return rule


def place_of_extreme(largest: bool) -> Callable:
    """argmax and argmin."""
    return lambda l, a: l.reshape(extreme_places(l, a, largest)[1], a.value.shape)


def running(kind: str) -> Callable:
    """cumsum and cumprod."""
    def rule(l: Lowering, a: Args) -> Any:
        source = l.tensor(a.self, dtype_of(a.value))
        return l.reshape(l.op(kind, [with_an_axis(l, source)], axis=a.dim), a.value.shape)

    return rule


def linear_recurrence(l: Lowering, a: Args) -> Any:
    dtype = dtype_of(a.value)
    return l.op("LinearRecurrence", [l.parameter(a.factors, dtype), l.parameter(a.src, dtype)], axis=a.dim, reverse=a.reverse)


def linear_recurrence_backward(l: Lowering, a: Args) -> list:
    dtype = dtype_of(a.value[0])
    inputs = [l.parameter(t, dtype) for t in (a.grad, a.factors, a.states)]
    return list(l.op("LinearRecurrenceBackward", inputs, outputs=(True, True), axis=a.dim, reverse=a.reverse))


def running_logarithm(l: Lowering, a: Args) -> Any:
    """logcumsumexp: m + log(sum(exp(x - m))) over the elements up to each place, whose largest one is m."""
    dtype, shape = result_type(a), list(a.value.shape) or [1]
    axis = a.dim % len(shape)
    x = along(l, with_an_axis(l, l.parameter(a.self, wide_type(dtype))), axis)
    rows, count = x.shape
    if 0 in x.shape or rows * count**2 > MOST_COMPARISONS:
        raise Refused("no elements, or more than 2^24 pairs of elements of a row")
    number = lambda value: l.constant(value, x.dtype)
    pairs = l.op("Expand", [l.reshape(x, [rows, 1, count])], shape=[rows, count, count])
    last, place = (l.op("GenIndex", [pairs], axis=d) for d in (1, 2))
    pairs = l.op("Select", [l.op("LessEqual", [place, last]), pairs, number(-math.inf)])
    most = l.op("ReduceMax", [pairs], axes=[2], keep_dims=True)
    shift = l.op("Select", [l.op("Equal", [l.op("Abs", [most]), number(math.inf)]), number(0.0), most])
    total = l.op("ReduceSum", [l.op("Exp", [l.op("Subtract", [pairs, shift])])], axes=[2], keep_dims=True)
    made = l.reshape(l.op("Add", [l.op("Log", [total]), shift]), [rows, count])
    return l.reshape(l.cast(back(l, made, shape, axis), dtype), a.value.shape)


def histogram(l: Lowering, a: Args) -> Any:
    """The number of elements in each of `bins` equal parts from min to max; others are not counted."""
    dtype, bins, low, high = result_type(a), int(a.bins), float(a.min), float(a.max)
    count = a.self.meta["val"].numel()
    if not low < high:
        raise Refused("a range that depends on the data")
    if dtype in ("bf16", "f16") or count >= 1 << 24:
        raise Refused("counts that floats of this type do not have")
    x = l.reshape(l.tensor(a.self, dtype), [count])
    number = lambda value: l.constant(value, dtype)
    place = l.op("Divide", [l.op("Multiply", [l.op("Subtract", [x, number(low)]), number(float(bins))]), number(high - low)])
    place = l.op("Minimum", [l.op("Trunc", [place]), l.filled(bins - 1, [count], dtype)])
    inside = l.op("LogicalAnd", [l.op("GreaterEqual", [x, number(low)]), l.op("LessEqual", [x, number(high)])])
    place = l.cast(l.op("Select", [inside, place, l.filled(bins, [count], dtype)]), "s32")
    return l.op("ScatterAdd", [l.filled(1.0, [count], dtype), place], axis=0, extent=bins, ignore_index=bins)


def grouped_product(first: str, second: str) -> Any:
    """Each group of rows times its own matrix or, of two matrices, each group of columns times the same rows; `offs` is where each
    group ends."""
    def rule(l: Lowering, a: Args) -> Any:
        dtype, left, right = result_type(a), getattr(a, first), getattr(a, second)
        ranks = [node.meta["val"].dim() for node in (left, right)]
        if getattr(a, "bias", None) is not None or a.offs is None or ranks not in ([2, 3], [2, 2]):
            raise Refused("groups of columns of the second factor, or a bias")
        own = dtype_of(left.meta["val"])
        return l.op("GroupedMatMul", [l.parameter(left, own), l.parameter(right, own), indices_of(l, a.offs)], dtype=dtype)

    return rule


def grouped_product_backward(l: Lowering, a: Args) -> list:
    """The gradients of the rows and of the matrices."""
    used, ends = l.used(a.node), indices_of(l, a.offs)
    rows, matrices = (dtype_of(value) for value in a.value)
    source, weight, grad = (l.parameter(node, dtype_of(node.meta["val"])) for node in (a.input, a.weight, a.grad_output))
    of_rows = l.op("GroupedMatMul", [grad, weight, ends], transpose_b=True, dtype=rows) if 0 in used else None
    of_matrices = l.op("GroupedMatMul", [source, grad, ends], transpose_a=True, dtype=matrices) if 1 in used else None
    return [of_rows, of_matrices]


# ---- integers

def bound_of(l: Lowering, node: Any) -> Optional[int]:
    """Returns a number that no element exceeds in magnitude; None if there is none that f64 counts exactly."""
    if not isinstance(node, Node):
        return abs(int(node))
    value = node.meta["val"]
    if node in l.constants:
        with unset_fake_temporarily():
            return int(l.constants[node].abs().max()) if l.constants[node].numel() else 0
    if value.dtype in (torch.int8, torch.uint8, torch.int32):
        return 1 << 31
    if node.target is operator.getitem and base_of(node.args[0]) in ("sort", "topk") and node.args[1] == 1:
        return max((int(extent) for extent in node.args[0].args[0].meta["val"].shape), default=1)
    return bound_of(l, node.args[0]) if l.is_view(node) else None


def divided_integers(l: Lowering, a: Args) -> tuple:
    """The quotient towards 0 by a number, its remainder, and whether the remainder has not the sign of the divisor."""
    dtype = dtype_of(a.value)
    if isinstance(a.other, (float, Node)) or a.other == 0:
        raise Refused("a divisor that is not a number other than 0")
    x, y, zero = l.tensor(a.self, dtype), l.constant(a.other, dtype), l.constant(0, dtype)
    whole = l.op("Divide", [x, y])
    rest = l.op("Subtract", [x, l.op("Multiply", [whole, y])])
    return whole, rest, l.op("Less" if a.other > 0 else "Greater", [rest, zero])


def floor_divide(l: Lowering, a: Args) -> Any:
    """The largest integer that is not above the quotient."""
    whole, _, is_above = divided_integers(l, a)
    return l.op("Subtract", [whole, l.cast(is_above, whole.dtype)])


def remainder_of_integers(l: Lowering, a: Args, of_divisor: bool) -> Any:
    _, rest, differs = divided_integers(l, a)
    return l.op("Select", [differs, l.op("Add", [rest, l.constant(a.other, rest.dtype)]), rest]) if of_divisor else rest


# ---- reads and writes by index

def along(l: Lowering, tensor: Any, axis: int) -> Any:
    """Returns the tensor as rows along an axis: [rows, extent]."""
    order = [d for d in range(len(tensor.shape)) if d != axis] + [axis]
    moved = tensor if order == sorted(order) else l.op("StaticTranspose", [tensor], order=order)
    return l.reshape(moved, [math.prod(tensor.shape) // max(tensor.shape[axis], 1) if tensor.shape[axis] else 0, tensor.shape[axis]])


def back(l: Lowering, rows: Any, shape: list, axis: int) -> Any:
    """The inverse of `along`; `shape`: the shape of the result."""
    others = [d for d in range(len(shape)) if d != axis]
    moved = l.reshape(rows, [*(shape[d] for d in others), shape[axis]])
    order = [*others, axis]
    return moved if order == sorted(order) else l.op("StaticTranspose", [moved], order=[order.index(d) for d in range(len(shape))])


def flat_places(l: Lowering, places: Any, rows: int, extent: int) -> Any:
    """The places [rows, count] of each row as places in all rows, [rows * extent]; places outside become one past the end, which is
    an error at run time."""
    if rows * extent > 2**31 - 1:
        raise Refused("more than 2^31 - 1 elements")
    number = lambda value: l.constant(float(value), "f64")
    inside = l.op("LogicalAnd", [l.op("GreaterEqual", [places, number(0)]), l.op("Less", [places, number(extent)])])
    row = l.known_tensor(f"lamina_rows_{rows}_{extent}", real(lambda: torch.arange(rows, dtype=torch.float64).reshape(rows, 1) * extent))
    flat = l.op("Select", [inside, l.op("Add", [places, row]), l.filled(rows * extent, places.shape, "f64")])
    return l.cast(flat, "s32")


def taken(l: Lowering, source: Any, places: Any) -> Any:
    """[rows, extent] at the places [rows, count] of each row, in f64."""
    rows, extent = source.shape
    return l.op("Gather", [l.reshape(source, [rows * extent]), flat_places(l, places, rows, extent)], axis=0)


def real(make: Any) -> torch.Tensor:
    with unset_fake_temporarily():
        return make()


def gather(l: Lowering, a: Args) -> Any:
    """Elements at the indices along an axis. The indices may be shorter along the other axes."""
    source, index = with_an_axis(l, l.tensor(a.self)), with_an_axis(l, indices_of(l, a.index))
    axis, shape = a.dim % len(source.shape), list(index.shape)
    if 0 in shape or 0 in source.shape:
        raise Refused("tensors without elements")
    for d, extent in enumerate(shape):
        if d != axis and extent != source.shape[d]:
            source = sliced(l, source, d, 0, extent)
    rows = along(l, source, axis)
    made = taken(l, rows, l.cast(along(l, index, axis), "f64"))
    return l.reshape(back(l, made, shape, axis), a.value.shape)


def writers(l: Lowering, places: Any, extent: int) -> Any:
    """[rows, count] places, in f64: returns for each place [rows, extent] the last entry that is written to it, or -1."""
    rows, count = places.shape
    if rows * count * extent > MOST_COMPARISONS:
        raise Refused(f"{rows * count} indices into {extent} places, which are compared one by one")
    numbers = lambda n, shape: l.known_tensor(f"lamina_numbers_{n}_{len(shape)}_{shape.index(-1)}", real(lambda: torch.arange(n, dtype=torch.float64).reshape(shape)))
    here = l.op("Equal", [l.reshape(places, [rows, 1, count]), numbers(extent, (1, -1, 1))])
    entry = l.op("Select", [here, l.op("Expand", [numbers(count, (1, 1, -1))], shape=[rows, extent, count]), l.constant(-1.0, "f64")])
    return l.op("ReduceMax", [entry], axes=[2], keep_dims=False)


def wrapped(l: Lowering, index: Any, extent: int, counts_back: bool) -> tuple:
    """Returns indices in f64, and whether each is legal; negative ones may count from the end."""
    number = lambda value: l.constant(float(value), "f64")
    at = l.cast(index, "f64")
    if counts_back:
        at = l.op("Add", [at, l.op("Multiply", [l.cast(l.op("Less", [at, number(0)]), "f64"), number(extent)])])
    return at, l.op("LogicalAnd", [l.op("GreaterEqual", [at, number(0)]), l.op("Less", [at, number(extent)])])


def written(l: Lowering, whole: Any, index: Any, entries: Any, counts_back: bool) -> Any:
    """[rows, extent, inner] with entries [rows, count, inner] written to the places index [rows, count]: the last one of a place
    remains. An illegal index is an error at run time."""
    rows, extent, inner = whole.shape
    count = entries.shape[1]
    at, legal = wrapped(l, index, extent, counts_back)
    last = writers(l, at, extent)
    all_legal = l.op("ReduceMin", [l.cast(legal, "f64")], axes=[1], keep_dims=True)  # of each row
    number = lambda value: l.constant(float(value), "f64")
    kept = l.op("Less", [last, number(0)])
    every = [rows, extent]
    if whole.dtype in FLOATS:
        found = l.op("Select", [kept, l.filled(0.0, every, "f64"), last])
        found = l.op("Select", [l.op("Greater", [all_legal, number(0)]), found, l.filled(count, every, "f64")])
        return l.op("Select", [l.reshape(kept, [rows, extent, 1]), whole, entries_at(l, entries, found)])
    number_of = l.known_tensor(f"lamina_numbers_{extent}_2_1", real(lambda: torch.arange(extent, dtype=torch.float64).reshape(1, -1)))
    found = l.op("Select", [kept, l.op("Expand", [number_of], shape=every), l.op("Add", [last, number(extent)])])
    found = l.op("Select", [l.op("Greater", [all_legal, number(0)]), found, l.filled(extent + count, every, "f64")])
    return entries_at(l, l.op("Concat", [whole, entries], axis=1), found)


def entries_at(l: Lowering, entries: Any, places: Any) -> Any:
    """[rows, count, inner] at the places [rows, extent] of each row."""
    rows, count, inner = entries.shape
    extent = places.shape[1]
    if rows == 1:
        made = l.op("Gather", [l.reshape(entries, [count, inner]), l.cast(l.reshape(places, [extent]), "s32")], axis=0)
        return l.reshape(made, [1, extent, inner])
    if inner != 1:
        raise Refused("rows of indices for entries of several elements")
    return l.reshape(taken(l, l.reshape(entries, [rows, count]), places), [rows, extent, 1])


def scatter(l: Lowering, a: Args) -> Any:
    """Writes elements, or one number, to the indices along an axis."""
    whole, index = with_an_axis(l, l.parameter(a.self, dtype_of(a.value))), with_an_axis(l, indices_of(l, a.index))
    axis, shape = a.dim % len(whole.shape), list(whole.shape)
    if 0 in index.shape or any(index.shape[d] != shape[d] for d in range(len(shape)) if d != axis):
        raise Refused("indices whose shape differs along other axes")
    if hasattr(a, "src"):
        source = with_an_axis(l, l.parameter(a.src, whole.dtype))
        for d, extent in enumerate(index.shape):
            source = source if source.shape[d] == extent else sliced(l, source, d, 0, extent)
        entries = along(l, source, axis)
    else:
        value = a.argument("value")
        entries = l.filled(value, along(l, index, axis).shape, whole.dtype)
    rows = along(l, whole, axis)
    places = along(l, index, axis)
    made = written(l, l.reshape(rows, [*rows.shape, 1]), places, l.reshape(entries, [*entries.shape, 1]), False)
    return l.reshape(back(l, l.reshape(made, rows.shape), shape, axis), a.value.shape)


def scatter_add(l: Lowering, a: Args) -> Any:
    """self + the sums of the elements of src by index along an axis: rows of a sum each, as one list of places."""
    dtype, shape = result_type(a), [int(n) for n in a.value.shape] or [1]
    index, axis = with_an_axis(l, indices_of(l, a.index)), a.dim % len(shape)
    if 0 in index.shape or any(index.shape[d] != shape[d] for d in range(len(shape)) if d != axis):
        raise Refused("indices whose shape differs along other axes")
    source = with_an_axis(l, l.parameter(a.src, dtype))
    for d, extent in enumerate(index.shape):
        source = source if source.shape[d] == extent else sliced(l, source, d, 0, extent)
    rows, extent = math.prod(shape) // shape[axis], shape[axis]
    places = flat_places(l, l.cast(along(l, index, axis), "f64"), rows, extent)
    count = rows * index.shape[axis]
    made = l.op("ScatterAdd", [l.reshape(along(l, source, axis), [count]), l.reshape(places, [count])], axis=0, extent=rows * extent)
    made = l.reshape(back(l, l.reshape(made, [rows, extent]), shape, axis), a.value.shape)
    return made if l.uniform(a.self) == 0 else l.op("Add", [l.tensor(a.self, dtype), made], dtype=dtype)


def put_along(l: Lowering, whole: Any, index: Any, entries: Any, axis: int, counts_back: bool) -> Any:
    """whole with entries [.., count, ..] written to the places index [count] of one axis."""
    shape = list(whole.shape)
    if 0 in shape or 0 in entries.shape:
        raise Refused("tensors without elements")
    order = [axis] + [d for d in range(len(shape)) if d != axis]
    in_front = lambda t: t if axis == 0 else l.op("StaticTranspose", [t], order=order)
    inner = math.prod(shape) // shape[axis]
    rows = lambda t: l.reshape(in_front(t), [1, t.shape[axis], inner])
    made = written(l, rows(whole), l.reshape(index, [1, index.shape[0]]), rows(entries), counts_back)
    made = l.reshape(made, [shape[d] for d in order])
    return made if axis == 0 else l.op("StaticTranspose", [made], order=[order.index(d) for d in range(len(shape))])


def index_copy(l: Lowering, a: Args) -> Any:
    dtype, axis = dtype_of(a.value), a.dim % max(len(a.value.shape), 1)
    whole, index, source = (with_an_axis(l, t) for t in (l.parameter(a.self, dtype), indices_of(l, a.index), l.parameter(a.source, dtype)))
    return l.reshape(put_along(l, whole, index, source, axis, False), a.value.shape)


def index_add(l: Lowering, a: Args) -> Any:
    """self + alpha * the sums of the entries of source by index."""
    dtype, shape = result_type(a), [int(n) for n in a.value.shape]
    axis, extent = (a.dim % len(shape), shape[a.dim]) if shape else (0, 1)
    source = l.parameter(a.source, dtype)
    if a.alpha != 1:
        source = l.op("Multiply", [source, operand(l, a.alpha, dtype)], dtype=dtype)
    count = a.index.meta["val"].numel()
    index = l.reshape(places_from_0(l, a.index, extent), [count])
    source = source if shape else l.reshape(source, [count])  # a scalar is one entry
    made = l.reshape(l.op("ScatterAdd", [source, index], axis=axis, extent=extent), shape)
    return made if l.uniform(a.self) == 0 else l.op("Add", [l.tensor(a.self, dtype), made], dtype=dtype)


def is_permutation(l: Lowering, node: Node) -> bool:
    """Whether the node has each position of its only axis once."""
    while l.is_view(node) and node.target is not operator.getitem:
        node = node.args[0]
    return node.target is operator.getitem and base_of(node.args[0]) == "sort" and node.args[1] == 1 and node.meta["val"].dim() == 1


def overwritten(l: Lowering, a: Args, chosen: dict) -> Any:
    """index_put of values that overwrite elements."""
    (axis, node), *others = chosen.items()
    if others or node.meta["val"].dim() != 1:
        return overwritten_jointly(l, a, chosen)
    index, count, shape = indices_of(l, node), node.meta["val"].numel(), [int(n) for n in a.value.shape]
    dtype = dtype_of(a.value)
    entries, of_entries = l.parameter(a.values, dtype), [count if d == axis else n for d, n in enumerate(shape)]
    if list(entries.shape) != of_entries:
        entries = l.op("Expand", [l.reshape(entries, [1] * (len(shape) - len(entries.shape)) + list(entries.shape))], shape=of_entries)
    if is_permutation(l, node) and count == shape[axis] and count < 1 << 24:
        number = real(lambda: torch.arange(count, dtype=torch.float32))
        inverse = l.op("ScatterAdd", [l.known_tensor(f"lamina_numbers_{count}", number), index], axis=0, extent=count)
        return l.op("Gather", [entries, l.cast(inverse, "s32")], axis=axis)
    return put_along(l, l.parameter(a.self, dtype), index, entries, axis, True)


def overwritten_jointly(l: Lowering, a: Args, chosen: dict) -> Any:
    """The indexed axes are one axis, and so are those of the indices."""
    dtype, shape = dtype_of(a.value), [int(n) for n in a.value.shape]
    before, extents, after = shape[:min(chosen)], shape[min(chosen):max(chosen) + 1], shape[max(chosen) + 1:]
    places = joint_places(l, chosen, extents)
    count = math.prod(places.shape)
    entries = expanded_to(l, l.parameter(a.values, dtype), [*before, *places.shape, *after])
    whole, entries = l.reshape(l.parameter(a.self, dtype), [*before, math.prod(extents), *after]), l.reshape(entries, [*before, count, *after])
    return l.reshape(put_along(l, whole, l.reshape(places, [count]), entries, len(before), False), shape)


def index_put(l: Lowering, a: Args) -> Any:
    return added(l, a) if a.accumulate else overwritten(l, a, axes_of(a.indices))
