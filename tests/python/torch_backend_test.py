"""torch.compile(model, backend="lamina")."""
import glob
import json
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import lamina  # noqa: E402
import lamina.torch as lt  # noqa: E402
from lamina.torch.nodes import DTYPES  # noqa: E402


class Block(nn.Module):
    """A transformer's block."""

    def __init__(self, d=32, heads=4, dropout=0.0):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
        self.qkv, self.out, self.dropout = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Dropout(dropout)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.dropout(self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)))
        return x + self.dropout(self.mlp(self.norm2(x)))


class Embedded(nn.Module):
    """Ops that lamina lacks stand in the middle."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.head = nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 50)

    def forward(self, tokens):
        hidden = self.norm(self.table(tokens))
        return self.head(torch.i0(torch.tanh(hidden)))


class Gated(nn.Module):
    """RMSNorm and a gated MLP, as in LLaMA."""

    def __init__(self, d=32):
        super().__init__()
        self.norm, self.gate, self.up, self.down = nn.RMSNorm(d), nn.Linear(d, 64), nn.Linear(d, 64), nn.Linear(64, d)

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2), nn.Hardswish())
        self.head = nn.Linear(8, 5)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


MODELS = {
    "block": (Block, lambda n: torch.randn(n, 6, 32)),
    "gated": (Gated, lambda n: torch.randn(n, 6, 32)),
    "embedded": (Embedded, lambda n: torch.randint(0, 50, (n, 6))),
    "convolutional": (Convolutional, lambda n: torch.randn(n, 3, 9, 9)),
}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def compiled(model, **options):
    return torch.compile(model, backend="lamina", options={"warn": False, **options})


def worst(a, b):
    return (a.double() - b.double()).abs().max().item()


def against_float64(model, x):
    """Error of the compiled model and of eager, both against float64."""
    wide = x.double() if x.is_floating_point() else x
    import copy
    exact = copy.deepcopy(model).double()(wide)
    return worst(compiled(model)(x), exact), worst(model(x), exact)


@pytest.mark.parametrize("name", MODELS)
def test_inference_is_as_exact_as_eager(name):
    make, data = MODELS[name]
    with torch.no_grad():
        ours, eager = against_float64(make().eval(), data(2))
    assert ours <= 4 * eager + 1e-7


@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_as_exact_as_eager(name):
    import copy
    make, data = MODELS[name]
    model, x = make().train(), data(2)
    exact, ours = copy.deepcopy(model).double(), copy.deepcopy(model)
    model(x).square().sum().backward()
    compiled(ours)(x).square().sum().backward()
    exact(x.double() if x.is_floating_point() else x).square().sum().backward()
    for (label, p), q, e in zip(ours.named_parameters(), model.parameters(), exact.parameters()):
        scale = e.grad.abs().max().item()
        assert worst(p.grad, e.grad) <= 4 * worst(q.grad, e.grad) + 1e-6 * scale, label
    for p, q in zip(ours.buffers(), model.buffers()):  # running statistics
        torch.testing.assert_close(p, q, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_types(dtype):
    model, x = Block().to(dtype), torch.randn(2, 6, 32, dtype=dtype)
    with torch.no_grad():
        made = compiled(model)(x)
    assert made.dtype == dtype
    assert worst(made, model.double()(x.double())) < (0.1 if dtype == torch.bfloat16 else 1e-12)


def test_autocast():
    model, x = Block(), torch.randn(2, 6, 32)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        made, eager = compiled(model)(x), model(x)
    assert made.dtype == eager.dtype
    assert worst(made, model(x)) < 0.1


def test_sizes_that_are_arguments_are_known_when_a_call_comes():
    """GroupNorm's ops take the batch as a number."""
    model = nn.Sequential(nn.Conv2d(4, 8, 3), nn.GroupNorm(2, 8), nn.SiLU())
    run = compiled(model)
    for n in (2, 3, 5):
        x = torch.randn(n, 4, 6, 6)
        ours, theirs = (torch.autograd.grad(f(x).square().sum(), list(model.parameters())) for f in (run, model))
        for a, b in zip(ours, theirs):
            torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_batch_sizes_marked_dynamic_compile_once():
    model, seen = Block().eval(), []
    run = torch.compile(model, backend=lambda gm, inputs, **kw: seen.append(1) or lt.backend(gm, inputs, options={"warn": False}))
    with torch.no_grad():
        for n in (2, 3, 5, 7):
            x = torch.randn(n, 6, 32)
            torch._dynamo.mark_dynamic(x, 0)
            assert worst(run(x), model(x)) < 1e-5
    assert len(seen) == 1


