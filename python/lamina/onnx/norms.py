"""Rules for normalisations."""

from __future__ import annotations

from typing import Any

from lamina.onnx.node import Node, Unfit


def layer_norm(node: Node) -> Any:
    x, scale = node.tensor(0), node.tensor(1)
    node.floating(x, scale)
    shape, epsilon = node.shape(x), node.attribute("epsilon", 1e-5)
    axis = node.axis(x, default=-1)
    if scale.dtype != x.dtype or list(scale.shape) != shape[axis:]:
        raise Unfit(f"a scale of {scale.dtype}{list(scale.shape)}")
    stats = node.wants(1) or node.wants(2)
    inputs = [x, scale, node.tensor(2)] if node.has(2) else [x]
    made = node.op("LayerNorm", inputs, begin_norm_axis=axis, epsilon=epsilon, keep_stats=stats, use_affine=node.has(2))
    dst, *rest = made if isinstance(made, tuple) else (made,)
    dst = dst if node.has(2) else node.op("Multiply", [dst, scale])
    if not stats:
        return dst
    mean, variance = rest
    if mean.dtype != "f32":
        raise Unfit(f"statistics of {mean.dtype}")
    rstd = node.op("Pow", [node.op("Add", [variance, node.scalar(epsilon, variance)])], beta=-0.5)
    column = shape[:axis] + [1] * (len(shape) - axis)
    return [dst, *(node.reshape(t, column) for t in (mean, rstd))]


def rms_norm(node: Node) -> Any:
    x, scale = node.tensor(0), node.tensor(1)
    axis = node.attribute("axis", -1)
    if scale.shape != tuple(node.shape(x)[axis:]):
        raise Unfit(f"a scale of {list(scale.shape)}")
    return node.op("RMSNorm", [x, scale], begin_norm_axis=axis, epsilon=node.attribute("epsilon", 1e-5))


def group_norm(node: Node) -> Any:
    x, scale, bias = (node.tensor(i) for i in range(3))
    channels, groups = node.shape(x)[1], node.attribute("num_groups", 1)
    if scale.shape != (channels,):
        raise Unfit(f"a scale of {list(scale.shape)}")
    return node.op("GroupNorm", [x, scale, bias], groups=groups, epsilon=node.attribute("epsilon", 1e-5), keep_stats=False, data_format="NCX")


def instance_norm(node: Node) -> Any:
    x, scale, bias = (node.tensor(i) for i in range(3))
    return node.op("GroupNorm", [x, scale, bias], groups=node.shape(x)[1], epsilon=node.attribute("epsilon", 1e-5), keep_stats=False,
                   data_format="NCX")


def batch_norm(node: Node) -> Any:
    x, scale, bias, mean, variance = (node.tensor(i) for i in range(5))
    epsilon = node.attribute("epsilon", 1e-5)
    if not node.attribute("training_mode", 0):
        return node.op("BatchNormInference", [x, scale, bias, mean, variance], epsilon=epsilon, data_format="NCX")
    # Uses the batch's own statistics, and updates the running statistics with them.
    axes = [i for i in range(node.rank(x)) if i != 1]
    of_batch = node.op("ReduceMean", [x], axes=axes)
    row = [1, -1] + [1] * (node.rank(x) - 2)
    spread = node.op("ReduceMean", [node.op("Square", [node.op("Subtract", [x, node.op("StaticReshape", [of_batch], shape=row, special_zero=False)])])],
                     axes=axes)
    made = node.op("BatchNormInference", [x, scale, bias, of_batch, spread], epsilon=epsilon, data_format="NCX")
    old = node.attribute("momentum", 0.9)
    running = [node.op("Add", [node.op("Multiply", [before, node.scalar(old, before)]), node.op("Multiply", [now, node.scalar(1 - old, now)])])
               for before, now in ((mean, of_batch), (variance, spread))]
    return [made, *running]


def simplified_layer_norm(node: Node) -> Any:
    """ONNX Runtime's older name for RMSNormalization."""
    node.only_output(0)
    return rms_norm(node)


RULES = {"SimplifiedLayerNormalization": simplified_layer_norm, "LayerNormalization": layer_norm, "RMSNormalization": rms_norm, "GroupNormalization": group_norm, "InstanceNormalization": instance_norm,
         "BatchNormalization": batch_norm}
