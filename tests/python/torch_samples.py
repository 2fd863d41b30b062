"""Samples that torch has written for its own operations and modules, and how the answers to them are judged: what the tests on torch's
OpInfo and ModuleInfo share.

LAMINA_OPINFO_SAMPLES: how many samples of each operation or module (2), "all" for every one.
LAMINA_OPINFO_TYPES: names of KNOWN_TYPES, separated by commas, or "all". OpInfo's default is f32 and a draw of all types that torch lists
for the operation; ModuleInfo's is f32.
LAMINA_OPINFO_LAYOUTS: of LAYOUTS, separated by commas, or "all"; default plain and a draw of all.
LAMINA_OPINFO_OPS: "lamina", the operations that lamina has; "others", those that it leaves to torch or reaches through others; "all";
default: the first and a draw of the second.
LAMINA_OPINFO_SEED: of the draws (0). LAMINA_OPINFO_REPORT: a file that the counts are appended to."""
import copy
import os

import torch
from torch.utils._pytree import tree_leaves, tree_map

import lamina.torch as lt

COUNT = os.environ.get("LAMINA_OPINFO_SAMPLES", "2")
SEED = os.environ.get("LAMINA_OPINFO_SEED", "0")
REPORT = os.environ.get("LAMINA_OPINFO_REPORT")
KNOWN_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64, "s64": torch.int64, "s32": torch.int32,
               "s16": torch.int16, "s8": torch.int8, "u8": torch.uint8, "boolean": torch.bool, "c64": torch.complex64, "c128": torch.complex128}
LAYOUTS = ("plain", "channels_last", "expanded", "offset")
# Errors relative to the element, and to the largest element, in addition to eight times eager's error of the element and twice
# eager's largest error. In 64 bits, eager is the reference, so its rounding errors are included here.
ALLOWED = {torch.float32: (2e-6, 1e-6), torch.bfloat16: (2**-7, 2**-7), torch.float16: (2**-10, 2**-10), torch.float64: (1e-12, 1e-13)}
BY_EAGER = 32  # the factor if eager is the only reference, so its own error is unknown
WIDE = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64, torch.complex64: torch.complex128,
        torch.complex32: torch.complex128}


def named(variable, known):
    """The names that an environment variable lists; None where it is not set."""
    given = os.environ.get(variable)
    chosen = list(known) if given == "all" or (given is None and COUNT == "all") else given and given.split(",")
    for name in chosen or ():
        if name not in known:
            raise ValueError(f"{variable} names {name}, allowed are {', '.join(known)} and all")
    return chosen


TYPES = {name: KNOWN_TYPES[name] for name in named("LAMINA_OPINFO_TYPES", KNOWN_TYPES) or ["f32"]}


