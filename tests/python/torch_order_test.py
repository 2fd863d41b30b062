"""Sorting, running sums, reads and writes by index, and mixtures of experts, against eager."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

import lamina  # noqa: E402,F401
import lamina.torch as lt  # noqa: E402

NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def carried(function, *inputs, bound=0.0, wide=False):
    """Runs the function, every node of it by lamina, and compares with eager: floats within `bound`, integers exactly."""
    wanted = function(*(x.clone() if isinstance(x, torch.Tensor) else x for x in inputs))
    report = lt.explain(function, *inputs)
    left = [(node.op, node.reason) for graph in report.graphs for node in graph.left()]
    assert not left and report.graphs, left
    made = torch.compile(function, backend="lamina")(*inputs)
    for one, other in zip(made if isinstance(made, (tuple, list)) else [made], wanted if isinstance(wanted, (tuple, list)) else [wanted]):
        assert one.dtype == other.dtype and one.shape == other.shape
        torch.testing.assert_close(one, other, rtol=bound, atol=bound, equal_nan=True)
    return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dtype, descending):
    x = torch.randint(-5, 6, (4, 30)).to(dtype)
    carried(lambda x: torch.sort(x, dim=-1, descending=descending, stable=True), x)
    carried(lambda x: torch.sort(x, dim=0, descending=descending, stable=True), x)
    carried(lambda x: torch.argsort(x, dim=1, descending=descending, stable=True), x)
    carried(lambda x: torch.sort(x.flatten()[:1].squeeze())[0], x)


def test_sort_puts_nan_last_and_keeps_the_order_of_zeros():
    x = torch.tensor([0.0, NAN, -0.0, INF, -INF, NAN, 1.0])
    for descending in (False, True):
        carried(lambda x: torch.sort(x, descending=descending, stable=True), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_topk(dtype):
    x = torch.stack([torch.randperm(50) for _ in range(6)]).to(dtype)  # without equal elements, whose order torch leaves open
    for k, dim, largest in ((1, -1, True), (7, 1, False), (50, 1, True), (3, 0, True)):
        x_ = x + torch.arange(6).to(dtype)[:, None] * 100 if dim == 0 and dtype is not torch.bfloat16 else x
        if dim == 0 and dtype is torch.bfloat16:
            continue
        carried(lambda x: torch.topk(x, k, dim, largest), x_)
    carried(lambda x: torch.topk(x, 2)[1], x)
    carried(lambda x: torch.topk(x, 2)[0] * 2 if x.is_floating_point() else torch.topk(x, 2)[0], x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.bool])
def test_cumsum(dtype):
    x = torch.randint(-9, 10, (3, 40)).to(dtype)
    for dim in (0, 1, -1):
        carried(lambda x: torch.cumsum(x, dim), x)
    carried(lambda x: torch.cumsum(x, 0, dtype=torch.int32), x)
    carried(lambda x: x.to(torch.float32).cumsum(1), x)


def test_cumsum_of_long_rows_is_as_accurate_as_eager():
    x = torch.randn(2, 100_000)
    carried(lambda x: torch.cumsum(x, 1), x, bound=1e-6)


def test_histc():
    x = torch.cat([torch.randn(500) * 3, torch.tensor([-2.0, 2.0, NAN, INF, -INF])])
    carried(lambda x: torch.histc(x, 10, -2, 2), x)
    carried(lambda x: torch.histc(x.float(), 8, 0, 7), torch.randint(0, 8, (100,)))


def test_floor_divide():
    x = torch.randint(-2**31, 2**31 - 1, (100,), dtype=torch.int32)
    for divisor in (2, 3, -7, 1):
        carried(lambda x: x // divisor, x)
    carried(lambda x: torch.sort(x)[1] // 3, x)


def test_gather_and_scatter():
    x = torch.randn(4, 10, 3)
    for dim in (0, 1, 2):
        index = torch.randint(0, x.shape[dim], (4, 10, 3))
        carried(lambda x, i: torch.gather(x, dim, i), x, index)
    carried(lambda x, i: torch.gather(x, 1, i), x, torch.randint(0, 10, (2, 5, 3)))
    carried(lambda x, i: torch.gather(x, 0, i), torch.arange(9), torch.tensor([3, 1, 1]))
    order = torch.stack([torch.randperm(10)[:4] for _ in range(4)])
    carried(lambda x, i, s: torch.scatter(x, 1, i, s), x[..., 0], order, torch.randn(4, 4))
    carried(lambda x, i: torch.scatter(x, 1, i, 7.0), x[..., 0], torch.randint(0, 10, (4, 4)))
    carried(lambda x, i: torch.zeros_like(x).scatter(1, i, 1), torch.zeros(4, 10, dtype=torch.int64), order)
    carried(lambda i: torch.nn.functional.one_hot(i, 10).float(), order)
    carried(lambda x: (torch.any(x > 1, 1), torch.any(x[..., 0]), torch.any(x < -9)), x)


def test_an_index_out_of_range_is_an_error():
    for function, x in ((lambda x, i: torch.gather(x, 1, i), torch.randn(2, 4)), (lambda x, i: x.scatter(1, i, 1.0), torch.randn(2, 4)),
                        (lambda x, i: x.index_copy(0, i[0], x), torch.randn(2, 4))):
        with pytest.raises(IndexError):
            torch.compile(function, backend="lamina")(x, torch.tensor([[0, 4], [1, 2]]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
def test_index_put_and_copy(dtype):
    x, order = torch.randint(-50, 50, (12, 5)).to(dtype), torch.randperm(12)[:4]
    values = torch.arange(20).reshape(4, 5).to(dtype)
    carried(lambda x, i, v: x.index_put((i,), v), x, order, values)
    carried(lambda x, i, v: x.index_put((i,), v), x, order - 12, values)
    carried(lambda x, i, v: x.index_copy(0, i, v), x, order, values)
    carried(lambda x, i, v: x.t().contiguous().index_copy(1, i, v.t()), x, order, values)
    carried(lambda x, i: x.index_put((i,), torch.tensor(3, dtype=x.dtype)), x, order)
    carried(lambda x: torch.empty_like(torch.argsort(x)).index_put((torch.argsort(x),), torch.arange(60)), torch.randperm(60))


def test_index_add():
    x, index = torch.randn(6, 5), torch.tensor([3, 1, 3, 0])
    carried(lambda x, i, v: x.index_add(0, i, v), x, index, torch.randn(4, 5), bound=1e-6)
    carried(lambda x, i, v: torch.zeros_like(x).index_add(1, i, v), x, index, torch.randn(6, 4), bound=1e-6)


def test_a_cache_that_is_written_in_place():
    class Cache(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 3, 16, 4))

        def forward(self, new, places):
            self.keys.index_copy_(2, places, new)
            return (self.keys * 2).sum(-1)

    eager, compiled = Cache(), Cache()
    run = torch.compile(compiled, backend="lamina")
    for first in (0, 5, 6):
        new, places = torch.randn(2, 3, 5 if first == 0 else 1, 4), torch.arange(first, first + (5 if first == 0 else 1))
        torch.testing.assert_close(run(new, places), eager(new, places))
        torch.testing.assert_close(compiled.keys, eager.keys, rtol=0, atol=0)


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-4), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("across", [False, True])
def test_grouped_mm(dtype, bound, across):
    x, ends = torch.randn(50, 32).to(dtype), torch.tensor([7, 7, 33, 50], dtype=torch.int32)
    weights = torch.randn(4, 48, 32).to(dtype).transpose(1, 2) if across else torch.randn(4, 32, 48).to(dtype)
    carried(lambda x, w, o: torch._grouped_mm(x, w, offs=o), x, weights, ends, bound=bound)


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.bfloat16, 2e-2)])
def test_gradients_of_grouped_mm(dtype, bound):
    ends = torch.tensor([7, 7, 33, 48], dtype=torch.int32)

    def by_groups(x, w):
        return torch.cat([x[begin:end] @ w[i] for i, (begin, end) in enumerate(zip([0, *ends.tolist()], ends.tolist()))])

    def gradients(function):
        torch.manual_seed(0)
        x, w = torch.randn(48, 32).to(dtype).requires_grad_(), torch.randn(4, 32, 16).to(dtype).requires_grad_()
        made = function(x, w)
        return torch.autograd.grad(made, (x, w), torch.randn(made.shape).to(dtype))

    reports = []
    step = torch.compile(lambda x, w: torch._grouped_mm(x, w, offs=ends), backend="lamina", options={"reports": reports})
    for one, other in zip(gradients(step), gradients(by_groups), strict=True):
        torch.testing.assert_close(one, other, rtol=bound, atol=bound)
    left = [(node.op, node.reason) for report in reports for node in report.left()]
    assert not left and len(reports) == 2, left


def blocks(transformers):
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import DeepseekV3MoE
    from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
    from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

    mixtral = transformers.MixtralConfig(hidden_size=64, intermediate_size=96, num_local_experts=4, num_experts_per_tok=2)
    qwen = transformers.Qwen3MoeConfig(hidden_size=64, moe_intermediate_size=32, num_experts=8, num_experts_per_tok=2, norm_topk_prob=True)
    deepseek = transformers.DeepseekV3Config(hidden_size=64, moe_intermediate_size=32, intermediate_size=96, n_routed_experts=8, n_group=4, topk_group=2,
                                             num_experts_per_tok=2)
    return {"mixtral": (MixtralSparseMoeBlock, mixtral), "qwen3_moe": (Qwen3MoeSparseMoeBlock, qwen), "deepseek_v3": (DeepseekV3MoE, deepseek)}


@pytest.mark.parametrize("name", ["mixtral", "qwen3_moe", "deepseek_v3"])
@pytest.mark.parametrize("experts", ["grouped_mm", "batched_mm"])
@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)])
def test_a_mixture_of_experts(name, experts, dtype, bound):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    kind, config = blocks(transformers)[name]
    config._experts_implementation = experts
    block = kind(config).eval()
    for parameter in block.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    block = block.to(dtype)
    with torch.no_grad():
        carried(lambda x: block(x), torch.randn(2, 7, 64).to(dtype), bound=bound)
    if experts == "grouped_mm" and dtype is torch.float32:
        expect_gradients(block, torch.randn(2, 7, 64), bound)


def expect_gradients(block, x, bound):
    """Of all parameters, carried whole."""
    torch._dynamo.reset()
    reports, wanted = [], list(block.parameters())
    compiled = torch.compile(lambda x: block(x), backend="lamina", options={"reports": reports})
    ours, eager = (torch.autograd.grad(function(x).square().sum(), wanted, allow_unused=True) for function in (compiled, block))
    for one, other in zip(ours, eager, strict=True):
        if other is not None:
            torch.testing.assert_close(one, other, rtol=bound, atol=bound * other.abs().max().item())
    assert not [(node.op, node.reason) for report in reports for node in report.left() if node.floating]
