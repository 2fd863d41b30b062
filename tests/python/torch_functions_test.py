"""lamina.torch's functions and modules: values, gradients, and that they cost nothing in accuracy."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import torch.nn.functional as F  # noqa: E402

import lamina  # noqa: E402
import lamina.torch as lt  # noqa: E402


def tensors(*shapes, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("function, shapes", [
    (lambda x, w, b: lt.layer_norm(x, 6, w, b), [(3, 6), (6,), (6,)]),
    (lambda x: lt.layer_norm(x, 6), [(3, 6)]),
    (lambda x, b: lt.layer_norm(x, 6, None, b), [(3, 6), (6,)]),
    (lambda x, r, w, b: lt.add_layer_norm(x, r, 6, w, b), [(3, 6), (3, 6), (6,), (6,)]),
    (lambda x, w: lt.rms_norm(x, 6, w), [(3, 6), (6,)]),
    (lambda x: lt.rms_norm(x, 6), [(3, 6)]),
    (lambda x: lt.softmax(x), [(3, 6)]),
])
def test_gradients(function, shapes):
    assert torch.autograd.gradcheck(function, tensors(*shapes))


@pytest.mark.parametrize("ours, theirs, shapes", [
    (lt.attention, F.scaled_dot_product_attention, [(2, 3, 4), (2, 5, 4), (2, 5, 4)]),
    (lt.gated_mlp, lambda x, g, u, d: (F.silu(x @ g.T) * (x @ u.T)) @ d.T, [(2, 3, 4), (5, 4), (5, 4), (4, 5)]),
])
def test_gradients_of_what_has_products(ours, theirs, shapes):
    """In f32, beside float64: products of f64 are none of lamina's."""
    narrow, wide = tensors(*shapes, dtype=torch.float32), tensors(*shapes)
    for n, w in zip(narrow, wide):
        n.data.copy_(w.data)
    made, exact = ours(*narrow), theirs(*wide)
    torch.testing.assert_close(made.double(), exact, atol=1e-5, rtol=1e-5)
    for g, e in zip(torch.autograd.grad(made.square().sum(), narrow), torch.autograd.grad(exact.square().sum(), wide)):
        torch.testing.assert_close(g.double(), e, atol=1e-4, rtol=1e-4)


def test_parameters_and_bf16_need_no_copy():
    x = torch.randn(4, 32, dtype=torch.bfloat16)
    w, b = (torch.nn.Parameter(torch.randn(32, dtype=torch.bfloat16)) for _ in range(2))
    exact = F.layer_norm(x.double(), (32,), w.double(), b.double())
    with torch.no_grad():
        assert (lt.layer_norm(x, 32, w, b).double() - exact).abs().max() <= 2**-8 * exact.abs().max()


@pytest.mark.parametrize("ours, theirs", [(lt.nn.LayerNorm(16), torch.nn.LayerNorm(16)), (lt.nn.RMSNorm(16), torch.nn.RMSNorm(16)),
                                          (lt.nn.Softmax(-1), torch.nn.Softmax(-1))])
def test_modules_take_state_dicts_and_compute_the_same(ours, theirs):
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(4, 16)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-6, rtol=1e-5)


def test_double_backward_is_refused():
    x, = tensors((3, 6))
    first, = torch.autograd.grad(lt.layer_norm(x, 6).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(first.sum(), x)


def test_a_shape_that_does_not_fit_is_refused():
    with pytest.raises(lamina.Error, match=r"layer_norm: normalized_shape is \[5\], x has shape \[3, 6\]"):
        lt.layer_norm(torch.ones(3, 6), 5)


@pytest.mark.parametrize("weighted", [True, False])
def test_ops_of_our_own_are_what_torch_expects_of_ops(weighted):
    x, w = torch.randn(3, 6, requires_grad=True), torch.randn(6, requires_grad=True) if weighted else None
    assert set(torch.library.opcheck(torch.ops.lamina.rms_norm.default, (x, w, 1, 1e-6)).values()) == {"SUCCESS"}
    grad = torch.randn(3, 6)
    torch.library.opcheck(torch.ops.lamina.rms_norm_backward.default, (grad, x.detach(), None if w is None else w.detach(), 1, 1e-6))
    wide = [x.detach().double().requires_grad_()] + ([w.detach().double().requires_grad_()] if weighted else [])
    assert torch.autograd.gradcheck(lambda x, *w: torch.ops.lamina.rms_norm(x, w[0] if w else None, 1, 1e-6), wide)


def test_max_pooling_without_places_is_torchs():
    x, grad = torch.randn(1, 2, 7, 8, requires_grad=True), torch.randn(1, 2, 4, 4)
    made = torch.ops.lamina.max_pool2d_backward(grad, x.detach(), [3, 3], [2, 2], [1, 1], [1, 1])
    torch.testing.assert_close(made, torch.autograd.grad(F.max_pool2d(x, 3, 2, 1), x, grad)[0])
