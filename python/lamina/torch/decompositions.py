"""Decompositions of ATen ops into ops that lamina has, beside torch's core decompositions. A function returns NotImplemented for
arguments that it does not express: torch then runs the op."""

from __future__ import annotations

import math
from typing import Any, Optional

import torch
import torch.nn.functional as F
from torch import Tensor
from torch._decomp import _core_aten_decompositions_post_autograd, get_decompositions

aten = torch.ops.aten

# Ops whose decomposition torch has, but does not count among the core ones.
FURTHER = [aten.grid_sampler_2d, aten.upsample_bicubic2d, aten.upsample_trilinear3d,
           aten.logical_xor, aten.hypot]


KEYS_OF_BATCH = 1  # a mask [batch, keys]; 0: [queries, keys], 2: [batch, heads, queries, keys]


def encoder_layer(src: Tensor, embed_dim: int, num_heads: int, qkv_weight: Tensor, qkv_bias: Tensor, proj_weight: Tensor, proj_bias: Tensor,
                  use_gelu: bool, norm_first: bool, eps: float, norm_weight_1: Tensor, norm_bias_1: Tensor, norm_weight_2: Tensor, norm_bias_2: Tensor,
                  ffn_weight_1: Tensor, ffn_bias_1: Tensor, ffn_weight_2: Tensor, ffn_bias_2: Tensor, mask: Optional[Tensor] = None,
                  mask_type: Optional[int] = None) -> Any:
    """The one op by which nn.TransformerEncoderLayer runs for inference."""
    if src.is_nested:
        return NotImplemented
    if mask is not None:  # as in torch's kernel, which attends where it is 0
        hidden_from = mask.to(torch.bool) if mask_type != KEYS_OF_BATCH else mask.to(torch.bool)[:, None, None, :]

    def attention(x: Tensor) -> Tensor:
        q, k, v = F.linear(x, qkv_weight, qkv_bias).unflatten(-1, (3, num_heads, embed_dim // num_heads)).permute(2, 0, 3, 1, 4).unbind(0)
        if mask is None:
            made = F.scaled_dot_product_attention(q, k, v)
        else:  # a row that attends nowhere is NaN
            scores = (q * (embed_dim // num_heads) ** -0.5) @ k.transpose(-1, -2)
            made = scores.masked_fill(hidden_from, -math.inf).softmax(-1) @ v
        return F.linear(made.transpose(1, 2).flatten(2), proj_weight, proj_bias)

    def wide(x: Tensor) -> Tensor:
        hidden = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(hidden) if use_gelu else F.relu(hidden), ffn_weight_2, ffn_bias_2)

    first = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)
    second = lambda x: F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)
    if norm_first:
        x = src + attention(first(src))
        return x + wide(second(x))
    x = first(src + attention(src))
    return second(x + wide(x))


# ---- bags of embeddings

SUM, MEAN, MAX = range(3)


def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = SUM, sparse: bool = False,
                  per_sample_weights: Optional[Tensor] = None, include_last_offset: bool = False, padding_idx: int = -1) -> Any:
    """Sums or means of rows of a table. Bag i has the indices from offsets[i] on."""
    count, bags = indices.shape[0], offsets.shape[0] - include_last_offset
    if mode == MAX or sparse or padding_idx >= 0 or count == 0 or bags == 0:
        return NotImplemented
    starts = torch.zeros(count + 1, dtype=torch.float64).index_add(0, offsets[:bags], torch.ones(bags, dtype=torch.float64))
    bag_of = (starts[:count].cumsum(0) - 1).to(torch.int64)
    sizes = torch.zeros(bags, dtype=torch.float64).index_add(0, bag_of, torch.ones(count, dtype=torch.float64))
    rows = weight.index_select(0, indices)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    made = weight.new_zeros(bags, weight.shape[1]).index_add(0, bag_of, rows)
    if mode == MEAN:
        made = made / sizes.clamp(min=1)[:, None].to(made.dtype)
    return made, bag_of, sizes.to(torch.int64), torch.zeros(bags, dtype=torch.int64)


