"""ONNX Runtime's own operators (com.microsoft) against their definitions in NumPy, in 64 bits."""
import math

import pytest

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
import numpy as np  # noqa: E402
from onnx import helper, numpy_helper  # noqa: E402

import lamina  # noqa: E402

RNG = np.random.default_rng(7)


def some(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def run(kind, inputs, outputs=1, constants=(), **attributes):
    """Runs one node; `inputs` may be None, `constants` are the positions of inputs that are initializers."""
    names = ["" if value is None else f"x{i}" for i, value in enumerate(inputs)]
    results = [f"y{i}" if isinstance(outputs, int) and i < outputs or not isinstance(outputs, int) and i in outputs else ""
               for i in range(outputs if isinstance(outputs, int) else max(outputs) + 1)]
    node = helper.make_node(kind, names, results, domain="com.microsoft", **attributes)
    open_inputs = [(name, value) for i, (name, value) in enumerate(zip(names, inputs)) if name and i not in constants]
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for n, v in open_inputs],
                              [helper.make_empty_tensor_value_info(name) for name in results if name],
                              [numpy_helper.from_array(inputs[i], names[i]) for i in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)])
    return lamina.from_onnx(model)(*[value for _, value in open_inputs])


def close(made, wanted, bound=2e-5):
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made.astype(np.float64), wanted.astype(np.float64), rtol=bound, atol=bound)


def norm(x, gamma, beta, epsilon):
    x = x.astype(np.float64)
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + epsilon) * gamma + beta


def erf_gelu(x):
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_activations():
    x, bias = some(3, 5, 8), some(8)
    close(run("Gelu", [x])[0], erf_gelu(x))
    close(run("BiasGelu", [x, bias])[0], erf_gelu(x + bias))
    close(run("FastGelu", [x])[0], tanh_gelu(x))
    close(run("FastGelu", [x, bias])[0], tanh_gelu(x + bias))
    close(run("QuickGelu", [x], alpha=1.5)[0], x / (1 + np.exp(-1.5 * x)))


@pytest.mark.parametrize("of_a, of_b", [((2, 3, 4), (2, 4, 5)), ((2, 4, 3), (2, 5, 4))])
def test_a_product_with_a_factor(of_a, of_b):
    a, b, turned = some(*of_a), some(*of_b), int(of_a != (2, 3, 4))
    wanted = 0.125 * ((a.transpose(0, 2, 1) if turned else a) @ (b.transpose(0, 2, 1) if turned else b))
    close(run("FusedMatMul", [a, b], alpha=0.125, transA=turned, transB=turned)[0], wanted)


def test_a_product_whose_first_axis_moves():
    a, b = some(3, 2, 4), some(2, 4, 5)
    close(run("FusedMatMul", [a, b], transBatchA=1)[0], a.transpose(1, 0, 2) @ b)


@pytest.mark.parametrize("with_bias", [False, True])
def test_norms_of_sums(with_bias):
    x, skip, gamma, beta, bias = some(2, 3, 16), some(2, 3, 16), some(16), some(16), some(16) if with_bias else None
    total = x + skip + (0 if bias is None else bias)
    made, sums = run("SkipLayerNormalization", [x, skip, gamma, beta, bias], [0, 3], epsilon=1e-5)
    close(made, norm(total, gamma, beta, 1e-5))
    close(sums, total)
    made, sums = run("SkipSimplifiedLayerNormalization", [x, skip, gamma, bias], [0, 3], epsilon=1e-5)
    close(made, total / np.sqrt((total.astype(np.float64)**2).mean(-1, keepdims=True) + 1e-5) * gamma)
    close(sums, total)


def test_an_output_that_is_not_carried_is_named():
    with pytest.raises(lamina.Error, match="SkipLayerNormalization.*output 1 is used"):
        run("SkipLayerNormalization", [some(2, 4), some(2, 4), some(4), some(4)], [0, 1])


def test_embeddings():
    ids, kinds, mask = RNG.integers(0, 11, (2, 5)).astype(np.int32), RNG.integers(0, 2, (2, 5)).astype(np.int32), np.array([[1] * 5, [1, 1, 1, 0, 0]], np.int32)
    words, places, segments, gamma, beta = some(11, 8), some(9, 8), some(2, 8), some(8), some(8)
    made, counts, sums = run("EmbedLayerNormalization", [ids, kinds, words, places, segments, gamma, beta, mask], 3, epsilon=1e-6)
    total = words[ids] + places[:5] + segments[kinds]
    close(sums, total)
    close(made, norm(total, gamma, beta, 1e-6))
    np.testing.assert_array_equal(counts, [5, 3])


