"""torch.compile(backend="lamina") gives eager's answers: more than once, under one seed, and where lamina carries little."""
import operator
import re
import sys
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import lamina.torch  # noqa: E402
from lamina._core import draw_mask  # noqa: E402
from lamina.torch.draws import _draws_as_torch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::lamina.torch.FallbackWarning")


def compiled(function, **settings):
    torch._dynamo.reset()
    return torch.compile(function, backend="lamina", **settings)


def drawn_twice(function, *args):
    torch.manual_seed(0)
    return [function(*args) for _ in range(2)]


DRAWS = {
    "gumbel_softmax": lambda x: F.gumbel_softmax(x, dim=1),
    "exponential": lambda x: F.gelu(x) + torch.empty(4, 8).exponential_(),
    "uniform": lambda x: F.gelu(x) + torch.zeros(4, 8).uniform_(),
    "normal": lambda x: F.gelu(x) + torch.zeros(4, 8).normal_(),
    "log_normal": lambda x: F.gelu(x) + torch.ones(4, 8).log_normal_(),
    "cauchy": lambda x: F.gelu(x) + torch.ones(4, 8).cauchy_(),
    "geometric": lambda x: F.gelu(x) + torch.zeros(8).geometric_(0.3),
    "multinomial": lambda x: F.gelu(x) + torch.multinomial(torch.ones(8), 8),
    "poisson": lambda x: F.gelu(x) + torch.poisson(torch.ones(8) * 3),
    "binomial": lambda x: F.gelu(x) + torch.binomial(torch.full((8,), 9.0), torch.full((8,), 0.5)),
    "randint_like": lambda x: F.gelu(x) + torch.randint_like(torch.zeros(8), 100),
    "randperm": lambda x: F.gelu(x) + torch.randperm(8),
    "bernoulli": lambda x: F.gelu(x) + torch.bernoulli(torch.full((8,), 0.5)),
    "rand_like": lambda x: F.gelu(x) + torch.rand_like(torch.zeros(8)),
    "exponential, then rand": lambda x: torch.cat([(F.gelu(x) * 2).exponential_(), torch.rand(4, 8)]),
    "multinomial, then rand": lambda x: torch.cat([torch.multinomial((x * 2).softmax(-1), 8).float() * 2, torch.rand(4, 8)]),
    "dropout of a transposed tensor": lambda x: F.dropout(F.gelu(x.t()), 0.5) * torch.rand(4),
    "dropout of an expanded tensor": lambda x: F.dropout(x[:, None].expand(4, 3, 8), 0.5) * 2,
    "dropout of every other column": lambda x: F.dropout(x[:, ::2], 0.5) * 2,
    "dropout of channels last": lambda x: F.dropout(x.reshape(1, 4, 2, 4).to(memory_format=torch.channels_last), 0.5) * 2,
    "dropout of many": lambda x: F.dropout(x.repeat(70, 1), 0.1) * torch.rand(8),
    "rand, then dropout": lambda x: torch.rand(5).sum() + F.dropout(F.gelu(x), 0.3),
    "rrelu": lambda x: F.rrelu(x * 2, training=True),
}


@pytest.mark.parametrize("words_before", [0, 1, 623, 700])
def test_masks_are_those_of_torchs_generator(words_before):
    if not _draws_as_torch():
        pytest.skip("torch draws booleans by MKL on this processor")
    for kept in (0.0, 0.1, 1 / 3, 0.5, 0.9, 1.0):
        for count in (0, 1, 311, 312, 313, 1023, 1025, 5000):
            generator = torch.Generator()
            generator.manual_seed(count)
            torch.empty(words_before, dtype=torch.int32).random_(generator=generator)
            state, ours, theirs = generator.get_state(), *torch.empty(2, count, dtype=torch.bool)
            draw_mask(state, ours, kept)
            assert torch.equal(ours, theirs.bernoulli_(kept, generator=generator))
            assert torch.equal(state, generator.get_state())


@pytest.mark.parametrize("change, message", [
    (lambda state, mask: (state[:100], mask, 0.5), "state is not the state of a torch.Generator of the CPU"),
    (lambda state, mask: (state * 0, mask, 0.5), "state does not say which word is drawn next"),
    (lambda state, mask: (state, mask.float(), 0.5), "mask has type f32, allowed is boolean"),
    (lambda state, mask: (state, mask[::2], 0.5), "mask has gaps between its elements"),
    (lambda state, mask: (state, mask, 1.5), "probability is 1.500000, allowed is 0 to 1")])