def embedding_bag_backward(grad: Tensor, indices: Tensor, offsets: Tensor, offset2bag: Tensor, bag_size: Tensor, maximum_indices: Tensor,
                           num_weights: int, scale_grad_by_freq: bool, mode: int, sparse: bool, per_sample_weights: Optional[Tensor],
                           padding_idx: int = -1) -> Any:
    if mode == MAX or sparse or scale_grad_by_freq or padding_idx >= 0 or indices.shape[0] == 0:
        return NotImplemented
    if mode == MEAN:
        grad = grad / bag_size.clamp(min=1)[:, None].to(grad.dtype)
    rows = grad.index_select(0, offset2bag)
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[:, None]
    return grad.new_zeros(num_weights, grad.shape[1]).index_add(0, indices, rows)


# ---- grids

BILINEAR, ZEROS, BORDER = 0, 0, 1


def grid_sampler_backward(grad_output: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool,
                          output_mask: list) -> Any:
    """Gradients of the picture and of the grid, for linear interpolation between four pixels."""
    if interpolation_mode != BILINEAR or padding_mode not in (ZEROS, BORDER):
        return NotImplemented
    batch, channels, height, width = input.shape
    count = grid.shape[1] * grid.shape[2]
    grad, flat = grad_output.reshape(batch, channels, count), input.reshape(batch, channels, height * width)

    def along(axis: int, extent: int) -> tuple:
        """The positions in pixels, and their slope by the grid's coordinate."""
        position, slope = grid[..., axis].reshape(batch, count), (extent - 1) / 2 if align_corners else extent / 2
        position = (position + 1) * slope if align_corners else ((position + 1) * extent - 1) / 2
        if padding_mode == BORDER:
            inside = (position > 0) & (position < extent - 1)
            return position.clamp(0, extent - 1), inside.to(grid.dtype) * slope
        return position, slope

    (x, x_slope), (y, y_slope) = along(0, width), along(1, height)
    left, top = x.floor(), y.floor()
    of_input, of_x, of_y = torch.zeros_like(flat), 0, 0
    for right, below in ((0, 0), (0, 1), (1, 0), (1, 1)):
        column, row = left + right, top + below
        inside = ((column >= 0) & (column < width) & (row >= 0) & (row < height)).to(input.dtype)
        place = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).to(torch.int64)[:, None].expand(batch, channels, count)
        across, down = (x - left if right else left + 1 - x), (y - top if below else top + 1 - y)
        of_input = of_input.scatter_add(2, place, grad * (across * down * inside)[:, None])
        if output_mask[1]:
            moved = (flat.gather(2, place) * grad).sum(1) * inside
            of_x, of_y = of_x + moved * down * (1 if right else -1), of_y + moved * across * (1 if below else -1)
    of_grid = torch.stack([of_x * x_slope, of_y * y_slope], -1).reshape(grid.shape) if output_mask[1] else None
    return of_input.reshape(input.shape) if output_mask[0] else None, of_grid


# ---- pools of adapted sizes

def windows(extent: int, count: int) -> tuple:
    """The first element of each window, and one past its last: [count, 1]."""
    window = torch.arange(count)[:, None]
    return window * extent // count, ((window + 1) * extent + count - 1) // count


