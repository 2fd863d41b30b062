"""Functions that are a few elementwise ops, reversed axes and adapted windows, against eager."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

import lamina  # noqa: E402,F401
from torch_order_test import INF, NAN, carried, fresh  # noqa: E402,F401

FLOATS = [torch.float32, torch.bfloat16, torch.float16, torch.float64]
CLOSE = {torch.float32: 1e-6, torch.bfloat16: 2**-7, torch.float16: 2**-10, torch.float64: 1e-14}
SPECIAL = [0.0, -0.0, 0.5, -0.5, 1.5, 2.0, -2.0, 3.25, -7.75, 1e4, INF, -INF, NAN]


def with_gradient(function, *inputs, bound=0.0):
    """Forward and gradients, every node by lamina, beside eager's."""
    def answers(called):
        leaves = [t.detach().clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
        made = called(*leaves)
        slope = (torch.arange(made.numel()) % 7 - 2).reshape(made.shape).to(made.dtype) / 4
        return [made, *torch.autograd.grad(made, [t for t in leaves if t.is_floating_point()], slope)]

    reports = []
    made = answers(torch.compile(function, backend="lamina", options={"reports": reports}))
    left = [(node.op, node.reason) for report in reports for node in report.left()]
    assert not left and len(reports) == 2, left
    for one, other in zip(made, answers(function)):
        torch.testing.assert_close(one, other, rtol=bound, atol=bound, equal_nan=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_rounding(name, dtype):
    carried(lambda x: getattr(torch, name)(x), torch.tensor(SPECIAL, dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_division_with_a_rounding_mode(mode, dtype):
    x, y = torch.tensor(SPECIAL, dtype=dtype)[:, None], torch.tensor([1.0, -1.0, 3.0, -0.1, 0.0, -0.0, INF, NAN], dtype=dtype)
    carried(lambda x, y: torch.div(x, y, rounding_mode=mode), x, y)
    carried(lambda x: torch.div(x, 0.1, rounding_mode=mode), torch.arange(-50, 50).to(dtype) / 8)
    carried(lambda x: x // 3 + (x / 8) // x[:1], torch.arange(1, 50).to(dtype))


def test_division_rounds_down_where_the_quotient_rounds_up():
    carried(lambda x, y: torch.div(x, y, rounding_mode="floor"), torch.tensor([1.0, 6.0, 0.6], dtype=torch.float64), torch.tensor([0.1, 0.1, 0.2], dtype=torch.float64))


@pytest.mark.parametrize("dtype", FLOATS)
def test_erf(dtype):
    x = torch.cat([torch.linspace(-6, 6, 481), torch.tensor([1e-30, -1e-20, INF, -INF, NAN])]).to(dtype)
    carried(lambda x: torch.erf(x), x, bound=CLOSE[dtype])
    with_gradient(torch.erf, x[:481], bound=8 * CLOSE[dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_flip(dtype):
    x = torch.arange(24).reshape(2, 3, 4).to(dtype)
    for dims in ([0], [-1], [0, 2], [0, 1, 2], []):
        carried(lambda x: torch.flip(x, dims), x)
    if dtype.is_floating_point:
        with_gradient(lambda x: torch.flip(x, [0, 2]) * x, x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_remainders_and_running_products(dtype):
    x, y = torch.randn(4, 5).to(dtype), (torch.rand(4, 5) + 0.5).to(dtype)
    with_gradient(torch.fmod, x, y, bound=CLOSE[dtype])
    with_gradient(torch.remainder, x, y, bound=CLOSE[dtype])
    if dtype in (torch.float32, torch.float64):
        with_gradient(lambda y: torch.cumprod(y, 1), y, bound=16 * CLOSE[dtype])


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.uint8, torch.bool])
def test_extremes_and_their_places(dtype):
    x = torch.randint(-3, 4, (5, 30)).to(dtype)
    if dtype.is_floating_point:
        x[1, 3] = x[1, 7] = NAN
    for name in ("max", "min"):
        carried(lambda x: tuple(getattr(torch, name)(x, 1)) + tuple(getattr(torch, name)(x, 0, keepdim=True)), x)
        if dtype is not torch.bool:
            carried(lambda x: [getattr(torch, "arg" + name)(x, 1), getattr(torch, "arg" + name)(x, 0, True), getattr(torch, "arg" + name)(x)], x)
    if dtype.is_floating_point:
        with_gradient(lambda x: torch.max(x, 0)[0] * torch.min(x, 0)[0], torch.tensor(1.5, dtype=dtype))
        with_gradient(lambda x: torch.max(x, 1)[0] * torch.min(x, 1)[0], torch.randn(4, 6).to(dtype), bound=CLOSE[dtype])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_integers(dtype):
    x, y = (torch.randint(0, 100, (4, 5)).to(dtype) for _ in range(2))
    carried(lambda x, y: torch.where(x > y, x, y).clamp(3, 60), x, y)
    carried(lambda x, y: torch.relu((x + y) * 3 - 200) + (5 - x) * y - torch.add(x, y, alpha=2), x, y)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_quotients_of_integers(dtype):
    x = torch.cat([torch.arange(-9, 10), torch.tensor([2**31 - 1, -2**31] if dtype is torch.int32 else [2**63 - 1, -2**63])]).to(dtype)
    for by in (3, -3, 1, 7):
        carried(lambda x: [x // by, x % by, torch.fmod(x, by), torch.div(x, by, rounding_mode="trunc"), torch.div(x, by, rounding_mode="floor")], x)


def test_index_add_to_a_scalar():
    carried(lambda x, s: torch.index_add(x, 0, torch.tensor(0), s, alpha=2), torch.tensor(3.0), torch.tensor(1.5))
    carried(lambda x, s: torch.index_add(x, 0, torch.tensor([0, 2, 0]), s, alpha=-0.5), torch.randn(4, 3), torch.randn(3, 3), bound=1e-6)


def test_ops_along_an_axis_take_scalars():
    x, y, first = torch.tensor(3.0), torch.tensor(1.5), torch.tensor([0])
    for entries in (y, y.reshape(1)):
        carried(lambda x, s: torch.index_copy(x, 0, first, s) * 2, x, entries)
    carried(lambda x, s: torch.scatter(x, 0, torch.tensor(0), s) * 2, x, y)
    carried(lambda x, s: torch.scatter_add(x, 0, first, s.reshape(1)) * 2, x, y)
    carried(lambda x: torch.index_fill(x, 0, first, 4.0) * 2, x)
    carried(lambda x: torch.index_select(x, 0, first) + torch.gather(x, 0, torch.tensor(0)), x)


def test_scatter_add_and_the_gradient_of_gather():
    x, index = torch.randn(3, 5), torch.tensor([[0, 4, 4], [1, 1, 1], [2, 0, 2]])
    with_gradient(lambda x, s: x.scatter_add(1, index, s), x, torch.randn(3, 3), bound=1e-6)
    carried(lambda x, s: x.scatter_add(1, index, s), x, torch.randn(3, 4), bound=1e-6)
    with_gradient(lambda x, s: x.scatter_add(0, index.t()[:, :2] % 3, s[:, :2]), x[:, :2], torch.randn(3, 2), bound=1e-6)
    with_gradient(lambda x: x.gather(1, index) * 2, x, bound=1e-6)
    with_gradient(lambda x: torch.take_along_dim(x, index, 1), x, bound=1e-6)
    step = torch.compile(lambda x, i, s: x.scatter_add(1, i, s), backend="lamina")
    for bad in (5, -1):
        with pytest.raises(IndexError):
            step(x, torch.full((3, 1), bad), torch.randn(3, 1))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_weight_norm(dim):
    with_gradient(lambda v, g: torch._weight_norm(v, g, dim), torch.randn(3, 4, 5), torch.rand([n if d == dim else 1 for d, n in enumerate((3, 4, 5))]), bound=1e-5)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int32, torch.int64])
def test_sums_of_integers(dtype):
    x = torch.randint(0, 2 if dtype is torch.bool else 200, (3, 4, 5)).to(dtype)
    carried(lambda x: [x.sum(), x.sum(1), x.sum((0, 2)), x.sum(-1, keepdim=True)], x)
    carried(lambda x: x.sum(), x.flatten()[3])
    if dtype is torch.int64:
        carried(lambda x: [(x + 2**60).sum(0), (x + 2**60).sum((0, 2))], x)


def test_what_is_not_finite():
    x = torch.tensor(SPECIAL)
    carried(lambda x: [x.isnan(), x.isinf(), x.isfinite(), torch.nan_to_num(x)], x)
    with_gradient(lambda x: x.max() * x, torch.randn(4, 5), bound=1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_of_torch(norm_first):
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=norm_first).eval()
    with torch.no_grad():
        x, causal = torch.randn(2, 5, 16), torch.nn.Transformer.generate_square_subsequent_mask(5)
        carried(lambda x: layer(x), x, bound=1e-5)
        carried(lambda x, m: layer(x, src_mask=m), x, causal, bound=1e-5)
        carried(lambda x, m: layer(x, src_key_padding_mask=m), x, torch.arange(5).repeat(2, 1) > 3, bound=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_embeddings(mode):
    words, offsets = torch.tensor([1, 4, 4, 9, 0, 2]), torch.tensor([0, 2, 2, 5])
    with_gradient(lambda w: torch.nn.functional.embedding_bag(words, w, offsets, mode=mode), torch.randn(10, 4), bound=1e-6)
    with_gradient(lambda w: torch.nn.functional.embedding_bag(words.reshape(2, 3), w, mode=mode), torch.randn(10, 4), bound=1e-6)
    table = torch.randn(10, 4)
    carried(lambda i, o: torch.nn.functional.embedding_bag(i, table, o, mode=mode), words, offsets, bound=1e-6)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize("padding", ["zeros", "border"])
def test_grid_sample(padding, corners):
    with_gradient(lambda x, g: torch.nn.functional.grid_sample(x, g, padding_mode=padding, align_corners=corners), torch.randn(2, 3, 5, 6), torch.rand(2, 4, 7, 2) * 2.6 - 1.3, bound=2e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["log2", "log10", "sinh", "cosh", "tan", "atan", "asin", "acos", "atanh"])
def test_functions(name, dtype):
    x = torch.cat([torch.linspace(-0.99, 0.99, 67), torch.tensor([1e-30, -1e-9])]).to(dtype)
    with_gradient(getattr(torch, name), x.abs() + 0.01 if name.startswith("log") else x, bound=8 * CLOSE[dtype])
    carried(lambda x: getattr(torch, name)(x), torch.tensor(SPECIAL, dtype=dtype), bound=8 * CLOSE[dtype])


def test_each_call_of_dropout_has_its_own_mask():
    """A backward pass after a second forward pass uses the mask of the first."""
    step = torch.compile(lambda x: torch.nn.functional.dropout(x, 0.5, training=True), backend="lamina")
    inputs = [torch.ones(64, requires_grad=True) for _ in range(2)]
    made = [step(x) for x in inputs]
    for x, y in zip(inputs, made):
        y.sum().backward()
        assert torch.equal(x.grad, y.detach())
    assert not torch.equal(*made)


@pytest.mark.parametrize("sizes", [(3, 4), (1, 1), (7, 9), (5, 2)])
def test_pools_of_adapted_sizes(sizes):
    with_gradient(lambda x: torch.nn.functional.adaptive_avg_pool2d(x, sizes), torch.randn(2, 3, 7, 9), bound=1e-6)
    with_gradient(lambda x: torch.nn.functional.adaptive_max_pool2d(x, sizes), torch.randn(2, 3, 7, 9), bound=1e-6)


def test_windows_as_columns():
    with_gradient(lambda x: torch.nn.functional.unfold(x, 3, stride=2, padding=1), torch.randn(2, 3, 7, 8), bound=1e-6)
    with_gradient(lambda x: torch.nn.functional.fold(x, (7, 8), 3, stride=2, padding=1), torch.randn(2, 27, 16), bound=1e-6)


@pytest.mark.parametrize("mode", ["constant", "reflect", "replicate", "circular"])
def test_padding(mode):
    with_gradient(lambda x: torch.nn.functional.pad(x, (2, 1, 1, 2), mode=mode), torch.randn(2, 3, 4, 5), bound=1e-6)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_with_weights_of_classes(reduction):
    target, weight = torch.tensor([0, 4, 2, -100, 2, 1]), torch.linspace(0.5, 2, 5)
    with_gradient(lambda x: torch.nn.functional.cross_entropy(x, target, weight, reduction=reduction), torch.randn(6, 5), bound=1e-6)
    step = torch.compile(lambda x, t: torch.nn.functional.cross_entropy(x, t, weight), backend="lamina")
    with pytest.raises(IndexError):
        step(torch.randn(6, 5), target + 2)


def test_selu():
    with_gradient(torch.nn.functional.selu, torch.randn(40), bound=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_gamma(dtype):
    x = torch.cat([torch.linspace(0.01, 40, 101), torch.linspace(-5.48, -0.03, 50), torch.tensor([1e4, 1.0, 2.0, 0.5])]).to(dtype)
    for function in (torch.lgamma, torch.digamma):
        with_gradient(function, x, bound=5e-5 if dtype is torch.float32 else 4 * CLOSE[dtype])
    carried(lambda x: [torch.lgamma(x), torch.digamma(x)], torch.tensor([0.0, -0.0, -1.0, -3.0, INF]).to(dtype))
    carried(torch.lgamma, torch.tensor([-INF, NAN]).to(dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_running_logarithms_of_sums(dtype):
    x = torch.randn(3, 7, 4).to(dtype) * 5
    for dim in (0, 1, -1):
        with_gradient(lambda x: torch.logcumsumexp(x, dim), x, bound=64 * CLOSE[dtype])
    carried(lambda x: torch.logcumsumexp(x, 0), torch.tensor([-INF, -INF, 1.0, INF, 2.0, NAN, 1.0]).to(dtype), bound=CLOSE[dtype])


def test_windows_along_an_axis():
    """Of an input a view, of what lamina computes a look-up; read by lamina and by torch."""
    for dim, size, step in ((1, 3, 2), (-1, 4, 1), (0, 2, 1), (1, 2, 3)):
        with_gradient(lambda x: x.unfold(dim, size, step) * 2, torch.randn(2, 9, 5), bound=1e-6)
        with_gradient(lambda x: (x * x).unfold(dim, size, step) + 1, torch.randn(2, 9, 5), bound=1e-6)
        carried(lambda x: (x * x).unfold(dim, size, step), torch.randn(2, 9, 5))


def test_elements_overwritten_along_several_axes():
    rows, columns = torch.tensor([[0], [1]]), torch.tensor([[3, 0], [2, 4]])

    def f(x, v):
        made = x * 1
        made[rows, columns] = v * 2
        return made

    with_gradient(f, torch.randn(2, 5, 3), torch.randn(2, 2, 3))
    with_gradient(f, torch.randn(2, 5), torch.randn(2))
    with pytest.raises(IndexError):
        torch.compile(lambda x, i: torch.index_put(x * 1, (i, i), x[0]), backend="lamina")(torch.randn(4, 4), torch.tensor([0, 1, 4, 2]))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_extremes_of_integers(dtype):
    x, y = (torch.randint(0, 100, (4, 5)).to(dtype) for _ in range(2))
    carried(lambda x, y: [x.max(), x.min(), torch.maximum(x, y), torch.minimum(x, y), torch.logical_and(x, y - y), torch.logical_not(x)], x, y)


def rotated(x, turns):
    pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns[None, :, None, :]).flatten(-2)


def test_rotary_embeddings_in_complex_numbers():
    turns = torch.polar(torch.ones(5, 4), torch.rand(5, 4) * 6)
    with_gradient(lambda x: rotated(x * 2, turns), torch.randn(2, 5, 3, 8), bound=1e-6)
    carried(lambda x, angle: rotated(x, torch.polar(torch.ones_like(angle), angle)), torch.randn(2, 5, 3, 8), torch.rand(5, 4), bound=1e-6)
    carried(lambda x: rotated(x, turns), torch.randn(2, 5, 3, 8), bound=1e-6)


def test_gradients_of_complex_numbers():
    """Of a size, whose zero is a constant of the graph; of an expanded tensor, which eager copies and torch announces expanded; of a
    norm, whose gradient is not that of real numbers; of views of transposed numbers."""
    def gradients(function, *inputs):
        leaves = [tensor.detach().requires_grad_() for tensor in inputs]
        function(*leaves).abs().sum().backward()
        return [leaf.grad for leaf in leaves]

    convolved = lambda x, w, b: torch.nn.functional.conv1d(x, w, b, 3, 1, 2, 2)
    numbers = lambda *shape: torch.randn(shape, dtype=torch.complex128)
    normed = lambda x, w: torch.nn.functional.rms_norm(x, (2, 3), w, 0.5)
    written = lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 0.5) * w[0]
    flat = lambda x: (x.t().reshape(-1) * 2).real
    for function, inputs in [(torch.abs, [numbers(20, 20)]), (convolved, [numbers(4, 1).expand(4, 8), numbers(2, 2, 3), numbers(2)]),
                             (normed, [numbers(2, 3), numbers(2, 3)]), (written, [numbers(2, 3), numbers(2, 3)]), (flat, [numbers(5, 4)])]:
        torch.testing.assert_close(gradients(torch.compile(function, backend="lamina"), *inputs), gradients(function, *inputs))


def test_op_of_rms_norm_over_all_axes():
    """torch's implementation, which runs where lamina leaves the op to torch."""
    x, w = (torch.randn(2, 3).requires_grad_() for _ in range(2))
    gradients = [torch.autograd.grad(made.square().sum(), (x, w))
                 for made in (torch.ops.lamina.rms_norm(x, w, 2, 0.5), torch.nn.functional.rms_norm(x, (2, 3), w, 0.5))]
    torch.testing.assert_close(*gradients)


def test_arithmetic_of_complex_numbers():
    def f(x, y):
        a, b = torch.view_as_complex(x), torch.complex(y, y * 2)
        made = (a * b.conj() + a - 2 * b * y).transpose(0, 1)
        return torch.cat([made.real, made.imag, made.abs(), torch.view_as_real(-made).sum(-1)])

    with_gradient(f, torch.randn(3, 4, 2), torch.randn(3, 4), bound=2e-6)
    carried(lambda x: torch.view_as_complex(x).abs(), torch.tensor([[3.0, 4.0], [0.0, 0.0], [1e30, 1e30], [INF, 1.0], [NAN, 0.0], [0.0, -2.0]]), bound=1e-6)