def test_output_strides_are_eagers():
    f = lambda x: torch.relu(x).transpose(0, 1) if x.dim() == 2 else torch.tanh(x)
    run = torch.compile(f, backend="lamina")
    for x in (torch.randn(3, 4), torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)):
        torch._dynamo.reset()
        assert run(x).stride() == f(x).stride()
        assert worst(run(x), f(x)) < 1e-6


def test_dropout_draws_as_eager_does():
    model, x = Block(dropout=0.5).train(), torch.randn(2, 6, 32)
    torch.manual_seed(7)
    eager = model(x)
    torch.manual_seed(7)
    assert worst(compiled(model)(x), eager) < 1e-5


def test_inference_mode_and_weights_that_change():
    model, x = Block().eval(), torch.randn(2, 6, 32)
    run = compiled(model)
    with torch.inference_mode():
        assert worst(run(x), model(x)) < 1e-5
        model.norm1.weight.mul_(2)
        assert worst(run(x), model(x)) < 1e-5
    model.norm1.weight = nn.Parameter(torch.randn(32))
    with torch.inference_mode():
        assert worst(run(x), model(x)) < 1e-5


def test_explain_counts_and_names_what_is_left():
    with torch.no_grad():
        report = lt.explain(Embedded(), torch.randint(0, 50, (2, 6)))
    assert {node.op: node.reason for node in report.left()} == {"aten.i0.default": "no rule"}
    assert report.calls == sum(graph.calls for graph in report.graphs) > 0
    assert 0 < report.share < 1 and "left to PyTorch" in str(report) and report.graph_breaks == 0
    assert "<table>" in report._repr_html_()


def test_a_whole_model_is_carried():
    with torch.no_grad():
        report = lt.explain(Gated(), torch.randn(2, 6, 32))
    assert report.share == 1 and report.graphs[0].calls == 1


def test_fallback_is_never_silent():
    f = lambda x: torch.i0(torch.relu(x)) * 2
    with pytest.warns(lt.FallbackWarning, match=r"1 x aten.i0.default \(no rule\)"):
        torch.compile(f, backend="lamina")(torch.randn(3, 4))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="required is 99.00%"):
        torch.compile(f, backend="lamina", options={"require": 0.99})(torch.randn(3, 4))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("error", lt.FallbackWarning)
        torch.compile(lambda x: torch.relu(x) * 2, backend="lamina", options={"require": 1})(torch.randn(3, 4))


def test_unknown_options_are_refused():
    with pytest.raises(Exception, match="option 'requires' is unknown, allowed is one of require, dump, warn"):
        torch.compile(torch.relu, backend="lamina", options={"requires": 1})(torch.randn(3))
    with pytest.raises(Exception, match="option reports is 1, allowed is a list"):
        torch.compile(torch.relu, backend="lamina", options={"reports": 1})(torch.randn(3))


def test_dumps_are_graphs_that_run(tmp_path):
    with torch.no_grad():
        compiled(Gated(), dump=str(tmp_path))(torch.randn(2, 6, 32))
    file, = glob.glob(str(tmp_path / "*.json"))
    text = open(file, encoding="utf-8").read()
    kinds = [op["kind"] for op in json.loads(text)["graph"]]
    assert "MatMul" in kinds
    lamina.Graph.from_json(text).compile()


def test_mutation_and_aliases():
    def f(x, state):
        state.add_(x)
        y = torch.relu(x)
        return y, y.view(-1), x

    x = torch.randn(3, 4)
    mine, theirs = torch.zeros(3, 4), torch.zeros(3, 4)
    for _ in range(2):
        a, b = torch.compile(f, backend="lamina")(x, mine), f(x, theirs)
    torch.testing.assert_close(mine, theirs)
    for left, right in zip(a, b):
        torch.testing.assert_close(left, right)
    assert a[2] is x and a[1].data_ptr() == a[0].data_ptr()


