"""Linear recurrences, as models write them: one op forward and one backward, with the values of float64."""
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")
from torch._higher_order_ops.associative_scan import associative_scan  # noqa: E402

import lamina  # noqa: E402,F401
import lamina.torch as lt  # noqa: E402

OP = torch.ops.lamina.linear_recurrence


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def by_scan(factors, src, dim, reverse=False):
    join = lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1])
    return associative_scan(join, (factors, src), dim=dim, reverse=reverse, combine_mode="generic")[1]


def ops_of(function, *inputs):
    return [node.op for graph in lt.explain(function, *inputs).graphs for node in graph.nodes]


def compared(function, oracle, *inputs, bound=1e-5):
    """The values and gradients of the compiled function are those of the oracle in float64."""
    given = [x.clone().requires_grad_() for x in inputs]
    made = torch.compile(function, backend="lamina")(*given)
    slope = torch.randn_like(made)
    made.backward(slope)
    exact = [x.double().requires_grad_() for x in inputs]
    right = oracle(*exact)
    right.backward(slope.double())
    assert made.dtype == inputs[0].dtype
    torch.testing.assert_close(made.double(), right, rtol=bound, atol=bound)
    for one, other in zip(given, exact):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=bound, atol=bound)


def in_order(factors, src, dim):
    states, state = [], torch.zeros_like(src.select(dim, 0))
    for i in range(src.shape[dim]):
        state = factors.select(dim, i) * state + src.select(dim, i)
        states.append(state)
    return torch.stack(states, dim)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 13, 32])
def test_an_associative_scan_is_one_op_forward_and_backward(count):
    factors, src = torch.rand(2, count, 3, 4), torch.randn(2, count, 3, 4)
    ops = ops_of(lambda a, b: by_scan(a, b, 1), factors.requires_grad_(), src.requires_grad_())
    assert ops.count("lamina.linear_recurrence.default") == 1 and ops.count("lamina.linear_recurrence_backward.default") == 1
    assert not any("mul" in op or "add" in op or "cat" in op for op in ops), ops
    compared(lambda a, b: by_scan(a, b, 1), lambda a, b: in_order(a, b, 1), factors.detach(), src.detach())


@pytest.mark.parametrize("dim", [0, 2, -1])
def test_a_scan_along_any_axis(dim):
    compared(lambda a, b: by_scan(a, b, dim), lambda a, b: in_order(a, b, dim), torch.rand(7, 5, 6), torch.randn(7, 5, 6))


def test_a_scan_from_the_end():
    reversed_order = lambda a, b: in_order(a.flip(1), b.flip(1), 1).flip(1)
    compared(lambda a, b: by_scan(a, b, 1, reverse=True), reversed_order, torch.rand(3, 9), torch.randn(3, 9))


def test_two_scans_in_a_graph():
    def both(a, b, c):
        return by_scan(a.sigmoid(), b, 1) + by_scan(a.exp().sigmoid(), by_scan(a.sigmoid(), c, 1), 1)

    inputs = [torch.randn(2, 6, 3) for _ in range(3)]
    assert ops_of(both, *inputs).count("lamina.linear_recurrence.default") == 3
    exact = lambda a, b, c: in_order(a.sigmoid(), b, 1) + in_order(a.exp().sigmoid(), in_order(a.sigmoid(), c, 1), 1)
    compared(both, exact, *inputs)


def test_another_scan_stays_as_it_is():
    join = lambda left, right: (left[0] * right[0], right[0] * left[1] - right[1])
    other = lambda a, b: associative_scan(join, (a, b), dim=1, combine_mode="generic")[1]
    a, b = torch.rand(2, 6), torch.rand(2, 6)
    assert not any("recurrence" in op for op in ops_of(other, a, b))
    torch.testing.assert_close(torch.compile(other, backend="lamina")(a, b), other(a, b))


def test_the_other_results_of_a_scan_are_kept():
    join = lambda left, right: (left[0] * right[0], right[0] * left[1] + right[1])
    both = lambda a, b: associative_scan(join, (a, b), dim=1, combine_mode="generic")
    a, b = torch.rand(2, 6), torch.rand(2, 6)
    for made, eager in zip(torch.compile(both, backend="lamina")(a, b), both(a, b)):
        torch.testing.assert_close(made, eager)


def by_loop(factors, src, c):
    """As Mamba has it: [batch, channels, time, states], and c [batch, time, states]."""
    state, results = torch.zeros(src.shape[0], src.shape[1], src.shape[3], dtype=src.dtype), []
    for i in range(src.shape[2]):
        state = factors[:, :, i] * state + src[:, :, i]
        results.append(torch.matmul(state.to(c.dtype), c[:, i, :].unsqueeze(-1))[:, :, 0])
    return torch.stack(results, dim=-1)