def test_masks_are_refused(change, message):
    with pytest.raises(lamina.Error, match=re.escape(message)):
        draw_mask(*change(torch.Generator().get_state(), torch.zeros(8, dtype=torch.bool)))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_those_of_eager(name, dynamic):
    x = torch.linspace(-2, 2, 32).reshape(4, 8)
    ours, eager = drawn_twice(compiled(DRAWS[name], dynamic=dynamic), x), drawn_twice(DRAWS[name], x)
    assert torch.equal(*ours) == torch.equal(*eager)
    for a, b in zip(ours, eager):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


CONSTANTS = {
    "zeros": lambda x: torch.zeros(4),
    "zeros_like": torch.zeros_like,
    "full_like": lambda x: torch.full_like(x, 2.0),
    "new_full": lambda x: x.new_full((3,), 7.0),
    "arange": lambda x: torch.arange(4).float() * 2,
    "transposed": lambda x: torch.ones(2, 3).t(),
    "tensor": lambda x: torch.tensor([1.0, 2.0]),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_constant_that_is_returned_is_the_callers(name):
    function = lambda x: (F.gelu(x), CONSTANTS[name](x))
    x = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    call = compiled(function)
    call(x)[1].add_(1)
    ours, eager = call(x)[1], function(x)[1]
    assert torch.equal(ours, eager) and ours.stride() == eager.stride()


RETURNED = {
    "linear": lambda x, w: F.linear(x, w),
    "dropout of linear": lambda x, w: F.dropout(F.linear(x, w), 0.5),
    "view": lambda x, w: F.gelu(x).view(-1),
    "transposed": lambda x, w: F.gelu(x).transpose(0, 1),
    "part": lambda x, w: F.gelu(x).chunk(2)[1],
    "expanded": lambda x, w: F.gelu(x)[None].expand(2, -1, -1, -1).reshape(-1),
}


@pytest.mark.parametrize("trained", [True, False])
@pytest.mark.parametrize("name", RETURNED)
def test_a_caller_may_write_to_what_is_returned(name, trained):
    x, w = torch.randn(2, 4, 8), torch.randn(8, 8, requires_grad=trained)
    made = []
    for function in (compiled(RETURNED[name]), torch.compile(RETURNED[name], backend="aot_eager")):
        torch.manual_seed(0)
        made.append(function(x.requires_grad_(trained), w))
        made[-1][:1] = 0.5
        made[-1].mul_(2)
    torch.testing.assert_close(*made, rtol=1e-4, atol=1e-5)
    assert made[0]._is_view() == made[1]._is_view()
    if trained:
        torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), x) for y in made), rtol=1e-4, atol=1e-5)


def test_a_look_up_at_known_places_among_tensors_that_want_gradients():
    class Relative(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(8, 4)

        def forward(self, x):
            places = torch.arange(4)[:, None] - torch.arange(4)[None, :]
            return self.table(places.abs() + (places > 0) * 4) * x

    module, x = Relative(), torch.randn(4, 4, 4)
    ours, eager = (torch.autograd.grad(call(x).square().sum(), module.table.weight) for call in (compiled(module), module))
    torch.testing.assert_close(ours, eager, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**62 + 1, 16777217])
@pytest.mark.parametrize("compare", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_integers_are_compared_as_they_are(compare, number):
    x = torch.tensor([number - 1, number, number + 1])
    for function in (lambda x: compare(x, number), lambda x: compare(x, torch.full((3,), number)), lambda x: compare(x, torch.tensor(number))):
        assert torch.equal(compiled(function)(x), function(x))


class Branches(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda v: F.gelu(v), lambda v: v.sin(), (F.relu(x) - 0.3,)) * 2


def loop(x):
    from torch._higher_order_ops.while_loop import while_loop
    return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), (torch.tensor(0), F.gelu(x)))[1] + 1


def attention(x):
    from torch.nn.attention.flex_attention import flex_attention
    q = F.gelu(x).reshape(1, 1, 4, 8)
    return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j)) * 2


def sized(x):
    count = (x > 0).sum().item()
    torch._check(count >= 0)
    return F.gelu(x) * count + torch.zeros(count).sum()


