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