def test_a_loop_is_one_op_and_what_follows_is_computed_at_once():
    inputs = [torch.rand(2, 3, 5, 4), torch.randn(2, 3, 5, 4), torch.randn(2, 5, 4)]
    ops = ops_of(by_loop, *[x.requires_grad_() for x in inputs])
    assert ops.count("lamina.linear_recurrence.default") == 1 and ops.count("lamina.linear_recurrence_backward.default") == 1
    assert sum("mm" in op for op in ops) <= 3 and not any("add" in op or "stack" in op or "cat" in op for op in ops), ops
    compared(by_loop, by_loop, *[x.detach() for x in inputs])


@pytest.mark.parametrize("result", [
    lambda state, x, i: torch.nn.functional.dropout(state, 0.5, True), lambda state, x, i: torch.relu(x), lambda state, x, i: state * state.sum().item()])
def test_what_cannot_be_computed_at_once_is_computed_pass_by_pass(result):
    def loop(a, b):
        state, results = torch.zeros_like(b[0]), []
        for i in range(b.shape[0]):
            state = a[i] * state + b[i]
            results.append(result(state, a[0], i))
        return torch.stack(results) * state

    inputs = torch.rand(5, 30), torch.randn(5, 30)
    torch.manual_seed(3)
    wanted = loop(*inputs)
    torch.manual_seed(3)
    torch.testing.assert_close(torch.compile(loop, backend="lamina")(*inputs), wanted, rtol=1e-5, atol=1e-5)


def loop_of(step):
    """A loop over the first axis of a and b from zeros, and its states."""
    def loop(a, b):
        state, states = torch.zeros_like(b[0]), []
        for i in range(b.shape[0]):
            state = step(a, b, state, i)
            states.append(state)
        return torch.stack(states)

    return loop


@pytest.mark.parametrize("step", [
    lambda a, b, s, i: a[i] * s + b[i], lambda a, b, s, i: b[i] + s * a[i], lambda a, b, s, i: torch.add(torch.mul(s, a.select(0, i)), b[i])])
def test_a_loop_in_any_spelling(step):
    inputs = torch.rand(5, 3), torch.randn(5, 3)
    assert ops_of(loop_of(step), *inputs).count("lamina.linear_recurrence.default") == 1
    compared(loop_of(step), loop_of(step), *inputs)


@pytest.mark.parametrize("step", [
    lambda a, b, s, i: a[i] * s - b[i], lambda a, b, s, i: a[0] * s + b[i], lambda a, b, s, i: a[i] * s + b[4 - i],
    lambda a, b, s, i: a[i] * s + b[i] if i != 3 else a[i] * (s + 1) + b[i]])
def test_what_only_looks_like_a_recurrence_stays_as_it_is(step):
    inputs = torch.rand(5, 3), torch.randn(5, 3)
    assert not any("recurrence" in op for op in ops_of(loop_of(step), *inputs))
    compared(loop_of(step), loop_of(step), *inputs)


@pytest.mark.parametrize("shape, dtype", [((2, 3), torch.float32), ((3,), torch.float64)])
def test_a_state_that_is_wider_than_the_elements_stays_as_it_is(shape, dtype):
    def loop(a, b):
        state = torch.zeros(shape, dtype=dtype)
        for i in range(b.shape[0]):
            state = a[i] * state + b[i]
        return state

    a, b = torch.rand(5, 3), torch.randn(5, 3)
    made = torch.compile(loop, backend="lamina")(a, b)
    assert made.shape == shape and made.dtype == dtype
    torch.testing.assert_close(made, loop(a, b), rtol=1e-5, atol=1e-5)


def test_a_loop_that_does_not_begin_at_zero_stays_as_it_is():
    def loop(a, b, state):
        for i in range(b.shape[0]):
            state = a[i] * state + b[i]
        return state

    inputs = torch.rand(5, 3), torch.randn(5, 3), torch.randn(3)
    assert not any("recurrence" in op for op in ops_of(loop, *inputs))
    compared(loop, loop, *inputs)


@pytest.mark.parametrize("reverse", [False, True])
def test_the_op_is_what_torch_expects_of_ops(reverse):
    factors, src = torch.rand(3, 5, 2, requires_grad=True), torch.randn(3, 5, 2, requires_grad=True)
    assert set(torch.library.opcheck(OP.default, (factors, src, 1, reverse)).values()) == {"SUCCESS"}
    wide = [x.detach().double().requires_grad_() for x in (factors, src)]
    assert torch.autograd.gradcheck(lambda a, b: OP(a, b, 1, reverse), wide)


@pytest.mark.parametrize("dtype, bound", [(torch.float32, 1e-5), (torch.float64, 1e-12), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)])
@pytest.mark.parametrize("reverse", [False, True])
def test_lamina_runs_the_op_for_every_float(dtype, bound, reverse):
    factors, src = torch.rand(4, 6, 20).to(dtype), torch.randn(4, 6, 20).to(dtype)
    function = lambda a, b: OP(a, b, 1, reverse)
    assert lt.explain(function, factors, src).graphs[0].share == 1
    compared(function, function, factors, src, bound=bound)