LEFT = {
    "cond": Branches(),
    "while_loop": loop,
    "flex_attention": attention,
    "nonzero": lambda x: F.gelu(x[x > 0]) * 2,
    "nonzero of what lamina makes": lambda x: F.gelu(x * 2)[(x * 3) > 0] * 2,
    "a number of data": lambda x: F.gelu(x) * x.sum().item(),
    "a size of data": sized,
    "complex": lambda x: torch.view_as_real(torch.fft.fft(F.gelu(x)) * (1 + 2j) + torch.tensor([1j])) * 2,
    "sparse": lambda x: torch.sparse.mm(F.relu(x).to_sparse(), x.t()) * 2,
    "broadcast constants": lambda x: torch.where((x[:, :, None, None] > 0) & torch.ones(16, 16, dtype=torch.bool), 1.0, 2.0) * torch.ones(4, 8, 1, 1),
    "a uniform constant that broadcasts": lambda x: x[:, :, None, None] * torch.full((16, 16), 2.0),
    "a comparison that broadcasts": lambda x: (x[:, :, None, None] > torch.zeros(16, 16)).float() * 2,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", LEFT)
def test_what_is_not_carried_stays_with_torch(name, dynamic):
    settings = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(settings), torch.no_grad():
        call = compiled(LEFT[name], dynamic=dynamic)
        for seed in range(3):
            x = torch.randn(4, 8, generator=torch.Generator().manual_seed(seed))
            torch.testing.assert_close(call(x), LEFT[name](x), rtol=1e-4, atol=1e-5)


VIEWS_BY_SIZE = {
    "halves": lambda x: torch.cat([-x.chunk(2, -1)[1], x.chunk(2, -1)[0]], -1) * x,
    "a slice up to a size": lambda x: x[..., :x.shape[-1] // 2] * 2,
    "the last one": lambda x: x.select(-1, x.shape[-1] - 1) * 2,
    "unequal parts": lambda x: x.split([x.shape[-1] - 3, 3], -1)[0] * 2,
    "windows": lambda x: x.unfold(-1, x.shape[-1] // 4, x.shape[-1] // 4) * 2,
}


@pytest.mark.parametrize("name", VIEWS_BY_SIZE)
def test_views_whose_places_are_sizes(name):
    function = VIEWS_BY_SIZE[name]
    call = compiled(function, dynamic=True)
    for extent in (64, 32, 16):
        x = torch.randn(2, 3, extent, requires_grad=True)
        ours, eager = (torch.autograd.grad(f(x).square().sum(), x)[0] for f in (call, function))
        torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5)


def test_meta_tensors_stay_with_torch():
    made = compiled(lambda x: F.gelu(x) + torch.zeros(8, device="meta"))(torch.empty(4, 8, device="meta"))
    assert made.device.type == "meta" and made.shape == (4, 8)


def test_jagged_tensors_stay_with_torch():
    parts = [torch.randn(n, 8) for n in (2, 3)]
    nested = lambda: torch.nested.nested_tensor(parts, layout=torch.jagged)
    function = lambda x: F.gelu(x) * 2
    torch.testing.assert_close(compiled(function)(nested()).values(), function(nested()).values(), rtol=1e-4, atol=1e-5)


def test_gradients_of_what_data_sizes():
    layer, x = nn.Linear(8, 8), torch.randn(4, 8)
    function = lambda x: layer(x)[x > 0].square().sum()
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        ours = torch.autograd.grad(compiled(function, fullgraph=True)(x), layer.weight)
    torch.testing.assert_close(ours, torch.autograd.grad(function(x), layer.weight), rtol=1e-3, atol=1e-5)


OUT_OF_RANGE = {
    "embedding": lambda index: F.embedding(index, torch.ones(10, 4)),
    "index_select": lambda index: torch.index_select(torch.ones(10, 4) + index[0], 0, index),
    "cross_entropy": lambda index: F.cross_entropy(torch.ones(1, 10) * 2, index),
}


@pytest.mark.parametrize("index", [-1, 10, -11, 2**31 + 1])
@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_out_of_range_is_an_index_error(name, index):
    for function in (OUT_OF_RANGE[name], compiled(OUT_OF_RANGE[name])):
        with pytest.raises((IndexError, RuntimeError)) as raised:
            function(torch.tensor([index]))
        assert not isinstance(raised.value, lamina.Error), str(raised.value)
    assert torch.equal(compiled(OUT_OF_RANGE[name])(torch.tensor([9])), OUT_OF_RANGE[name](torch.tensor([9])))


def test_a_mode_that_torch_does_not_know_is_refused():
    from lamina.torch.backend import backend
    with pytest.raises(lamina.Error, match="mode is 'fastest', allowed is one of default"):
        backend(None, [], mode="fastest")


def told_of(function, *calls):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        call = compiled(function)
        for x in calls:
            call(x)
    return [w for w in told if w.category is lamina.torch.FallbackWarning]


def test_no_warning_for_integers_alone():
    assert not told_of(lambda x: (F.gelu(x) * 2, torch.arange(x.shape[0]) * x.shape[1] // 3, (x > 0).int().cumsum(0)), torch.randn(4, 8))


def test_one_warning_however_often_sizes_are_compiled_anew():
    assert len(told_of(lambda x: torch.i0(F.gelu(x)), *(torch.randn(rows, 8) for rows in range(3, 8)))) == 1


def test_one_warning_of_one_line_for_forward_and_backward():
    x = torch.randn(3, 8, requires_grad=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        compiled(lambda x: torch.i0(F.gelu(x)) + torch.lgamma(x.abs()))(x).sum().backward()
    text, = [str(w.message) for w in told if w.category is lamina.torch.FallbackWarning]
    assert "in forward, left to PyTorch: 1 x aten.i0.default (no rule)" in text and "\n" not in text, text


class OwnProduct(nn.Module):
    """Rounds its product to 16 bits; the backward pass may compute that again."""

    def forward(self, x, w):
        return (x.bfloat16() @ w.bfloat16()).float().square()


@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("trained", [False, True])
def test_a_product_that_is_cast_is_rounded_to_its_own_type(trained, checkpointed):
    from torch.utils.checkpoint import checkpoint
    module = OwnProduct()
    function = (lambda x, w: checkpoint(module, x, w, use_reentrant=False) * 1.0) if checkpointed else lambda x, w: module(x, w)
    x, w = torch.randn(16, 64), torch.randn(64, 16, requires_grad=trained)
    ours, eager = compiled(function)(x, w), function(x, w)
    torch.testing.assert_close(ours.sqrt(), ours.sqrt().bfloat16().float(), rtol=0, atol=1e-6)
    torch.testing.assert_close(ours, eager, rtol=2**-6, atol=1e-6)
    if trained:  # 2 y, y rounded, times x: rounded once more
        slopes = [torch.autograd.grad(y.sum(), w)[0] for y in (ours, eager)]
        torch.testing.assert_close(*slopes, rtol=2**-6, atol=2**-3)


NUMBERS = {
    "layer_norm": lambda x: F.layer_norm(x, x.shape[-1:], eps=1e-5),
    "written layer_norm": lambda x: (x - x.mean(-1, keepdim=True)) / torch.sqrt(x.var(-1, keepdim=True, unbiased=False) + 1e-5),
    "rms_norm": lambda x: F.rms_norm(x, x.shape[-1:], eps=1e-6),
    "written rms_norm": lambda x: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6),
    "group_norm": lambda x: F.group_norm(x[:, :, None], 2, eps=1e-5),
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True, eps=1e-5),
    "batch_norm in use": lambda x: F.batch_norm(x, torch.full((8,), 0.1, dtype=x.dtype), torch.full((8,), 0.7, dtype=x.dtype), eps=1e-5),
    "leaky_relu": lambda x: F.leaky_relu(x, 0.01),
    "elu": lambda x: F.elu(x, 0.7),
    "softplus": lambda x: F.softplus(x, 0.3),
    "clamp": lambda x: x.clamp(-0.1, 0.3),
    "hardtanh": lambda x: F.hardtanh(x, -0.1, 0.3),
    "hardsigmoid": F.hardsigmoid,
    "hardswish": F.hardswish,
    "power": lambda x: x.abs().pow(2.2),
    "written gelu of eight digits": lambda x: 0.5 * x * (1 + torch.erf(x * 0.70710678)),
    "written tanh gelu of eight digits": lambda x: 0.5 * x * (1 + torch.tanh(0.79788456 * (x + 0.044715 * x**3))),
    "written silu": lambda x: x / (1 + torch.exp(-1.7 * x)),
}


# torch's own gradient multiplies by an f32 sixth, in f64 too.
EXACT = {"hardsigmoid": lambda x: (x + 3).clamp(0, 6) / 6}
WITHOUT_RULE = {"written layer_norm": "var", "written gelu of eight digits": "erf"}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_beside_f64_have_all_digits(name):
    """An epsilon or slope that went through f32 on its way would show as 1e-9 to 1e-13."""
    x = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    reports = []
    call = compiled(NUMBERS[name], options={"reports": reports})
    with torch.no_grad():
        torch.testing.assert_close(call(x), NUMBERS[name](x), rtol=2e-15, atol=2e-15)
    ours, eager = call(x), EXACT.get(name, NUMBERS[name])(x)
    torch.testing.assert_close(ours, eager, rtol=2e-15, atol=2e-15)
    slopes = [torch.autograd.grad(y, x, torch.cos(torch.arange(y.numel()).double()).reshape(y.shape))[0] for y in (ours, eager)]
    torch.testing.assert_close(*slopes, rtol=2e-14, atol=2e-14)
    for report in reports:
        assert report.share == 1 or WITHOUT_RULE[name] in report.summary(), report.summary()


@pytest.mark.parametrize("mode", ["none", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_gelu_of_infinities_is_what_torch_says_of_one_alone(dtype, mode):
    """Of several, torch's vectorised kernels for f32 and bf16 make NaN of inf, too."""
    x = torch.tensor([float("inf"), -float("inf"), float("nan")] * 8, dtype=dtype)
    alone = torch.cat([F.gelu(x[i:i + 1], approximate=mode) for i in range(len(x))])
    torch.testing.assert_close(compiled(lambda x: F.gelu(x, approximate=mode))(x), alone, equal_nan=True)


def test_the_profiler_shows_what_a_call_computes():
    call, x = compiled(lambda x: torch.i0(F.layer_norm(F.gelu(x), (8,))) * 2), torch.randn(4, 8)
    call(x)
    with torch.profiler.profile() as profile:
        call(x)
    names = [event.name for event in profile.events() if event.name.startswith("lamina_call")]
    assert len(names) == 2 and "GELU" in names[0] and "LayerNorm" in names[0] and "Multiply" in names[1], names


def test_sizes_are_told_once_and_kept_in_bounds(monkeypatch):
    backend = sys.modules["lamina.torch.backend"]  # the package has a function of the same name
    made = []
    whole = backend._compiled
    monkeypatch.setattr(backend, "KEPT_SIZES", 2)
    monkeypatch.setattr(backend, "_compiled", lambda *given: made.append(given[1]) or whole(*given))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        call = compiled(lambda x: torch.i0(F.gelu(x)), dynamic=True)
        for rows in (3, 4, 5, 5, 3):
            call(torch.randn(rows, 8))
    assert len(made) == 4 and len([w for w in told if w.category is lamina.torch.FallbackWarning]) == 1


@pytest.mark.parametrize("copied", [lambda x: x.clone(), lambda x: x[:, :-1].clone(), lambda x: (x * 2).clone(), lambda x: torch.i0(x).clone(),
                                    lambda x: x.expand(4, 8).clone(), lambda x: x.t().contiguous().t().contiguous(), lambda x: x.clone().reshape(8, 4).clone()])
def test_a_copy_that_torch_and_lamina_read(copied):
    """Each reads the copy; torch reads it before and after lamina."""
    def f(x):
        made = copied(x)
        return made, torch.i0(made), made + 1, torch.i0(made * 2 + torch.i0(made)), made[1:] * 3

    for x in (torch.rand(4, 8), torch.rand(1, 8).expand(4, 8)):
        for one, other in zip(compiled(f, options={"warn": False})(x), f(x), strict=True):
            assert one.stride() == other.stride()
            torch.testing.assert_close(one, other)


def test_more_parts_than_an_op_joins():
    parts = [torch.randn(2, 3) for _ in range(200)]
    made = compiled(lambda parts: torch.cat([p * 2 for p in parts], 1), options={"require": 1.0})(parts)
    assert torch.equal(made, torch.cat(parts, 1) * 2)


def test_integers_as_indices_in_a_graph_with_dynamic_sizes():
    reports = []
    call = compiled(lambda x, i: (x * 2)[i] + 1, dynamic=True, options={"reports": reports})
    for rows in (4, 5, 6):
        x, i = torch.randn(rows, 3), torch.randint(0, rows, (2 * rows,))
        torch.testing.assert_close(call(x, i), (x * 2)[i] + 1)
    assert reports and all(report.share == 1 for report in reports)
    masked = compiled(lambda x: (x * 2)[x > 0] + 1, dynamic=True, options={"warn": False})
    for rows in (4, 5):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(masked(x), (x * 2)[x > 0] + 1)