class Wrong(AssertionError):
    """An answer that is not eager's. kind: raises, structure, strides, values, or inputs (what is written to them)."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


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


# ---- arguments

def of_tensors(function, value):
    """`value` with each tensor in it replaced; tensors keep whether they want a gradient."""
    def one(leaf):
        if not isinstance(leaf, torch.Tensor):
            return leaf
        made = function(leaf.detach())
        return made.requires_grad_(leaf.requires_grad) if made.is_floating_point() or made.is_complex() else made

    return tree_map(one, value)


def copied(value):
    """With strides and offsets as they are."""
    return of_tensors(copy.deepcopy, value)


def double(value):
    widened = of_tensors(lambda t: t.to(WIDE.get(t.dtype, t.dtype)), value)
    return tree_map(lambda leaf: WIDE.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf, widened)


def _channels_last(tensor):
    """The second axis innermost in memory; of fewer than four axes, the last two change places."""
    if tensor.dim() in (4, 5):
        return tensor.contiguous(memory_format=torch.channels_last if tensor.dim() == 4 else torch.channels_last_3d)
    return tensor.mT.contiguous().mT if tensor.dim() in (2, 3) else tensor


def _expanded(tensor):
    """The first axis with several entries has a stride of 0."""
    axis = next((d for d, extent in enumerate(tensor.shape) if extent > 1), None)
    return tensor if axis is None else tensor.narrow(axis, 0, 1).clone().expand(tensor.shape)


def _offset(tensor):
    """In a larger tensor, behind its first element, with a gap behind each row."""
    around = tensor.new_zeros([8] if not tensor.dim() else [*tensor.shape[:-1], tensor.shape[-1] + 8])
    part = around[3] if not tensor.dim() else around[..., 3:-5]
    return part.copy_(tensor)


def laid_out(value, layout):
    """A copy of `value` whose tensors are in memory as `layout` says; None where that changes none of them."""
    change = {"plain": lambda t: t, "channels_last": _channels_last, "expanded": _expanded, "offset": _offset}[layout]
    dense = lambda t: isinstance(t, torch.Tensor) and t.layout is torch.strided and not t.is_nested
    made = of_tensors(lambda t: change(t) if dense(t) else copy.deepcopy(t), copied(value))
    before, after = ([(t.stride(), t.storage_offset()) for t in tree_leaves(v) if dense(t)] for v in (value, made))
    return None if layout != "plain" and before == after else made


# ---- answers

class Answer:
    """Of one call: outputs, gradients of all inputs and parameters that want one, and the inputs behind it."""

    def __init__(self, function, args, kwargs, parameters=()):
        outputs = [t for t in tree_leaves(function(*args, **kwargs)) if isinstance(t, torch.Tensor)]
        leaves = [t for t in [*tree_leaves((args, kwargs)), *parameters] if isinstance(t, torch.Tensor) and t.requires_grad]
        wanted = [o for o in outputs if o.requires_grad]
        grads = torch.autograd.grad(wanted, leaves, [slopes(o) for o in wanted], allow_unused=True) if wanted and leaves else []
        self.outputs, self.gradients = [t.detach() for t in outputs], [g for g in grads if g is not None]
        self.inputs = [t.detach() for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]


def slopes(output):
    """What the gradient of an output is: not the same everywhere, since many ops have no gradient of their sum."""
    return ((torch.arange(output.numel()) % 7 - 2) / 4).reshape(output.shape).to(output.dtype)


def two_calls(function, args, kwargs, layout="plain"):
    """Two calls under one seed, which draw the same or other numbers."""
    torch.manual_seed(0)
    return [Answer(function, *laid_out((args, kwargs), layout)) for _ in range(2)]


def outcome(function, args, kwargs, parameters=()):
    return Answer(function, args, kwargs, parameters)


def compiled(function, reports, fullgraph=True):
    """`function` through lamina; `reports` gets a report of each graph."""
    torch._dynamo.reset()
    torch.compiler.reset()
    return torch.compile(function, backend=lambda gm, inputs: lt.backend(gm, inputs, options={"reports": reports}), fullgraph=fullgraph)


# ---- the judge

def alike(one, other):
    """Whether two answers are the same numbers."""
    both = list(zip(one.outputs + one.gradients, other.outputs + other.gradients))
    return all(a.shape == b.shape and torch.equal(a.nan_to_num(7) if a.is_floating_point() else a, b.nan_to_num(7) if b.is_floating_point() else b)
               for a, b in both if a.layout is torch.strided)


def check(ours, eager, exact, sample):
    """Outputs have eager's shapes, types and strides; outputs and gradients are about as close to 64 bits as eager's; inputs are written to
    where eager writes."""
    if [len(ours.outputs), len(ours.gradients)] != [len(eager.outputs), len(eager.gradients)]:
        raise Wrong("structure", f"{len(ours.outputs)} outputs and {len(ours.gradients)} gradients, eager {len(eager.outputs)} and "
                                 f"{len(eager.gradients)}, {sample}")
    fits = exact is not None and [t.shape for t in exact.outputs + exact.gradients] == [t.shape for t in eager.outputs + eager.gradients]
    judge = exact if fits else eager
    slack = 1 if fits else BY_EAGER
    for a, b, e in zip(ours.outputs + ours.gradients, eager.outputs + eager.gradients, judge.outputs + judge.gradients):
        if a.shape != b.shape or a.dtype != b.dtype or a.layout != b.layout:
            raise Wrong("structure", f"{a.dtype}{list(a.shape)}, eager {b.dtype}{list(b.shape)}, {sample}")
        check_values("values", a, b, e, sample, slack)
    for a, b in zip(ours.outputs, eager.outputs):
        if a.layout is torch.strided and a.numel() and a.stride() != b.stride():
            raise Wrong("strides", f"{a.stride()}, eager {b.stride()}, {sample}")
    for a, b in zip(ours.inputs, eager.inputs):
        check_values("inputs", a, b, b, sample)


def check_values(kind, a, b, e, sample, slack=1):
    if a.layout is not torch.strided:
        a, b, e = (t.to_dense() if not t.is_nested else t.values() for t in (a, b, e))
    if not (a.is_floating_point() or a.is_complex()):
        if not torch.equal(a, b):
            raise Wrong(kind, f"{int((a != b).sum())} of {a.numel()} elements of {a.dtype} differ, {sample}")
        return
    relative, of_largest = ALLOWED.get(a.dtype.to_real(), (0.25, 0.25))  # 8-bit floats
    wide = torch.complex128 if a.is_complex() else torch.float64
    a, b, e = a.resolve_conj().to(wide), b.resolve_conj().to(wide), e.resolve_conj().to(wide)
    finite = torch.isfinite(e) & torch.isfinite(b)
    if not torch.equal(a[~torch.isfinite(e) & ~torch.isfinite(b)].isnan(), b[~torch.isfinite(e) & ~torch.isfinite(b)].isnan()) or \
            not torch.isfinite(a[finite]).all() or (torch.isfinite(a) & ~torch.isfinite(e) & ~torch.isfinite(b)).any():
        raise Wrong(kind, f"NaN or infinity elsewhere than eager, {sample}")
    if not finite.any():
        return
    off, largest = (a - e)[finite].abs(), e[finite].abs().max().clamp_min(1.0)
    eagers = (b - e)[finite].abs()
    allowed = 8 * eagers + 2 * eagers.max() + slack * (relative * e[finite].abs() + of_largest * largest)
    if not (off <= allowed).all():
        raise Wrong(kind, f"{(off > allowed).sum().item()} of {off.numel()} elements of {b.dtype} off by up to {off.max().item():.3g}, eager by "
                          f"{eagers.max().item():.3g}, {sample}")
