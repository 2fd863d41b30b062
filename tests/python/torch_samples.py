"""Somebody else's samples beside float64: what the tests on torch's OpInfo and ModuleInfo share.

LAMINA_OPINFO_SAMPLES: how many samples of each operation or module (2), "all" for every one.
LAMINA_OPINFO_TYPES: of f32, bf16, f64 (f32), separated by commas."""
import os

import torch

import lamina.torch as lt

COUNT = os.environ.get("LAMINA_OPINFO_SAMPLES", "2")
KNOWN_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}
TYPES = {name: KNOWN_TYPES[name] for name in os.environ.get("LAMINA_OPINFO_TYPES", "f32").split(",")}
# Relative to the element, and to the largest one: beside eight times eager's own error there, and twice its largest one. In float64 the
# judge is eager itself, so that its roundings are allowed for here.
ALLOWED = {torch.float32: (2e-6, 1e-6), torch.bfloat16: (2**-7, 2**-7), torch.float64: (1e-12, 1e-12)}


class Tally:
    """How many samples ran, how many lamina carried whole, and what it left to torch."""

    def __init__(self):
        self.samples, self.carried, self.left = 0, 0, {}

    def add(self, name, reports):
        self.samples += 1
        left = [node for report in reports for node in report.nodes if node.floating and not node.carried]
        self.carried += not left
        for node in left:
            self.left.setdefault(f"{name}: {node.op}: {node.reason}", 0)
            self.left[f"{name}: {node.op}: {node.reason}"] += 1

    def __str__(self):
        rows = (f"\n  {count} x {what}" for what, count in sorted(self.left.items(), key=lambda entry: -entry[1]))
        return f"{self.carried} of {self.samples} samples are carried whole{''.join(rows)}"


def some_of(samples):
    samples = list(samples)
    return samples if COUNT == "all" else samples[:: max(1, len(samples) // int(COUNT))][: int(COUNT)]


def floats(value):
    if isinstance(value, dict):
        value = list(value.values())
    values = value if isinstance(value, (tuple, list)) else [value]
    return [v for v in values if isinstance(v, torch.Tensor) and v.is_floating_point()]


def double(value):
    if isinstance(value, torch.Tensor):
        return value.detach().double().requires_grad_(value.requires_grad) if value.is_floating_point() else value
    if isinstance(value, (list, tuple)):
        return type(value)(double(v) for v in value)
    if isinstance(value, torch.dtype):
        return torch.float64 if value in (torch.float32, torch.bfloat16) else value
    return {k: double(v) for k, v in value.items()} if isinstance(value, dict) else value


def outcome(function, args, kwargs, parameters=()):
    """Outputs, and gradients of all floating inputs and parameters of the first output."""
    outputs = floats(function(*args, **kwargs))
    leaves = [t for a in (*args, kwargs) for t in floats(a) if t.requires_grad] + [p for p in parameters if p.requires_grad]
    wanted = [o for o in outputs[:1] if o.requires_grad]
    grads = torch.autograd.grad([o.sum() for o in wanted], leaves, allow_unused=True) if wanted and leaves else []
    return [t.detach() for t in outputs], [g for g in grads if g is not None]


def compiled(function, reports):
    """`function` through lamina; `reports` gets a report of each graph."""
    torch._dynamo.reset()
    torch.compiler.reset()
    return torch.compile(function, backend=lambda gm, inputs: lt.backend(gm, inputs, options={"reports": reports}), fullgraph=True)


def check(ours, eager, exact, dtype, sample):
    """Outputs have eager's shapes, types and strides; outputs and gradients are about as close to float64 as eager's."""
    assert [len(t) for t in ours] == [len(t) for t in eager]
    assert [t.stride() for t in ours[0] if t.numel()] == [t.stride() for t in eager[0] if t.numel()], sample
    relative, of_largest = ALLOWED[dtype]
    for a, b, e in zip(ours[0] + ours[1], eager[0] + eager[1], exact[0] + exact[1]):
        assert a.shape == b.shape and a.dtype == b.dtype, sample
        same = torch.isfinite(e) & torch.isfinite(b)
        if not same.any():
            continue
        off, largest = (a.double() - e)[same].abs(), e[same].abs().max().clamp_min(1.0)
        eagers = (b.double() - e)[same].abs()
        allowed = 8 * eagers + 2 * eagers.max() + relative * e[same].abs() + of_largest * largest
        assert (torch.isfinite(a) == torch.isfinite(b)).all(), sample
        assert (off <= allowed).all(), (sample, off.max().item())
