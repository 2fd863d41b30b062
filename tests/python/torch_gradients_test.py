"""Gradients of pools of volumes and of attention whose heads share keys, constant parts, and pools of infinite elements, against eager."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

import torch.nn.functional as F  # noqa: E402

import lamina.torch  # noqa: E402,F401


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def answers(function, inputs):
    """Outputs and gradients of all floats."""
    leaves = [x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs]
    made = function(*leaves)
    made = [made] if isinstance(made, torch.Tensor) else list(made)
    wanted = [leaf for leaf in leaves if leaf.is_floating_point()]
    roots = [t for t in made if t.requires_grad]
    slopes = [torch.linspace(-1, 1, t.numel(), dtype=torch.float64).reshape(t.shape).to(t.dtype) for t in roots]
    return [t.detach() for t in made] + [g for g in (torch.autograd.grad(roots, wanted, slopes, allow_unused=True) if roots else ()) if g is not None]


def carried(function, *inputs, bound=2e-6):
    """lamina runs every node, and its values and gradients are about those of eager in f64."""
    reports = []
    made = answers(torch.compile(function, backend="lamina", options={"reports": reports}), inputs)
    assert reports and not [(node.op, node.reason) for report in reports for node in report.left() if node.floating]
    wanted = answers(function, [x.double() if x.is_floating_point() else x for x in inputs])
    assert len(made) == len(wanted)
    for one, other in zip(made, wanted):
        assert one.shape == other.shape
        torch.testing.assert_close(one, other.to(one.dtype), rtol=bound, atol=bound, equal_nan=True)


def test_max_pools_of_volumes():
    carried(lambda x: F.max_pool3d(x, 2), torch.randn(2, 3, 4, 6, 8))
    carried(lambda x: F.max_pool3d(x, 3, stride=2, padding=1), torch.randn(2, 3, 5, 6, 7))


def test_adaptive_pools_keep_the_order_of_channels():
    for layout in (torch.contiguous_format, torch.channels_last):
        x = torch.randn(2, 3, 7, 7).contiguous(memory_format=layout)
        for function in (lambda x: F.adaptive_max_pool2d(x, 4), lambda x: F.adaptive_avg_pool2d(x, 4)):
            made = torch.compile(function, backend="lamina")(x)
            assert made.stride() == function(x).stride()
            carried(function, x)


def test_attention_whose_heads_share_keys():
    carried(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), torch.randn(2, 4, 8, 16), torch.randn(2, 2, 8, 16),
            torch.randn(2, 2, 8, 16), bound=5e-6)
    carried(lambda q, k, v: F.scaled_dot_product_attention(q, k.expand(-1, 4, -1, -1), v.expand(-1, 4, -1, -1)), torch.randn(2, 4, 8, 16),
            torch.randn(2, 1, 8, 16), torch.randn(2, 1, 8, 16), bound=5e-6)


def test_parts_that_are_constants():
    carried(lambda x: torch.slice_scatter(x, torch.zeros(2, 4).to(x.dtype), 0, 1, 3) * 2, torch.randn(5, 4))
    carried(lambda x: torch.slice_scatter(torch.ones(5, 4).to(x.dtype), x, 0, 1, 3) * 2, torch.randn(2, 4))


def test_an_infinite_element_stays_in_its_windows():
    x = torch.zeros(1, 1, 5, 5)
    x[0, 0, 0, 0] = float("inf")
    pool = torch.compile(lambda x: F.adaptive_avg_pool2d(x, 3), backend="lamina")
    assert pool(x).isfinite().sum() == 8
    for sizes in ((3, 5), (7, 1), (10, 11), (2, 13)):
        carried(lambda x: F.adaptive_avg_pool2d(x, sizes), torch.randn(2, 3, 7, 11))


def steps_of(function, *inputs):
    """The kernels of forward and backward passes, as numbers."""
    torch._dynamo.reset()
    reports = []
    answers(torch.compile(function, backend="lamina", options={"reports": reports}), inputs)
    return [sum(len(kernels["kernels"]) for kernels in report.kernels) for report in reports]


HALVES = {
    "chunks": lambda x: x.chunk(2, -1)[::-1],
    "the second one negative": lambda x: (-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]),
    "the first one negative": lambda x: (x[..., x.shape[-1] // 2:], -x[..., :x.shape[-1] // 2]),
    "both negative": lambda x: (-x[..., x.shape[-1] // 2:], -x[..., :x.shape[-1] // 2]),
}


@pytest.mark.parametrize("name", HALVES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_halves_in_the_other_order_are_read_where_they_are_needed(name, dtype):
    function = lambda x, cos, sin: x * cos + torch.cat(HALVES[name](x), -1) * sin
    inputs = [torch.randn(shape).to(dtype) for shape in ((2, 3, 5, 32), (5, 32), (5, 32))]
    carried(function, *inputs, bound=5e-6 if dtype is torch.float32 else 4e-2)
    assert steps_of(lambda x: function(x, *inputs[1:]), inputs[0]) == [1, 1]


def test_other_halves_and_parts():
    x = torch.randn(3, 4, 32)
    carried(lambda x: torch.cat((x[..., 16:], x[..., :16]), 1), x)
    carried(lambda x: torch.cat((x[..., :16], x[..., 16:]), -1) * 2, x)
    carried(lambda x: torch.cat((x[..., 8:], x[..., :8]), -1) * 2, x)
    carried(lambda x: torch.cat((x[..., 16::2], x[..., :16:2]), -1) * 2, x)
    carried(lambda x, y: torch.cat((x[..., 16:], y[..., :16]), -1) * 2, x, torch.randn(3, 4, 32))
    carried(lambda x: torch.cat((x[:, 2:], -x[:, :2]), 1) * 2, x)
    carried(lambda x: torch.cat((x[2:4], -x[:2]), 0) * 2, torch.randn(4, 3))


NORMS = {
    "modulated": lambda x, w, b: F.layer_norm(x, x.shape[-1:]) * (1 + w) + b,
    "with weights": lambda x, w, b: F.silu(F.layer_norm(x, x.shape[-1:], w, b)),
    "with a weight": lambda x, w, b: F.silu(F.layer_norm(x, x.shape[-1:], w)) + b,
    "of groups": lambda x, w, b: F.silu(F.group_norm(x, 2, w[:x.shape[1]], b[:x.shape[1]])),
    "of groups, before a product": lambda x, w, b: torch.tanh(F.group_norm(x, 4)) @ (w[:, None] * b),
    "of transposed groups": lambda x, w, b: F.silu(F.group_norm(x.transpose(-1, -2), 2, w[:x.shape[1]], b[:x.shape[1]])),
}


@pytest.mark.parametrize("name", NORMS)
def test_the_backward_pass_computes_norms_again(name):
    carried(NORMS[name], torch.randn(3, 4, 6, 16), torch.randn(16), torch.randn(16), bound=2e-5)


def test_the_forward_pass_saves_no_norm_that_elementwise_ops_read():
    saved = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(tuple(t.shape)) or t, lambda t: t):
        x = torch.randn(8, 5, 64, requires_grad=True)
        torch.compile(lambda x: F.silu(F.layer_norm(x, (64,))), backend="lamina")(x).sum()
    assert saved.count((8, 5, 64)) == 1, saved


def test_sizes_of_a_norm_may_change():
    function = torch.compile(lambda x, w: F.silu(F.group_norm(F.layer_norm(x, x.shape[-1:]), 2, w)), backend="lamina", dynamic=True)
    for batch in (2, 3, 5):
        x, w = torch.randn(batch, 4, 16, requires_grad=True), torch.randn(4, requires_grad=True)
        ours = torch.autograd.grad(function(x, w).square().sum(), (x, w))
        eager = torch.autograd.grad(F.silu(F.group_norm(F.layer_norm(x, x.shape[-1:]), 2, w)).square().sum(), (x, w))
        torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-4)


def test_gradients_of_both_operands_of_a_sum_are_not_copied_by_torch():
    """Each has its own memory, which torch takes for the gradient of a leaf."""
    x, residual = torch.randn(8, 64, requires_grad=True), torch.randn(8, 64, requires_grad=True)
    normed = torch.compile(lambda a, b: torch.nn.functional.layer_norm(a + b, (64,)), backend="lamina")
    given = torch.randn(8, 64)
    expected = torch.autograd.grad(torch.nn.functional.layer_norm(x + residual, (64,)), [x], given)[0]
    result = normed(x, residual)
    with torch.profiler.profile() as profile:
        result.backward(given)
    assert "aten::copy_" not in {event.key for event in profile.key_averages()}
    assert x.grad.data_ptr() != residual.grad.data_ptr()
    assert torch.equal(x.grad, residual.grad)
    assert torch.allclose(x.grad, expected, rtol=1e-5, atol=1e-6)
