"""Functions of arrays, such as layer_norm(x, gamma, beta). Each is a small graph, which is compiled for each combination of
shapes and types and cached. Results are arrays of the first argument's library (numpy or torch)."""

from __future__ import annotations

from typing import Any, Callable, Optional

from lamina import _core
from lamina._arrays import Ready
from lamina.graph import Graph

__all__ = ["layer_norm", "add_layer_norm", "rms_norm", "group_norm", "softmax", "log_softmax", "gelu", "silu", "matmul", "attention",
           "gated_mlp"]

_compiled: dict = {}


def call(build: Callable, arrays: tuple, out: Any = None, **parameters: Any) -> Any:
    """Runs the graph that `build(graph, *tensors, **parameters)` describes; a tensor is None if its array is None. The graph
    is compiled once per combination of types, shapes, strides and parameters."""
    key = (build, _core.signature(arrays), *parameters.values())
    ready = _compiled.get(key)
    if ready is None:
        ready = _compiled[key] = _ready(build, arrays, parameters)
    return ready(arrays, out)


def _ready(build: Callable, arrays: tuple, parameters: dict) -> Ready:
    graph = Graph()
    described = [None if array is None else _core.describe(array) for array in arrays]
    tensors = [None if d is None else graph.input(d[1], d[0], strides=d[2]) for d in described]
    outputs = build(graph, *tensors, **parameters)
    compiled = graph.compile(outputs if isinstance(outputs, (tuple, list)) else [outputs])
    return compiled.compiled_for(arrays)


# ---- the graphs

def affine(g: Graph, kind: str, x: Any, gamma: Any, beta: Any, **attributes: Any) -> Any:
    """A norm whose op accepts gamma and beta only together."""
    if gamma is not None and beta is not None:
        return g.op(kind, [x, gamma, beta], **attributes)
    y = g.op(kind, [x], use_affine=False, **attributes)
    y = y if gamma is None else g.op("Multiply", [y, cast(g, gamma, x.dtype)])
    return y if beta is None else g.op("Add", [y, cast(g, beta, x.dtype)])


def cast(g: Graph, x: Any, dtype: str) -> Any:
    return x if x.dtype == dtype else g.op("TypeCast", [x], dtype=dtype)