def attended(q, k, v, added=0.0, causal=False, scale=None):
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1])) + added
    if causal:
        scores = np.where(np.triu(np.ones(scores.shape[-2:], bool), scores.shape[-1] - scores.shape[-2] + 1), -np.inf, scores)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    made = (weights / weights.sum(-1, keepdims=True)) @ v
    return made.transpose(0, 2, 1, 3).reshape(made.shape[0], made.shape[2], -1)


def in_heads(x, heads):
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


@pytest.mark.parametrize("mask, added", [
    (None, 0.0), (np.array([4, 2], np.int32), [[0, 0, 0, 0], [0, 0, 1, 1]]), (np.array([[1, 1, 1, 0], [0, 1, 1, 1]], np.int32), [[0, 0, 0, 1], [1, 0, 0, 0]])])
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_with_its_product(mask, added, causal):
    x, weights, bias = some(2, 4, 6), some(6, 36), some(36)
    q, k, v = (in_heads(part, 3) for part in np.split(x @ weights + bias, 3, -1))
    added = -10000.0 * np.array(added).reshape(2, 1, 1, 4) if mask is not None else 0.0
    close(run("Attention", [x, weights, bias, mask], num_heads=3, unidirectional=causal)[0], attended(q, k, v, added, causal), 1e-4)


def test_attention_with_a_past():
    x, weights, past = some(1, 2, 6), some(6, 18), some(2, 1, 2, 3, 3)
    q, k, v = (in_heads(part, 2) for part in np.split(x @ weights, 3, -1))
    k, v = (np.concatenate([old, new], 2) for old, new in zip(past, (k, v)))
    made, present = run("Attention", [x, weights, None, None, past], 2, num_heads=2, unidirectional=1)
    close(made, attended(q, k, v, causal=True), 1e-4)
    close(present, np.stack([k, v]))


def test_attention_of_three_tensors():
    q, k, v, bias, added = some(2, 3, 8), some(2, 5, 8), some(2, 5, 12), some(28), some(1, 4, 3, 5)
    parts = [in_heads(x + b, 4) for x, b in zip((q, k, v), np.split(bias, [8, 16]))]
    made, _, values = run("MultiHeadAttention", [q, k, v, bias, None, added], 3, num_heads=4, scale=0.3)
    close(made, attended(*parts, added, scale=0.3), 1e-4)
    close(values, parts[2])


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("at_once", [False, True])
def test_rotary_embedding(interleaved, at_once):
    x, angles = some(2, 4, 3, 8), RNG.uniform(0, 6, (9, 3))
    ids = np.array([2]) if at_once else np.array([[0, 1, 2], [5, 3, 8]])
    cosine, sine = (t.astype(np.float32) for t in (np.cos(angles), np.sin(angles)))
    c, s = (table[ids[0] + np.arange(3)][None, None] if at_once else table[ids][:, None] for table in (cosine, sine))
    left, right = (x[..., 0:6:2], x[..., 1:6:2]) if interleaved else (x[..., :3], x[..., 3:6])
    turned = [left * c - right * s, left * s + right * c]
    wanted = np.concatenate([np.stack(turned, -1).reshape(2, 4, 3, 6) if interleaved else np.concatenate(turned, -1), x[..., 6:]], -1)
    close(run("RotaryEmbedding", [x, ids, cosine, sine], constants=[1] if at_once else [], interleaved=interleaved)[0], wanted)


# ---- attention over a cache that groups of heads share

def turned(x, angles, interleaved):
    """x: [heads, size]; the first elements of each head are rotated."""
    half = len(angles)
    left, right = (x[:, 0:2 * half:2], x[:, 1:2 * half:2]) if interleaved else (x[:, :half], x[:, half:2 * half])
    pair = [left * np.cos(angles) - right * np.sin(angles), left * np.sin(angles) + right * np.cos(angles)]
    made = np.stack(pair, -1).reshape(len(x), -1) if interleaved else np.concatenate(pair, -1)
    return np.concatenate([made, x[:, 2 * half:]], -1)