def test_double_backward_is_refused():
    x = torch.randn(3, 4, requires_grad=True)
    y = torch.compile(lambda v: torch.tanh(v).sum(), backend="lamina")(x)
    first, = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward|does not currently support|requires_grad|twice"):
        torch.autograd.grad(first.sum(), x)


def left_of(model, *inputs):
    """What lamina leaves to torch, of forward and backward."""
    return {node.op: node.reason for graph in lt.explain(model, *inputs).graphs for node in graph.left()}


def test_rms_norm_is_one_node_forward_and_backward():
    ops = [node.op for graph in lt.explain(Gated(), torch.randn(2, 6, 32)).graphs for node in graph.nodes]
    assert ops.count("lamina.rms_norm.default") == 1 and ops.count("lamina.rms_norm_backward.default") == 1
    assert not any("rsqrt" in op for op in ops)


class WrittenNorm(nn.Module):
    """As transformers' own modules write it; `plus_one` as Gemma's."""

    def __init__(self, plus_one=False):
        super().__init__()
        self.weight, self.plus_one, self.wide = nn.Parameter(torch.randn(32)), plus_one, torch.float32

    def forward(self, x):
        wide = x.to(self.wide)
        normal = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        if self.plus_one:
            return (normal * (1.0 + self.weight.to(self.wide))).type_as(x)
        return self.weight * normal.to(x.dtype)


