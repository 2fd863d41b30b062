"""Rules for the operators of ONNX Runtime's domain com.microsoft, in which its optimiser writes transformers, except for
attention and products with weights of few bits."""

from __future__ import annotations

from typing import Any, Callable

import numpy

from lamina.onnx.node import Node, given, sum_of

DOMAIN = "com.microsoft"


# ---- activations and products

def gelu(mode: str) -> Callable:
    """GELU of the sum of the inputs: the second one is a bias."""
    def rule(node: Node) -> Any:
        x = node.tensor(0)
        node.floating(x)
        return node.op("GELU", [sum_of(node, x, given(node, 1))], mode=mode)

    return rule


def quick_gelu(node: Node) -> Any:
    x = node.tensor(0)
    node.floating(x)
    return node.op("Swish", [x], alpha=node.attribute("alpha", 1.702))


def product(node: Node) -> Any:
    """FusedMatMul. transBatchX moves the first axis of a factor before its last one."""
    factors = []
    for position, side in enumerate("AB"):
        x = node.tensor(position)
        node.floating(x)
        if node.attribute(f"transBatch{side}", 0):
            rank = node.rank(x)
            x = node.transpose(x, [*range(1, rank - 1), 0, rank - 1])
        factors.append(x)
    made = node.op("MatMul", factors, transpose_a=bool(node.attribute("transA", 0)), transpose_b=bool(node.attribute("transB", 0)))
    alpha = node.attribute("alpha", 1.0)
    return made if alpha == 1 else node.op("Multiply", [made, node.scalar(alpha, made)])


# ---- norms

def skip_layer_norm(node: Node) -> list:
    """LayerNorm(input + skip + bias); the sum is output 3."""
    node.only_output(0, 3)
    total = sum_of(node, node.tensor(0), node.tensor(1), given(node, 4))
    return [_layer_norm(node, total, node.tensor(2), given(node, 3)), None, None, total]


def _layer_norm(node: Node, x: Any, gamma: Any, beta: Any) -> Any:
    node.floating(x)
    epsilon = node.attribute("epsilon", 1e-12)
    beta = beta if beta is not None else node.array(numpy.zeros(node.shape(gamma)), gamma.dtype)
    return node.op("LayerNorm", [x, gamma, beta], begin_norm_axis=-1, epsilon=epsilon, keep_stats=False)


def skip_rms_norm(node: Node) -> list:
    node.only_output(0, 3)
    total = sum_of(node, node.tensor(0), node.tensor(1), given(node, 3))
    node.floating(total)
    made = node.op("RMSNorm", [total, node.tensor(2)], begin_norm_axis=-1, epsilon=node.attribute("epsilon", 1e-12))
    return [made, None, None, total]


def embedding_norm(node: Node) -> list:
    """LayerNorm of the sum of the embeddings of words, places and segments. mask_index is the number of ones in each row of the
    mask."""
    ids = node.tensor(0)
    batch, length = node.shape(ids)
    words = node.op("Gather", [node.tensor(2), ids], axis=0)
    if node.has(8):
        places = node.op("Gather", [node.tensor(3), node.tensor(8)], axis=0)
    else:
        places = node.op("Slice", [node.tensor(3)], starts=[0], ends=[length], axes=[0])
    segments = node.op("Gather", [node.tensor(4), node.tensor(1)], axis=0) if node.has(1) and node.has(4) else None
    total = sum_of(node, words, places, segments)
    counts = None
    if node.wants(1) and node.has(7):
        counts = node.cast(node.op("ReduceSum", [node.cast(node.tensor(7), "f32")], axes=[1], keep_dims=False), "s32")
    elif node.wants(1):
        counts = numpy.zeros(batch, "int32")
    return [_layer_norm(node, total, node.tensor(5), node.tensor(6)), counts, total]


RULES = {
    "BiasGelu": gelu("gelu_erf"), "Gelu": gelu("gelu_erf"), "FastGelu": gelu("gelu_tanh"), "QuickGelu": quick_gelu, "FusedMatMul": product,
    "SkipLayerNormalization": skip_layer_norm, "SkipSimplifiedLayerNormalization": skip_rms_norm, "EmbedLayerNormalization": embedding_norm,
}