def build_layer_norm(g: Graph, x: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> Any:
    return affine(g, "LayerNorm", x, gamma, beta, begin_norm_axis=axis, epsilon=epsilon, keep_stats=False)


def build_add_layer_norm(g: Graph, x: Any, residual: Any, gamma: Any, beta: Any, *, axis: int, epsilon: float) -> Any:
    total = g.op("Add", [x, residual])
    return build_layer_norm(g, total, gamma, beta, axis=axis, epsilon=epsilon), total


def build_rms_norm(g: Graph, x: Any, gamma: Any, *, axis: int, epsilon: float) -> Any:
    return g.op("RMSNorm", [x] if gamma is None else [x, gamma], begin_norm_axis=axis, epsilon=epsilon)


def build_group_norm(g: Graph, x: Any, gamma: Any, beta: Any, *, groups: int, epsilon: float) -> Any:
    if (gamma is None) != (beta is None):
        raise _core_error("group_norm: only one of gamma and beta is given, allowed is both or none")
    inputs = [x] if gamma is None else [x, gamma, beta]
    return g.op("GroupNorm", inputs, groups=groups, epsilon=epsilon, keep_stats=False, use_affine=gamma is not None, data_format="NCX")


def _core_error(message: str) -> Exception:
    from lamina._errors import Error

    return Error(message)


def build_softmax(g: Graph, x: Any, *, axis: int) -> Any:
    return g.op("SoftMax", [x], axis=axis, outputs=(True, False))[0]


def build_log_softmax(g: Graph, x: Any, *, axis: int) -> Any:
    return g.op("LogSoftmax", [x], axis=axis)


def build_gelu(g: Graph, x: Any, *, approximate: str) -> Any:
    return g.op("GELU", [x], mode="gelu_tanh" if approximate == "tanh" else "gelu_erf")


def build_silu(g: Graph, x: Any) -> Any:
    return g.op("Swish", [x])


def build_matmul(g: Graph, a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    return g.op("MatMul", [a, b], transpose_a=transpose_a, transpose_b=transpose_b)


def build_attention(g: Graph, q: Any, k: Any, v: Any, mask: Any, *, scale: float) -> Any:
    scores = g.op("Multiply", [g.op("MatMul", [q, k], transpose_b=True), g.constant(scale, q.dtype)])
    if mask is not None:
        scores = g.op("Add", [scores, mask])
    weights = g.op("SoftMax", [scores], axis=-1, mode="inf_as_zero", outputs=(True, False))[0]
    return g.op("MatMul", [weights, v])


def build_gated_mlp(g: Graph, x: Any, gate: Any, up: Any, down: Any) -> Any:
    hidden = g.op("Multiply", [g.op("Swish", [g.op("MatMul", [x, gate], transpose_b=True)]), g.op("MatMul", [x, up], transpose_b=True)])
    return g.op("MatMul", [hidden, down], transpose_b=True)


# ---- the functions

def layer_norm(x: Any, gamma: Any = None, beta: Any = None, *, axis: int = -1, epsilon: float = 1e-5, out: Any = None) -> Any:
    """gamma * (x - mean) / sqrt(variance + epsilon) + beta over the axes from `axis` to the last.

    x: f32, bf16, f16 or f64, any shape. gamma, beta: the shape of the normalised axes, or None. out: an array for the result.
    Returns an array with the shape and type of x. Raises lamina.Error for an axis outside -r..r-1 (r is the rank of x), an
    epsilon that is not positive, and shapes or types that do not match. Source: Ba et al., Layer Normalization, 2016."""
    return call(build_layer_norm, (x, gamma, beta), out, axis=axis, epsilon=epsilon)


def add_layer_norm(x: Any, residual: Any, gamma: Any = None, beta: Any = None, *, axis: int = -1, epsilon: float = 1e-5) -> Any:
    """Returns (layer_norm(x + residual, gamma, beta), x + residual), computed in one pass over memory.

    residual: the shape and type of x. The other arguments and errors are those of layer_norm."""
    return call(build_add_layer_norm, (x, residual, gamma, beta), axis=axis, epsilon=epsilon)


def rms_norm(x: Any, gamma: Any = None, *, axis: int = -1, epsilon: float = 1e-5, out: Any = None) -> Any:
    """gamma * x / sqrt(mean(x * x) + epsilon) over the axes from `axis` to the last.

    x: f32, bf16, f16 or f64, any shape. gamma: the shape of these axes, or None. Returns an array with the shape and type of
    x. Errors as for layer_norm. Source: Zhang and Sennrich, Root Mean Square Layer Normalization, 2019."""
    return call(build_rms_norm, (x, gamma), out, axis=axis, epsilon=epsilon)


def group_norm(x: Any, groups: int, gamma: Any = None, beta: Any = None, *, epsilon: float = 1e-5, out: Any = None) -> Any:
    """Normalises over each group of C / groups channels and all spatial positions.

    x: [N, C, ...], C a multiple of `groups`. gamma, beta: [C], or None. Returns an array with the shape and type of x. Raises
    lamina.Error for shapes or types that do not match. Source: Wu and He, Group Normalization, 2018."""
    return call(build_group_norm, (x, gamma, beta), out, groups=groups, epsilon=epsilon)


def softmax(x: Any, *, axis: int = -1, out: Any = None) -> Any:
    """exp(x) / sum(exp(x)) along `axis`.

    x: f32, bf16, f16 or f64, any shape. Returns an array with the shape and type of x. Raises lamina.Error for an axis
    outside -r..r-1 (r is the rank of x), or another type."""
    return call(build_softmax, (x,), out, axis=axis)


def log_softmax(x: Any, *, axis: int = -1, out: Any = None) -> Any:
    """log(softmax(x)) along `axis`. Arguments, result and errors are those of softmax."""
    return call(build_log_softmax, (x,), out, axis=axis)


def gelu(x: Any, *, approximate: str = "none", out: Any = None) -> Any:
    """x * Phi(x), Phi being the normal distribution function: exact ("none") or the tanh approximation ("tanh").

    Returns an array with the shape and type of x. Raises lamina.Error for another `approximate`. Source: Hendrycks and
    Gimpel, Gaussian Error Linear Units, 2016."""
    if approximate not in ("none", "tanh"):
        raise _core_error(f'gelu: approximate is {approximate!r}, allowed is "none" or "tanh"')
    return call(build_gelu, (x,), out, approximate=approximate)


def silu(x: Any, *, out: Any = None) -> Any:
    """x * sigmoid(x).

    x: f32, bf16, f16 or f64, any shape. Returns an array with the shape and type of x. Raises lamina.Error for another type.
    """
    return call(build_silu, (x,), out)


def matmul(a: Any, b: Any, *, transpose_a: bool = False, transpose_b: bool = False, out: Any = None) -> Any:
    """The matrix product of a, [..., M, K], and b, [..., K, N]: [..., M, N]. Leading axes broadcast.

    transpose_a, transpose_b: swap the last two axes of a factor first. Raises lamina.Error for shapes or types that do not
    match."""
    return call(build_matmul, (a, b), out, transpose_a=transpose_a, transpose_b=transpose_b)


def attention(q: Any, k: Any, v: Any, mask: Any = None, *, scale: Optional[float] = None, out: Any = None) -> Any:
    """softmax(scale * q k' + mask) v: [..., Q, V].

    q: [..., Q, D]; k: [..., K, D]; v: [..., K, V]; mask: of q's type, broadcasts to [..., Q, K]. scale: default 1 / sqrt(D).
    A row whose mask is all -inf results in zeros. Raises lamina.Error for shapes or types that do not match. Source: Vaswani
    et al., Attention Is All You Need, 2017."""
    depth = _core.describe(q)[1][-1]
    return call(build_attention, (q, k, v, mask), out, scale=depth**-0.5 if scale is None else scale)


def gated_mlp(x: Any, gate: Any, up: Any, down: Any, *, out: Any = None) -> Any:
    """(silu(x gate') * (x up')) down': [..., D].

    x: [..., D]; gate, up: [H, D]; down: [D, H], the layout of torch.nn.Linear's weights. Raises lamina.Error for shapes or
    types that do not match. Source: Shazeer, GLU Variants Improve Transformer, 2020."""
    return call(build_gated_mlp, (x, gate, up, down), out)