@pytest.mark.parametrize("plus_one", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rms_norm_that_is_written_out_is_one_node_too(dtype, plus_one):
    model, x = WrittenNorm(plus_one).to(dtype), torch.randn(3, 5, 32).to(dtype).requires_grad_()
    ops = [node.op for graph in lt.explain(model, x).graphs for node in graph.nodes]
    assert ops.count("lamina.rms_norm.default") == 1 and ops.count("lamina.rms_norm_backward.default") == 1
    assert not any("rsqrt" in op for op in ops)
    exact = WrittenNorm(plus_one).double()
    exact.load_state_dict(model.state_dict())
    exact.wide, outcomes = torch.float64, []
    for run, given in ((compiled(model), x), (model, x), (exact, x.detach().double().requires_grad_())):
        made = run(given)
        outcomes.append((made, *torch.autograd.grad(made.square().sum(), [given, *(exact if run is exact else model).parameters()])))
    for ours, eager, right in zip(*outcomes):
        assert ours.dtype == eager.dtype and ours.stride() == eager.stride()
        assert worst(ours, right) <= 1.5 * worst(eager, right) + 1e-5


def test_what_only_looks_like_an_rms_norm_stays_as_it_is():
    def f(x, w):
        root = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x * root * w, root

    def g(x, w):
        return x * torch.rsqrt(x.pow(2).mean(0, keepdim=True) + 1e-6) * w

    x, w = torch.randn(6, 32), torch.randn(32)
    for function in (f, g):
        assert not any("rms_norm" in node.op for graph in lt.explain(function, x, w).graphs for node in graph.nodes)
        with torch.no_grad():
            torch.testing.assert_close(compiled(function)(x, w), function(x, w))


def test_look_ups_and_their_gradients_are_carried():
    class Tokens(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = nn.Embedding(50, 16, padding_idx=3), nn.Linear(16, 50)

        def forward(self, tokens, targets):
            return F.cross_entropy(self.head(self.table(tokens)).flatten(0, 1), targets.flatten(), ignore_index=7)

    tokens, targets = torch.randint(0, 50, (2, 6)), torch.randint(0, 50, (2, 6))
    tokens[0, 0], targets[0, 1] = 3, 7
    assert left_of(Tokens(), tokens, targets) == {}
    model = Tokens()
    theirs = torch.autograd.grad(model(tokens, targets), list(model.parameters()))
    ours = torch.autograd.grad(compiled(model)(tokens, targets), list(model.parameters()))
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses_leave_out_what_is_ignored(reduction):
    """Also where a row that is ignored has an infinity."""
    scores, targets = torch.randn(5, 7), torch.tensor([0, 6, -100, 3, -100])
    scores[2, 0] = -torch.inf
    loss = lambda s: F.nll_loss(s, targets, reduction=reduction)
    assert left_of(loss, scores) == {}
    scores.requires_grad_()
    made, theirs = compiled(loss)(scores), loss(scores)
    torch.testing.assert_close(made, theirs)
    torch.testing.assert_close(*(torch.autograd.grad(value.sum(), scores)[0] for value in (made, theirs)))


def test_the_gradient_of_a_loss_of_nothing_is_zero():
    scores, targets = torch.randn(3, 7, requires_grad=True), torch.full((3,), -100)
    made, = torch.autograd.grad(compiled(lambda s: F.nll_loss(s, targets))(scores), scores)
    assert (made == 0).all()


@pytest.mark.parametrize("target", [7, -1])
def test_a_target_that_is_no_class_is_an_error(target):
    with torch.no_grad(), pytest.raises(Exception, match="(?i)out of|indices|target"):
        compiled(lambda s: F.nll_loss(s, torch.tensor([0, target])))(torch.randn(2, 7))


def test_gradients_of_weights_are_not_rounded_under_autocast():
    model, x, slope = nn.Linear(64, 32, bias=False), torch.randn(48, 64), torch.randn(48, 32).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        made = compiled(model)(x)
    made.backward(slope)
    exact = slope.double().T @ x.bfloat16().double()
    torch.testing.assert_close(model.weight.grad.double(), exact, atol=1e-5, rtol=1e-5)


def test_index_tensors_that_share_an_axis_are_carried():
    states, rows, columns = torch.randn(2, 4, 5, 3), torch.tensor([0, 3, -1]), torch.tensor([[4, 0, -5], [1, 2, 3]])
    look_up = lambda x, i, j: x[:, i, j] * 2
    assert left_of(look_up, states, rows, columns) == {}
    with torch.no_grad():
        torch.testing.assert_close(compiled(look_up)(states, rows, columns), look_up(states, rows, columns))
        for i, j in ((4, 0), (0, -6)):
            with pytest.raises(Exception, match="(?i)index|indices"):
                compiled(look_up)(states, torch.tensor([i]), torch.tensor([j]))


def test_memory_seen_with_other_strides_is_carried():
    """Also what is put back that way, as by the gradient of a view that was changed in place."""
    def f(x, y):
        turned = torch.as_strided(x * 2, (3, 2, 4), (1, 12, 3))
        back = torch.as_strided_scatter(x, y + turned, (3, 2, 4), (1, 12, 3))
        return turned + y, back * 3

    x, y = torch.randn(2, 4, 3), torch.randn(3, 2, 4)
    assert left_of(f, x, y) == {}
    with torch.no_grad():
        for ours, theirs in zip(compiled(f)(x, y), f(x, y)):
            torch.testing.assert_close(ours, theirs)


def test_an_index_out_of_range_is_an_error():
    table = torch.randn(5, 3)
    with torch.no_grad(), pytest.raises(Exception, match="(?i)index|indices"):
        compiled(lambda i: F.embedding(i, table) * 2)(torch.tensor([1, 5]))


def test_max_pooling_is_carried_in_training():
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.MaxPool2d(3, 2, 1, ceil_mode=True), nn.BatchNorm2d(4))
    x = torch.randn(2, 3, 11, 12)
    assert set(left_of(model, x)) <= {"aten.add.Tensor"}  # the batch counter of batch norms


def test_dropout_is_drawn_by_torch_and_multiplied_by_lamina():
    model, x = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.GELU()), torch.randn(4, 8)
    report = lt.explain(model, x)
    assert report.share == 1 and [graph.calls for graph in report.graphs] == [1, 1]


def test_16_bit_norms_have_their_statistics_anew():
    model = nn.LayerNorm(64).bfloat16()
    x = (torch.randn(8, 64) + 30).bfloat16().requires_grad_()
    exact = torch.autograd.grad(F.layer_norm(x.double(), (64,)).square().sum() + 0 * x.sum(), x)[0]
    ours, = torch.autograd.grad(compiled(model)(x).double().square().sum(), x)
    eager, = torch.autograd.grad(model(x).double().square().sum(), x)
    assert ours.dtype == torch.bfloat16 and left_of(model, x) == {}
    assert worst(ours, exact) <= worst(eager, exact) + 1e-3


