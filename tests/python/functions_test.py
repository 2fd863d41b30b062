"""Functions of arrays against float64."""
import math

import numpy as np
import pytest

import lamina

rng = np.random.default_rng(3)
x, r = (rng.standard_normal((5, 24)).astype(np.float32) for _ in range(2))
gamma, beta = (rng.standard_normal(24).astype(np.float32) for _ in range(2))


def exact_norm(v, g=None, b=None, epsilon=1e-5):
    v = v.astype(np.float64)
    y = (v - v.mean(-1, keepdims=True)) / np.sqrt(v.var(-1, keepdims=True) + epsilon)
    return y * (1 if g is None else g.astype(np.float64)) + (0 if b is None else b.astype(np.float64))


def exact_softmax(v):
    e = np.exp(v.astype(np.float64) - v.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("g, b", [(None, None), (gamma, None), (None, beta), (gamma, beta)])
def test_layer_norm(g, b):
    np.testing.assert_allclose(lamina.layer_norm(x, g, b), exact_norm(x, g, b), atol=2e-6)


def test_layer_norm_in_float64():
    np.testing.assert_allclose(lamina.layer_norm(x.astype(np.float64)), exact_norm(x), atol=1e-13)


def test_add_layer_norm():
    y, total = lamina.add_layer_norm(x, r, gamma, beta)
    assert (total == x + r).all()
    np.testing.assert_allclose(y, exact_norm(x + r, gamma, beta), atol=2e-6)


def test_rms_norm():
    v = x.astype(np.float64)
    np.testing.assert_allclose(lamina.rms_norm(x, gamma), v / np.sqrt((v * v).mean(-1, keepdims=True) + 1e-5) * gamma, atol=2e-6)


def test_group_norm():
    v = rng.standard_normal((2, 6, 4)).astype(np.float32)
    np.testing.assert_allclose(lamina.group_norm(v, 3), exact_norm(v.reshape(2, 3, 8)).reshape(v.shape), atol=2e-6)


def test_softmax_and_its_logarithm():
    np.testing.assert_allclose(lamina.softmax(x), exact_softmax(x), atol=1e-7)
    np.testing.assert_allclose(lamina.log_softmax(x, axis=0), np.log(exact_softmax(x.T)).T, atol=1e-6)


def test_activations():
    v = x.astype(np.float64)
    np.testing.assert_allclose(lamina.gelu(x), v * 0.5 * (1 + np.vectorize(math.erf)(v / math.sqrt(2))), atol=1e-6)
    np.testing.assert_allclose(lamina.silu(x), v / (1 + np.exp(-v)), atol=1e-6)
    with pytest.raises(lamina.Error, match='approximate is'):
        lamina.gelu(x, approximate="erf")


def test_attention_and_gated_mlp():
    q, k, v = (rng.standard_normal((2, 7, 8)).astype(np.float32) for _ in range(3))
    exact = exact_softmax(q.astype(np.float64) @ k.swapaxes(1, 2) / math.sqrt(8)) @ v
    np.testing.assert_allclose(lamina.attention(q, k, v), exact, atol=1e-6)
    gate, up, down = (rng.standard_normal(s).astype(np.float32) for s in ((12, 24), (12, 24), (24, 12)))
    a = x.astype(np.float64) @ gate.T
    np.testing.assert_allclose(lamina.gated_mlp(x, gate, up, down), (a / (1 + np.exp(-a)) * (x @ up.T)) @ down.T, rtol=1e-4, atol=1e-3)


def test_empty_arrays_are_fine():
    assert lamina.layer_norm(np.empty((0, 8), np.float32)).shape == (0, 8)