def attended_over_a_cache(q, k, v, past_k, past_v, before, angles=None, interleaved=False, window=-1, cap=0.0, scale=None, bias=None):
    """The definition, token by token: q [batch, heads, length, size]; returns y and the places of the cache that hold tokens."""
    batch, heads, length, size = q.shape
    shared, y, caches = k.shape[1], np.zeros((batch, length, heads * v.shape[-1])), []
    for b in range(batch):
        keys, values = [list(past_k[b, :, t].astype(np.float64) for t in range(before[b])), list(past_v[b, :, t].astype(np.float64) for t in range(before[b]))]
        for i in range(length):
            place = before[b] + i
            key, query = k[b, :, i].astype(np.float64), q[b, :, i].astype(np.float64)
            if angles is not None:
                key, query = turned(key, angles[place], interleaved), turned(query, angles[place], interleaved)
            keys.append(key)
            values.append(v[b, :, i].astype(np.float64))
            first = max(0, place + 1 - window) if window >= 0 else 0
            for h in range(heads):
                g = h // (heads // shared)
                scores = np.array([keys[t][g] @ query[h] for t in range(first, place + 1)]) * (scale or 1 / math.sqrt(size))
                scores = cap * np.tanh(scores / cap) if cap else scores
                scores = scores if bias is None else scores + bias[0, 0, i, first:place + 1]
                weights = np.exp(scores - scores.max())
                y[b, i, h * v.shape[-1]:(h + 1) * v.shape[-1]] = (weights / weights.sum()) @ np.stack([values[t][g] for t in range(first, place + 1)])
        caches.append((np.stack(keys, 1), np.stack(values, 1)))
    return y, caches


@pytest.mark.parametrize("case", [
    dict(before=[0, 0], length=5), dict(before=[0, 0], length=5, past=9), dict(before=[3, 3], length=1), dict(before=[4, 2], length=1, past=8),
    dict(before=[2, 4], length=3, past=8), dict(before=[3, 3], length=1, rotary=True), dict(before=[0, 0], length=4, rotary=True, interleaved=True),
    dict(before=[4, 2], length=2, past=8, rotary=True, packed=True), dict(before=[0, 0], length=6, window=3), dict(before=[5, 5], length=1, window=2, cap=1.5),
    dict(before=[2, 2], length=2, scale=0.3, biased=True)])
def test_group_query_attention(case):
    before, length, past, window = case["before"], case["length"], case.get("past"), case.get("window", -1)
    batch, heads, shared, size = 2, 4, 2, 8
    past = max(before) if past is None else past
    total = max(before) + length
    q, k, v = some(batch, heads, length, size), some(batch, shared, length, size), some(batch, shared, length, size)
    past_k, past_v = some(batch, shared, past, size), some(batch, shared, past, size)
    angles = RNG.uniform(0, 6, (12, 3)) if case.get("rotary") else None
    flat = [x.transpose(0, 2, 1, 3).reshape(batch, length, -1) for x in (q, k, v)]
    inputs = [np.concatenate(flat, -1), None, None] if case.get("packed") else flat
    bias = some(1, 1, length, total) if case.get("biased") else None
    inputs += [past_k if past else None, past_v if past else None, np.array(before, np.int32) + length - 1, np.array(total, np.int32)]
    inputs += [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)] if angles is not None else [None, None] if bias is not None else []
    inputs += [None, bias] if bias is not None else []
    made, keys, values = run("GroupQueryAttention", inputs, 3, constants=[6], num_heads=heads, kv_num_heads=shared, do_rotary=int(angles is not None),
                             rotary_interleaved=int(case.get("interleaved", False)), local_window_size=window, softcap=case.get("cap", 0.0), scale=case.get("scale", 0.0))
    wanted, caches = attended_over_a_cache(q, k, v, past_k, past_v, before, angles, case.get("interleaved", False), window, case.get("cap", 0.0),
                                           case.get("scale"), bias)
    close(made, wanted, 1e-4)
    for b, (of_k, of_v) in enumerate(caches):
        close(keys[b, :, :of_k.shape[1]], of_k, 1e-5)
        close(values[b, :, :of_v.shape[1]], of_v, 1e-5)
    assert keys.shape == (batch, shared, max(past, total), size)


def test_group_query_attention_names_what_is_not_carried():
    q, k, v = some(1, 2, 16), some(1, 2, 8), some(1, 2, 8)
    given = [q, k, v, None, None, np.array([1], np.int32), np.array(2, np.int32)]
    for wrong, text in ((dict(smooth_softmax=1), "smooth_softmax 1"), (dict(k_quant_type="PER_TENSOR"), "k_quant_type PER_TENSOR")):
        with pytest.raises(lamina.Error, match=f"GroupQueryAttention.*{text}"):
            run("GroupQueryAttention", given, 1, constants=[6], num_heads=2, kv_num_heads=1, **wrong)
    with pytest.raises(lamina.Error, match="GroupQueryAttention.*head_sink"):
        run("GroupQueryAttention", [*given, None, None, None, None, some(2)], 1, constants=[6], num_heads=2, kv_num_heads=1)


# ---- quantised operators: x = (q - zero) * scale

def eight_bits(kind, *shape):
    return RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)


def real(q, scale, zero):
    return (q.astype(np.float64) - (0 if zero is None else zero)) * scale


