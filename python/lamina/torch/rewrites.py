"""Rewrites of a graph of ATen ops before lowering, so that lamina can run more of it."""

from __future__ import annotations

import operator
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph, GraphModule, Node

import lamina
from lamina.torch import whole_ops  # noqa: F401, its ops are found by name
from lamina.torch.complex_pairs import split_complex
from lamina.torch.draws import dropout_mask, is_dense
from lamina.torch.nodes import DTYPES, VIEWS, base_of
from lamina.torch.views import PERMUTES, order_of

aten = torch.ops.aten
NORMS = {aten.native_layer_norm_backward.default: aten.native_layer_norm.default,
         aten.native_group_norm_backward.default: aten.native_group_norm.default}
POOLS = {aten.max_pool2d_with_indices_backward.default: torch.ops.lamina.max_pool2d_backward.default,
         aten.max_pool3d_with_indices_backward.default: torch.ops.lamina.max_pool3d_backward.default}
BATCH_NORMS = (aten._native_batch_norm_legit_no_training.default, aten._native_batch_norm_legit_functional.default)


def prepare_joint(module: GraphModule) -> None:
    """Rewrites the joint graph of forward and backward before it is split."""
    split_complex(module)  # so that the forward pass saves real parts
    _mark_gradients(module)
    for node in list(module.graph.nodes):
        if node.target in NORMS:
            _note_epsilon(node)
        elif node.target in POOLS:
            _forget_places(module.graph, node)
    module.graph.eliminate_dead_code()
    module.recompile()


def separate_gradients(backward: GraphModule) -> None:
    """A gradient of several inputs, as of both operands of a sum, becomes a tensor for each: torch takes the memory of a
    gradient that nothing else has, and copies others. A kernel that writes it twice is faster."""
    (output,) = backward.graph.find_nodes(op="output")
    given: list = []
    for value in output.args[0]:
        if isinstance(value, Node) and value in given:
            with backward.graph.inserting_before(output):
                copy = backward.graph.call_function(aten.clone.default, (value,))
            copy.meta.update(value.meta)
            value = copy
        given.append(value)
    output.args = (type(output.args[0])(given), *output.args[1:])
    backward.recompile()


def _mark_gradients(module: GraphModule) -> None:
    """Marks each node that depends on an incoming gradient. Other nodes are the user's forward ops, even if the backward
    graph computes them again."""
    for node in module.graph.nodes:
        if node.op == "placeholder":
            node.meta["lamina_gradient"] = "tangents" in str(node.target)
        else:
            node.meta["lamina_gradient"] = any(source.meta.get("lamina_gradient") for source in node.all_input_nodes)


def _note_epsilon(node: Node) -> None:
    """Notes the forward epsilon on a norm's backward op, which lacks it (16-bit types save only rounded statistics).
    """
    forward = NORMS[node.target]
    position = [argument.name for argument in node.target._schema.arguments].index("mean")
    mean = node.args[position]
    while mean.op == "call_function" and base_of(mean) in VIEWS and mean.target is not operator.getitem:
        mean = mean.args[0]
    if mean.target is operator.getitem and mean.args[0].target is forward:
        node.meta["lamina_epsilon"] = mean.args[0].args[-1]


def _forget_places(graph: Graph, node: Node) -> None:
    """lamina computes the argmax of max pools again, so that the forward pass need not save it."""
    grad, source, *window, ceil_mode, _ = node.args
    if DTYPES.get(source.meta["val"].dtype) not in lamina.op_schema("MaxPoolBackward")["types"]["T"]:
        return
    with graph.inserting_before(node):
        made = graph.call_function(POOLS[node.target], (grad, source, *window, ceil_mode))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def join_permutes(module: GraphModule) -> None:
    """Merges a permute of a permute into one, or none: a weight's gradient is a product that is transposed twice."""
    for node in list(module.graph.nodes):
        if node.target not in PERMUTES or node.args[0].target not in PERMUTES:
            continue
        inner = node.args[0]
        first, second = order_of(inner), order_of(node)
        order = [first[d] for d in second]
        if order == sorted(order):
            node.replace_all_uses_with(inner.args[0])
        else:
            node.target, node.args = aten.permute.default, (inner.args[0], order)
    module.graph.eliminate_dead_code()


def join_scalars(module: GraphModule) -> None:
    """Replaces the concatenation of all elements of a vector, one by one, by the vector."""
    for node in list(module.graph.nodes):
        vector = _taken_apart(node) if node.target is aten.cat.default else None
        if vector is not None:
            node.replace_all_uses_with(vector)
            module.graph.erase_node(node)


def _taken_apart(joined: Node) -> Optional[Node]:
    parts = [part.args[0] if part.target is aten.unsqueeze.default else part for part in joined.args[0]]
    if not all(part.target is aten.select.int and part.args[1:] == (0, i) for i, part in enumerate(parts)):
        return None
    vector = parts[0].args[0]
    is_whole = all(part.args[0] is vector for part in parts) and vector.meta["val"].shape == joined.meta["val"].shape == (len(parts),)
    return vector if is_whole else None