def bounds(extent: int, count: int) -> list:
    """The same as numbers."""
    return [(i * extent // count, -(-(i + 1) * extent // count)) for i in range(count)]


def laid_out_like(x: Tensor, made: Tensor) -> Tensor:
    """With the channels where x has them, as eager's pools return them."""
    return made.contiguous(memory_format=torch._prims_common.suggest_memory_format(x))


def adaptive_average(x: Tensor, output_size: list) -> Any:
    """Means of slices, one axis after the other: an infinite element or a NaN reaches its own windows only, which it would not
    in a product with a matrix of weights."""
    if 0 in x.shape or 0 in output_size:
        return NotImplemented
    made = x.to(torch.promote_types(x.dtype, torch.float32))
    for axis, count in ((-1, output_size[1]), (-2, output_size[0])):
        parts = [made.narrow(axis, begin, end - begin).mean(axis, keepdim=True) for begin, end in bounds(made.shape[axis], count)]
        made = torch.cat(parts, axis)
    return laid_out_like(x, made.to(x.dtype))


def adaptive_average_backward(grad: Tensor, x: Tensor) -> Any:
    """Each element gets the gradients of its windows, divided by their lengths."""
    if 0 in x.shape or 0 in grad.shape:
        return NotImplemented
    made = grad.to(torch.promote_types(x.dtype, torch.float32))
    for axis in (x.dim() - 1, x.dim() - 2):
        extent, count = x.shape[axis], made.shape[axis]
        total = None
        for i, (begin, end) in enumerate(bounds(extent, count)):
            part = made.narrow(axis, i, 1) / (end - begin)
            part = part.expand([end - begin if d == axis else n for d, n in enumerate(part.shape)])
            around = [0, 0] * (x.dim() - 1 - axis) + [begin, extent - end]
            part = torch.constant_pad_nd(part, around)
            total = part if total is None else total + part
        made = total
    return laid_out_like(x, made.to(x.dtype))


def adaptive_maximum(x: Tensor, output_size: list) -> Any:
    """The largest element of each window, and its place in the picture: windows become rows of equal length, padded with -inf."""
    if 0 in x.shape or 0 in output_size:
        return NotImplemented
    height, width = x.shape[-2:]
    picked, inside = [], []
    for extent, count in zip((height, width), output_size):
        begin, end = windows(extent, count)
        places = begin + torch.arange(max(-(-(i + 1) * extent // count) - i * extent // count for i in range(count)))
        picked.append(places.clamp(max=extent - 1))
        inside.append(places < end)
    (rows, columns), (high, wide) = picked, inside
    table = (rows[:, None, :, None] * width + columns[None, :, None, :]).flatten(0, 1).flatten(1)  # [windows, elements]
    legal = (high[:, None, :, None] & wide[None, :, None, :]).flatten(0, 1).flatten(1)
    flat = x.flatten(-2)[..., table.flatten()].unflatten(-1, table.shape)
    largest, which = torch.where(legal, flat, -math.inf).max(-1)
    places = table.expand(*which.shape, table.shape[1]).gather(-1, which[..., None]).squeeze(-1)
    return tuple(laid_out_like(x, made.unflatten(-1, list(output_size))) for made in (largest, places))


def adaptive_maximum_backward(grad: Tensor, x: Tensor, indices: Tensor) -> Any:
    if 0 in x.shape or 0 in grad.shape:
        return NotImplemented
    flat = torch.zeros_like(x).flatten(-2)
    return laid_out_like(x, flat.scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(x.shape))


# ---- padding

def replicated_backward(grad: Tensor, x: Tensor, padding: list) -> Any:
    """Each element's gradient and those of its copies in the padding."""
    if 0 in x.shape or 0 in grad.shape:
        return NotImplemented
    for axis, (before, after) in enumerate(zip(padding[::2], padding[1::2])):
        dim = x.dim() - 1 - axis
        places = torch.arange(-before, x.shape[dim] + after).clamp(0, x.shape[dim] - 1)
        shape = [x.shape[dim] if d == dim else n for d, n in enumerate(grad.shape)]
        grad = grad.new_zeros(shape).index_add(dim, places, grad)
    return grad


# ---- functions that a few others express

def log_by(base: float) -> Any:
    return lambda x: torch.log(x) * (1 / math.log(base)) if x.is_floating_point() else NotImplemented


def sine_hyperbolic(x: Tensor) -> Any:
    """(e + e / (e + 1)) / 2 with e = exp(|x|) - 1; of large numbers exp(|x| / 2)^2 / 2, which overflows later."""
    if not x.is_floating_point():
        return NotImplemented
    near, half = torch.expm1(x.abs()), torch.exp(x.abs() / 2)
    return torch.where(x.abs() < 20, (near + near / (near + 1)) / 2, half * (half / 2)) * torch.sign(x)


def cosine_hyperbolic(x: Tensor) -> Any:
    if not x.is_floating_point():
        return NotImplemented
    half = torch.exp(x.abs() / 2)
    return half * (half / 2) + 0.5 * torch.exp(-x.abs())


def real(function: Any) -> Any:
    return lambda x: function(x) if x.is_floating_point() else NotImplemented


# ---- lists of tensors

def are_scalars(lists: list) -> bool:
    """Whether all elements are tensors without axes and of one type, such as the steps of an optimizer."""
    every = [element for value in lists for element in value]
    return len(lists[0]) > 1 and all(isinstance(t, Tensor) and t.dim() == 0 and t.dtype == every[0].dtype for t in every)


def one_by_one(op: Any, single: Any) -> Any:
    """Applies the packet `single` (aten.add) to each tensor of an op that takes lists of them (aten._foreach_add.List)."""
    order = [argument.name for argument in op._schema.arguments]
    is_list = {argument.name: isinstance(argument.type, torch.ListType) for argument in op._schema.arguments}
    schemas = [getattr(single, overload)._schema for overload in single.overloads()]
    most = max(sum(not argument.kwarg_only for argument in schema.arguments) for schema in schemas)
    by_name = [argument.name for argument in schemas[0].arguments if argument.kwarg_only]  # the fourth argument of addcmul

    def apart(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(order, args)), **kwargs}

        def of(one: Any) -> Any:
            own = [one(name) for name in order[:len(args)]]
            return single(*own[:most], **dict(zip(by_name, own[most:])), **{name: one(name) for name in kwargs})

        lists = [value for name, value in given.items() if is_list[name]]
        if are_scalars(lists):  # as one vector
            vector = of(lambda name: torch.stack(given[name]) if is_list[name] else given[name])
            return [vector.select(0, i) for i in range(len(lists[0]))]
        return [of(lambda name: given[name][i] if is_list[name] else given[name]) for i in range(max(map(len, lists)))]

    return apart


def of_lists() -> dict:
    """Decompositions of the ops that take lists of tensors and write to none."""
    made = {}
    for name in dir(aten):
        single = getattr(aten, name.removeprefix("_foreach_"), None) if name.startswith("_foreach_") and not name.endswith("_") else None
        if single is None:
            continue
        packet = getattr(aten, name)
        overloads = [getattr(packet, overload) for overload in packet.overloads()]
        made.update({op: one_by_one(op, single) for op in overloads if not op._schema.is_mutable and op._schema.returns})
    return made


OWN = {
    aten._transformer_encoder_layer_fwd.default: encoder_layer,
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_forward_only.default: embedding_bag,
    aten._embedding_bag_backward.default: embedding_bag_backward,
    aten.grid_sampler_2d_backward.default: grid_sampler_backward,
    aten._adaptive_avg_pool2d.default: adaptive_average,
    aten._adaptive_avg_pool2d_backward.default: adaptive_average_backward,
    aten.adaptive_max_pool2d.default: adaptive_maximum,
    aten.replication_pad1d_backward.default: replicated_backward,
    aten.replication_pad2d_backward.default: replicated_backward,
    aten.replication_pad3d_backward.default: replicated_backward,
    aten.adaptive_max_pool2d_backward.default: adaptive_maximum_backward,
    aten.log2.default: log_by(2),
    aten.log10.default: log_by(10),
    aten.sinh.default: sine_hyperbolic,
    aten.cosh.default: cosine_hyperbolic,
    aten.tan.default: real(lambda x: torch.sin(x) / torch.cos(x)),
    aten.atan.default: real(lambda x: torch.atan2(x, torch.ones_like(x))),
    aten.asin.default: real(lambda x: torch.atan2(x, torch.sqrt((1 - x) * (1 + x)))),
    aten.acos.default: real(lambda x: torch.atan2(torch.sqrt((1 - x) * (1 + x)), x)),
    aten.atanh.default: real(lambda x: 0.5 * (torch.log1p(x) - torch.log1p(-x))),
}


def all_decompositions(is_kept: Any) -> dict:
    """torch's core decompositions, further ones and OWN, without the ops for which is_kept(op). Those of composite ops are left out:
    tracers decompose them by themselves, and listing them takes 0.1 s."""
    made = {**_core_aten_decompositions_post_autograd(), **get_decompositions(FURTHER), **of_lists(), **OWN}
    return {op: function for op, function in made.items() if not is_kept(op)}
