"""Steps of optimizers under torch.compile, and other functions that write to their inputs: lamina computes the results in place."""
import pathlib
import re
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

import lamina.torch  # noqa: E402,F401

BENCHMARK = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "torch_optimizers.py"
sys.path.insert(0, str(BENCHMARK.parent))
from torch_optimizers import Lion  # noqa: E402

F32 = torch.finfo(torch.float32).eps  # powers of the number of steps have this error for any type of parameters
SHAPES = [(40, 80), (80,), (), (3, 1, 2), (7,)]
OPTIMIZERS = {
    "adamw": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=True),
    "adamw_amsgrad": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=True, amsgrad=True, maximize=True),
    "adam_with_decay": lambda ps: torch.optim.Adam(ps, lr=1e-2, foreach=True, weight_decay=0.1),
    "sgd": lambda ps: torch.optim.SGD(ps, lr=1e-2, foreach=True),
    "sgd_with_momentum": lambda ps: torch.optim.SGD(ps, lr=1e-2, momentum=0.9, nesterov=True, weight_decay=0.1, foreach=True),
    "lion": lambda ps: Lion(ps, lr=1e-2),
    "two_groups": lambda ps: torch.optim.AdamW([{"params": ps[:2], "lr": 1e-3}, {"params": ps[2:], "weight_decay": 0.0}], foreach=True),
    "rmsprop": lambda ps: torch.optim.RMSprop(ps, lr=1e-2, momentum=0.5, foreach=True),
    "adagrad": lambda ps: torch.optim.Adagrad(ps, lr=1e-2, foreach=True),
    "one_by_one": lambda ps: torch.optim.AdamW(ps, lr=1e-2, foreach=False),
}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


def after_steps(make, dtype, wide=False, **compiled):
    """Parameters and states after four steps with given gradients, and the parameters' addresses and versions before and after."""
    torch.manual_seed(0)
    params = [torch.nn.Parameter((torch.randn(shape).to(dtype)).to(torch.float64 if wide else dtype)) for shape in SHAPES]
    optimizer = make(params)
    step = torch.compile(optimizer.step, **compiled) if compiled else optimizer.step
    before = [(p.data_ptr(), p._version) for p in params]
    for _ in range(4):
        for p in params:
            p.grad = torch.randn(p.shape).to(dtype).to(p.dtype)
        step()
    states = [s for p in params for s in optimizer.state[p].values() if isinstance(s, torch.Tensor)]
    return [t.detach() for t in (*params, *states)], before, [(p.data_ptr(), p._version) for p in params]


@pytest.mark.parametrize("name, dtype", [*((name, torch.float32) for name in OPTIMIZERS), ("adamw", torch.float64), ("adamw", torch.bfloat16),
                                         ("sgd_with_momentum", torch.bfloat16), ("lion", torch.bfloat16)])
def test_steps(name, dtype):
    reports = []
    made, before, after = after_steps(OPTIMIZERS[name], dtype, backend="lamina", options={"reports": reports})
    assert reports and all(report.share == 1 for report in reports), [report.summary() for report in reports]
    assert [a[0] for a in after] == [b[0] for b in before] and all(a[1] > b[1] for a, b in zip(after, before))
    eager, exact = after_steps(OPTIMIZERS[name], dtype)[0], after_steps(OPTIMIZERS[name], dtype, wide=True)[0]
    for one, other, e in zip(made, eager, exact, strict=True):
        off, eagers = ((t.double() - e.double()).abs().max() for t in (one, other))
        assert off <= 4 * eagers + max(F32, torch.finfo(dtype).eps) * e.double().abs().max().clamp_min(1)


def test_one_kernel_changes_a_tensor():
    """A parameter and its states are read once and written once, in place."""
    reports, params = [], [torch.nn.Parameter(torch.randn(64, 64)) for _ in range(6)]
    for p in params:
        p.grad = torch.randn_like(p)
    torch.compile(torch.optim.AdamW(params, foreach=True).step, backend="lamina", options={"reports": reports})()
    large = [kernel for report in reports for kernels in report.kernels for kernel in kernels["kernels"] if kernels["moved_bytes"] >= 4 * 64 * 64]
    assert len(large) == len(params)
    assert sum(kernels["moved_bytes"] for kernels in reports[-1].kernels) < 1.1 * 7 * sum(4 * p.numel() for p in params)


# ---- what a function reads of its inputs before and after it writes to them

def swap(x, y):
    old = x.clone()
    x.copy_(y * 1)
    y.copy_(old * 1)


def use_old(x, y):
    made = x * 2
    x.add_(y)
    return made, x + 1


def transposed(x, y):
    x.add_(x.t().clone())
    return (y * 2,)


def shifted(x, y):
    x[1:] += x[:-1].clone()


def twice(x, y):
    x.mul_(2)
    y.add_(x)
    x.sub_(y)


def returned(x, y):
    return x.mul_(2), y.relu_().sum()


def left_to_torch(x, y):
    made = torch.i0(x)
    x.copy_(made + y)
    return torch.i0(x * 1) + made, made


def rows(x, y):
    x.copy_(torch.softmax(x, -1) @ y)


def cast(x, y):
    x.copy_((x.double() * 2).sum(0))


def index(x, y):
    x.index_copy_(0, torch.tensor([2, 0]), y[:2] * 2)


@pytest.mark.parametrize("function", [swap, use_old, transposed, shifted, twice, returned, left_to_torch, rows, cast, index])
def test_writes_to_inputs(function):
    compiled = torch.compile(function, backend="lamina", options={"warn": False})
    for shape, change in (((8, 8), lambda t: t), ((8, 8), lambda t: t.t()), ((8, 16), lambda t: t[:, ::2])):
        torch._dynamo.reset()
        given = [torch.randn(shape) for _ in range(2)]
        ours, eager = ([change(t.clone()) for t in given] for _ in range(2))
        made, wanted = compiled(*ours), function(*eager)
        for one, other in zip([*ours, *(made or ())], [*eager, *(wanted or ())], strict=True):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()
        assert all((a._version > 0) == (b._version > 0) for a, b in zip(ours, eager))


def test_running_statistics_of_training():
    model, x = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8)), torch.randn(4, 3, 9, 9)
    import copy

    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend="lamina")
    for _ in range(3):
        compiled(x).sum().backward()
        other(x).sum().backward()
    for one, two in zip(model.state_dict().values(), other.state_dict().values()):
        torch.testing.assert_close(one, two)


def test_a_step_in_16_bits_of_a_model_that_is_packed():
    """Packed weights are packed anew after a step that lamina computes in their memory."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
    forward = torch.compile(model, backend="lamina", options={"freeze": True})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    step, x = torch.compile(optimizer.step, backend="lamina"), torch.randn(300, 256)
    for _ in range(3):
        with torch.no_grad():
            torch.testing.assert_close(forward(x), model(x), rtol=1e-4, atol=1e-4)
        for p in model.parameters():
            p.grad = torch.randn_like(p)
        step()


def test_the_benchmark_runs():
    done = subprocess.run([sys.executable, BENCHMARK, "--smoke"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^  lamina .* of the bandwidth$", done.stdout, re.MULTILINE)) == 3, done.stdout