def widen_products(module: GraphModule) -> None:
    """Widens a 16-bit product that is a gradient and that only a cast to f32 reads, such as a weight's gradient under
    autocast: lamina's product writes f32, without rounding in between. A forward product keeps its rounding, which the user
    requested."""
    for node in list(module.graph.nodes):
        if node.target is not aten._to_copy.default or node.meta["val"].dtype != torch.float32:
            continue
        if node.meta["val"].stride() != node.args[0].meta["val"].stride():
            continue
        chain = [node]
        while chain[-1].args[0].target in PERMUTES and len(chain[-1].args[0].users) == 1:
            chain.append(chain[-1].args[0])
        product = chain[-1].args[0]
        if not product.meta.get("lamina_gradient"):
            continue
        if product.target is aten.mm.default and len(product.users) == 1 and product.meta["val"].dtype in (torch.bfloat16, torch.float16):
            _widen(module.graph, product, chain)


def _widen(graph: Graph, product: Node, chain: list) -> None:
    """The product and the views after it become f32; the cast, the first of the chain, is removed."""
    cast, *views = chain
    with graph.inserting_before(product):
        wide = graph.call_function(torch.ops.lamina.wide_mm.default, product.args)
    wide.meta.update(product.meta, val=product.meta["val"].to(torch.float32))
    product.replace_all_uses_with(wide)
    graph.erase_node(product)
    for view in views:
        view.meta["val"] = view.meta["val"].to(torch.float32)
    cast.replace_all_uses_with(cast.args[0])
    graph.erase_node(cast)


def widen_integer_products(module: GraphModule) -> None:
    """A product of 8-bit integers that only casts to f32 read writes f32."""
    for product in list(module.graph.nodes):
        if product.target is not aten._int_mm.default:
            continue
        readers = [user for user in product.users if user.target is aten._to_copy.default and user.meta["val"].dtype == torch.float32]
        if not readers or len(readers) < len(product.users):
            continue
        with module.graph.inserting_before(product):
            wide = module.graph.call_function(torch.ops.lamina.wide_int_mm.default, product.args)
        wide.meta.update(product.meta, val=readers[0].meta["val"])
        for reader in readers:
            reader.replace_all_uses_with(wide)
            module.graph.erase_node(reader)
        module.graph.erase_node(product)


def name_empty_statistics(module: GraphModule) -> None:
    """A batch norm that uses running statistics has empty outputs instead of the batch's statistics: replaces them by
    constants."""
    for node in list(module.graph.nodes):
        if node.target is operator.getitem and node.args[0].target in BATCH_NORMS and tuple(node.meta["val"].shape) == (0,):
            with module.graph.inserting_before(node):
                empty = module.graph.call_function(aten.full.default, ((0,), 0.0), {"dtype": node.meta["val"].dtype})
            empty.meta.update(node.meta)
            node.replace_all_uses_with(empty)
            module.graph.erase_node(node)


def split_dropout(module: GraphModule) -> None:
    """Splits dropout into the random draw, which has no inputs (draws.py), and the product, which lamina fuses with its
    neighbours.

    The random numbers and their order are those of the original op: its kernel also fills a boolean tensor with the input's
    strides."""
    for node in list(module.graph.nodes):
        if node.target is aten.native_dropout.default and node.args[2] is not False and node.args[0].meta["val"].numel() > 0:
            _split(module.graph, node)


def _split(graph: Graph, node: Node) -> None:
    source, probability, _ = node.args
    value, mask_value = node.meta["val"]
    if any(not isinstance(n, int) for n in (*mask_value.shape, *mask_value.stride())):
        return  # sizes are unknown now; this runs again when they are known
    kept = 1.0 - probability

    def add(target: Any, args: tuple, like: FakeTensor, **kwargs: Any) -> Node:
        made = graph.call_function(target, args, kwargs)
        made.meta["val"] = like
        return made

    with graph.inserting_before(node):
        size, stride = tuple(mask_value.shape), tuple(mask_value.stride())
        if is_dense(mask_value):
            mask = add(dropout_mask, (size, stride, kept), mask_value)
        else:  # bernoulli.p fills dense memory, which assigns other positions in strided tensors
            mask = add(aten.bernoulli_.float, (add(aten.empty_strided.default, (size, stride), mask_value, dtype=torch.bool), kept), mask_value)
        product = add(aten.mul.Tensor, (source, mask), value)
        output = add(aten.mul.Tensor, (product, 0.0 if kept == 0 else 1.0 / kept), value)
    for user in list(node.users):
        user.replace_all_uses_with(mask if user.args[1] else output)
        graph.erase_node(user)
    graph.erase_node(node)