def nearly(made, exact, scale, zero, kind):
    """The nearest integers, up to one where the exact value is close to the middle of two."""
    assert made.dtype == kind
    steps = exact / scale + (0 if zero is None else zero)
    wanted = np.clip(np.rint(steps), np.iinfo(kind).min, np.iinfo(kind).max)
    off = np.abs(made.astype(np.float64) - wanted)
    assert off.max() <= 1 and np.all(np.abs(np.abs(steps - np.floor(steps)) - 0.5)[off == 1] < 1e-3)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
@pytest.mark.parametrize("with_zeros", [True, False])
@pytest.mark.parametrize("name, formula", [("QLinearAdd", np.add), ("QLinearMul", np.multiply)])
def test_quantised_arithmetic(name, formula, kind, with_zeros):
    a, b = eight_bits(kind, 3, 4, 5), eight_bits(kind, 5)
    scales = [np.array(v, np.float32) for v in (0.02, 0.03, 0.04)]
    zeros = [np.array(v, kind) if with_zeros else None for v in (3, 100, 17)]
    made, = run(name, [a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2]], constants=(1, 4, 6, *((2, 5, 7) if with_zeros else ())))
    nearly(made, formula(real(a, scales[0], zeros[0]), real(b, scales[1], zeros[1])), scales[2], zeros[2], kind)


@pytest.mark.parametrize("name, formula, attributes", [
    ("QLinearSigmoid", lambda x: 1 / (1 + np.exp(-x)), {}), ("QLinearLeakyRelu", lambda x: np.where(x < 0, 0.2 * x, x), {"alpha": 0.2}),
    ("QLinearSoftmax", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), {}),
    ("QLinearGlobalAveragePool", lambda x: x.mean((2, 3), keepdims=True), {}),
    ("QLinearGlobalAveragePool", lambda x: x.mean((1, 2), keepdims=True), {"channels_last": 1}),
    ("QLinearAveragePool", lambda x: (x[..., 0::2, 0::2] + x[..., 1::2, 0::2] + x[..., 0::2, 1::2] + x[..., 1::2, 1::2]) / 4,
     {"kernel_shape": [2, 2], "strides": [2, 2]})])
def test_quantised_functions(name, formula, attributes):
    x, scale, zero = eight_bits(np.uint8, 2, 4, 6, 8), np.array(0.05, np.float32), np.array(120, np.uint8)
    y_scale, y_zero = np.array(0.0078125, np.float32), np.array(2, np.uint8)
    made, = run(name, [x, scale, zero, y_scale, y_zero], constants=(1, 2, 3, 4), **attributes)
    nearly(made, formula(real(x, scale, zero)), y_scale, y_zero, np.uint8)


def test_a_quantised_concatenation():
    parts = [(eight_bits(np.uint8, 2, n), np.array(s, np.float32), np.array(z, np.uint8)) for n, s, z in ((3, 0.02, 5), (4, 0.05, 128))]
    scale, zero = np.array(0.04, np.float32), np.array(99, np.uint8)
    made, = run("QLinearConcat", [scale, zero, *parts[0], *parts[1]], constants=(0, 1, 3, 4, 6, 7), axis=1)
    nearly(made, np.concatenate([real(*part) for part in parts], 1), scale, zero, np.uint8)


@pytest.mark.parametrize("columns", [(), (7,)])
def test_a_product_of_integers_as_floats(columns):
    a, b, bias = eight_bits(np.uint8, 5, 40), eight_bits(np.int8, 40, 7), some(7)
    a_scale, b_scale = np.array(0.02, np.float32), RNG.uniform(0.01, 0.02, columns).astype(np.float32)
    a_zero, b_zero = np.array(77, np.uint8), eight_bits(np.int8, *columns)
    made, = run("MatMulIntegerToFloat", [a, b, a_scale, b_scale, a_zero, b_zero, bias], constants=(1, 3, 5, 6))
    close(made, real(a, a_scale, a_zero) @ real(b, b_scale, b_zero) + bias, 1e-4)


def test_integers_of_16_and_4_bits_are_quantised():
    x = some(4, 6)
    for kind in ("int16", "uint4"):
        zero = np.array(3).astype(helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, kind.upper())))
        scale = np.array(0.25, np.float32)
        q, = run("QuantizeLinear", [x, scale, zero], constants=(1, 2))
        assert q.dtype == zero.dtype
        y, = run("DequantizeLinear", [q, scale, zero], constants=(1, 2))
        close(y, (np.clip(np.rint(x / scale) + 3, *((0, 15) if kind == "uint4" else (-32768, 32767))) - 3) * scale)
