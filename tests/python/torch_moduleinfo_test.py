"""torch's ModuleInfo for the modules that lamina has ops for, forward and gradient, each beside float64 (torch_samples.py)."""
import copy

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: scripts/setup --torch")

from torch_samples import TYPES, Tally, check, compiled, double, outcome, some_of  # noqa: E402

try:
    from torch.testing._internal.common_modules import module_db
except Exception as error:  # torch's test utilities need packages that torch does not require
    pytest.skip(f"torch's ModuleInfo cannot be imported: {error}", allow_module_level=True)

NAMES = """LayerNorm RMSNorm GroupNorm BatchNorm1d BatchNorm2d BatchNorm3d InstanceNorm1d InstanceNorm2d Softmax LogSoftmax Softmin GELU SiLU Mish
Linear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool2d AvgPool2d ReLU ReLU6 Sigmoid Tanh Hardswish Hardsigmoid
Hardtanh ELU LeakyReLU PReLU Softplus Embedding TransformerEncoderLayer MultiheadAttention CrossEntropyLoss NLLLoss MSELoss L1Loss""".split()
MODULES = [info for info in module_db if info.module_cls.__name__ in NAMES]
tally = Tally()


def cases_of(info, dtype, training):
    """(module, args, kwargs): the module as it is before its first call."""
    inputs = info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training)
    for given in some_of(inputs):
        if given.forward_input is None:
            continue
        torch.manual_seed(0)
        module = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).to(dtype).train(training)
        if any(getattr(part, "dropout", 0) or (isinstance(part, torch.nn.Dropout) and part.p) for part in module.modules()) and training:
            continue  # random numbers may differ in float64
        if getattr(module, "momentum", 0) is None and training:
            continue  # a running mean over all batches has a factor that torch does not trace
        yield module, given.forward_input.args, given.forward_input.kwargs


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("info", MODULES, ids=[info.name for info in MODULES])
def test_modules(info, dtype, training):
    for module, args, kwargs in cases_of(info, TYPES[dtype], training):
        reports, ours_of, wide = [], copy.deepcopy(module), copy.deepcopy(module).double()
        eager = outcome(module, args, kwargs, list(module.parameters()))
        exact = outcome(wide, double(args), double(kwargs), list(wide.parameters()))
        ours = outcome(compiled(ours_of, reports), args, kwargs, list(ours_of.parameters()))
        assert reports, "the backend was not called"
        check(ours, eager, exact, (module, args, kwargs))
        for mine, theirs in zip(ours_of.buffers(), module.buffers()):  # running statistics
            torch.testing.assert_close(mine, theirs, atol=1e-2 if dtype == "bf16" else 1e-6, rtol=1e-2 if dtype == "bf16" else 1e-5)
        if info.name not in ("nn.NLLLoss", "nn.CrossEntropyLoss"):  # torch checks the targets itself
            tally.add(info.name, reports)


def test_modules_are_carried():
    print(tally)
    if "f64" in TYPES or tally.samples < 20:
        pytest.skip("too few modules, or float64: no share is asked for")
    assert tally.carried >= 0.95 * tally.samples, str(tally)