@pytest.mark.parametrize("dtype", [dtype for dtype in DTYPES if dtype is not torch.bool], ids=str)
def test_every_type_has_numbers(dtype):
    """A border is a number of the tensor's type."""
    x = torch.arange(6).to(dtype).reshape(2, 3)
    pad = lambda t: torch.nn.functional.pad(t, (1, 2), value=7)
    torch.testing.assert_close(torch.compile(pad, backend="lamina", options={"require": 1.0 if dtype.is_floating_point else 0.0})(x), pad(x), rtol=0, atol=0)


def test_a_number_that_a_type_does_not_have_is_left_to_torch():
    """Eager refuses it, or reduces it to the type's bits; lamina's answer is the same."""
    x = torch.arange(6, dtype=torch.uint8).reshape(2, 3)
    pad = lambda t: torch.nn.functional.pad(t, (1, 0), value=300)
    try:
        wanted = pad(x)
    except RuntimeError:
        with pytest.raises(Exception):
            torch.compile(pad, backend="lamina")(x)
    else:
        torch.testing.assert_close(torch.compile(pad, backend="lamina")(x), wanted)


def test_a_type_that_torch_announced_wrongly_is_converted():
    """torch announces f32 statistics of an f16 batch norm, and returns f16."""
    model = nn.Sequential(nn.BatchNorm1d(5), nn.GELU()).half()
    x = torch.randn(6, 5).half().requires_grad_()
    eager = torch.autograd.grad(model(x).float().sum(), x)[0]
    ours = torch.autograd.grad(torch.compile(model, backend="lamina")(x).float().sum(), x)[0]
    torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


def test_select_between_numbers():
    f = lambda mask, x: torch.where(mask, 0.0, float("-inf")) + x
    mask, x = torch.rand(2, 1, 4, 4) > 0.3, torch.randn(2, 3, 4, 4)
    torch.testing.assert_close(compiled(f, require=1)(mask, x), f(mask, x))


def test_transposes_of_transposes_and_products_across():
    f = lambda a, b: (torch.relu(a).t() @ torch.relu(b)).t().t().relu()
    a, b = torch.randn(5, 3), torch.randn(5, 4)
    torch.testing.assert_close(compiled(f, require=1)(a, b), f(a, b))


def test_a_copy_that_lamina_leaves_out_is_what_it_copies():
    """In float64 torch computes the products, and reads a copy of what lamina moved."""
    layer = nn.TransformerEncoderLayer(4, 2, 16, 0.0, batch_first=True).double().eval()
    x = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True)
    wanted = [x, *layer.parameters()]
    ours, theirs = (torch.autograd.grad(run(x).square().sum(), wanted) for run in (compiled(layer), layer))
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("heads, shared", [(8, 2), (6, 1), (4, 4)])
@pytest.mark.parametrize("mask", ["none", "causal", "rows", "batch", "heads"])
def test_heads_share_keys_and_values(heads, shared, mask):
    q, k, v = (torch.randn(2, 9, n, 16).transpose(1, 2) for n in (heads, shared, shared))
    shape = {"rows": (9, 9), "batch": (2, 1, 9, 9), "heads": (2, heads, 9, 9)}.get(mask)
    given = dict(is_causal=True) if mask == "causal" else dict(attn_mask=None if shape is None else torch.randn(shape))

    class Attention(nn.Module):
        def forward(self, q, k, v):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **given)

    with torch.no_grad():
        made, exact = compiled(Attention(), require=1.0)(q, k, v), Attention()(q, k, v)
    torch.testing.assert_close(made, exact, atol=2e-6, rtol=1e-5)
    assert made.stride() == exact.stride()


def test_gradients_of_heads_that_share_keys_and_values():
    q, k, v = (torch.randn(2, n, 9, 16, requires_grad=True) for n in (8, 2, 2))
    attend = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True, is_causal=True)
    slope = torch.randn(2, 8, 9, 16)
    made = torch.autograd.grad(compiled(attend)(q, k, v), (q, k, v), slope)
    for ours, theirs in zip(made, torch.autograd.grad(attend(q, k, v), (q, k, v), slope)):
        torch.testing.assert_close(ours, theirs, atol=5e-6, rtol=1e-4)
