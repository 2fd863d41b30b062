#!/usr/bin/env python3
"""Runs whole models under torch.compile(backend="lamina"), compared with eager mode and inductor, on the CPU.

    torch_models.py [MODEL]... [--modes infer_f32,infer_bf16,infer_autocast,train_f32,train_autocast] [--small] [--large] [--inductor]
                    [--seconds S] [--rounds R] [--threads N] [--untimed | --only-times] [--left] [--no-dropout] [--json FILE]
    torch_models.py --table FILE...
    torch_models.py [MODEL]... --batches [--modes ...]

One row per model and mode:
  error      norm of the difference from the same model in float64 over the norm of that, of the output or of all gradients; then
             the same for eager ("-": torch does not have an op of the model in float64), and the difference of lamina from eager;
             the dropout of all three draws the same numbers
  carried    the fraction of the nodes with floats that lamina computes
  calls      into lamina, one number per graph; in training forward + backward
  breaks     graph breaks, in addition to those of any backend
  trace, compile    seconds of the first call: torch's part, including one call of the model, and lamina's part; with --inductor
                    also inductor's
  eager, lamina, inductor    milliseconds per call; in turns, S seconds each, R rounds, medians of the rounds' medians
  ratio      eager over lamina, and inductor over lamina; in f32 inference then the same for eager whose nn.Linear call oneDNN, as far
             as it is not slower: on AMD, MKL multiplies f32 at half of the peak
  bound      the least time that the machine needs (torch_bounds.py: peak and bandwidth measured at the start) over lamina's time

The last lines are geometric means and least ratios for each mode, of eager and of the better of eager and inductor.

Needs the package lamina, torch, and transformers, timm, diffusers for their models. Models of missing packages are reported and
skipped. --small uses sizes that show the graphs but not the speed. --large runs models of full depth (torch_large_models.py) in their
modes. --table prints the means and the rows of the files that --json wrote as tables of Markdown. --left prints the nodes left to PyTorch, and why.
--only-times omits the errors and the graph breaks.

--batches calls a model with ten batch sizes, 2 to 11, without marking dims as dynamic. It prints how often the model was traced
again, the same for a backend that only runs the graph, and lamina's seconds for the first size and for the nine others. Sizes are
small.
"""
import argparse
import contextlib
import copy
import gc
import json
import logging
import math
import statistics
import sys
import time
import warnings

import torch

import lamina.torch
import torch_bounds
from torch_large_models import LARGE
from torch_model_list import MODELS, PARTS, first_tensor, loss_of, model_of
from torch_models_table import means, table

# names in torch's compile-time metrics
INDUCTORS_COMPILERS = ("compile_fx.<locals>.fw_compiler_base", "compile_fx.<locals>.bw_compiler")
BATCHES = range(2, 12)
MODES = ("infer_f32", "infer_bf16", "infer_autocast", "train_f32", "train_autocast")


class Case:
    """A model in a mode, with its arguments."""

    def __init__(self, name, mode, small, dropout):
        self.training, self.autocast = mode.startswith("train"), mode.endswith("autocast")
        function = LARGE[name][0] if name in LARGE else {**PARTS, **MODELS}[name]
        self.module, self.args, self.kwargs = model_of(function, small, self.training)
        self.is_part, self.slope = name in PARTS, None
        if not dropout:
            for part in self.module.modules():
                if isinstance(part, torch.nn.Dropout):
                    part.p = 0.0
        if mode.endswith("bf16"):
            self.change_type(torch.bfloat16)

    def change_type(self, dtype):
        to = lambda v: v.detach().to(dtype).requires_grad_(v.requires_grad) if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        self.module = self.module.to(dtype)
        self.args, self.kwargs = tuple(map(to, self.args)), {k: to(v) for k, v in self.kwargs.items()}

    def widened(self):
        wide = copy.copy(self)
        wide.module, wide.autocast = copy.deepcopy(self.module), False
        wide.change_type(torch.float64)
        return wide

    def run(self, function):
        """One inference, or one training step without the optimizer (for a part: with a given gradient). Returns the compared tensors."""
        with contextlib.ExitStack() as stack:
            if not self.training:
                stack.enter_context(torch.no_grad())
            if self.autocast:
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            result = function(*self.args, **self.kwargs)
            if not self.training:
                return [first_tensor(result)]
            loss = result if self.is_part else loss_of(result)
        if self.is_part and (self.slope is None or self.slope.dtype != loss.dtype):
            self.slope = torch.linspace(-1, 1, loss.numel()).reshape(loss.shape).to(loss.dtype)
        leaves = [t for t in (*self.module.parameters(), *self.args) if isinstance(t, torch.Tensor) and t.requires_grad]
        for leaf in leaves:
            leaf.grad = None
        loss.backward(self.slope)
        return [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in leaves]  # a compiled model returns zeros instead of None

    def result(self, function):
        torch.manual_seed(1)
        statistics_before = copy.deepcopy(dict(self.module.named_buffers()))
        made = [t.detach().clone() for t in self.run(function)]
        for name, value in self.module.named_buffers():  # running statistics: each run starts with the same ones
            value.copy_(statistics_before[name])
        return made


def apart(made, exact):
    """The norm of the difference over the norm of the exact values, over all elements of all tensors."""
    square = lambda t: t.double().square().sum().item()
    return math.sqrt(sum(square(a.double() - e) for a, e in zip(made, exact)) / sum(map(square, exact)))


def first_call(case, backend, options=None):
    torch._dynamo.reset()
    function = torch.compile(case.module, backend=backend, options=options)
    begin = time.perf_counter()
    case.run(function)
    return function, time.perf_counter() - begin


def graph_breaks(case, backend, options=None):
    """(graph breaks, the compiled function, seconds of its first call)."""
    breaks = torch._dynamo.utils.counters["graph_break"]
    breaks.clear()
    function, first = first_call(case, backend, options)
    return sum(breaks.values()), function, first


def inductor_of(case):
    """(the model compiled by inductor, seconds in its compilers)."""
    clock = torch._dynamo.utils.compilation_time_metrics
    clock.clear()
    function = torch.compile(copy_of_calls(case.module), backend="inductor")
    case.run(function)
    return function, sum(sum(seconds) for name, seconds in clock.items() if name in INDUCTORS_COMPILERS)


def in_turns(case, functions, seconds, rounds):
    """{name: milliseconds per call}."""
    medians = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            case.run(function)
            times, end = [], time.perf_counter() + seconds
            while not times or time.perf_counter() < end:
                begin = time.perf_counter()
                case.run(function)
                times.append(time.perf_counter() - begin)
            medians[name].append(statistics.median(times))
    return {name: statistics.median(values) * 1e3 for name, values in medians.items()}


def errors(case, function):
    """The differences of lamina's and eager's results from float64's, and from each other."""
    ours, eager, wide = case.result(function), case.result(case.module), case.widened()
    found = {"error": None, "eager_error": None, "beside_eager": apart(ours, [t.double() for t in eager])}
    with contextlib.suppress(RuntimeError):  # the model uses an op that torch does not have in float64; or it is NaN there
        exact = wide.result(wide.module)
        if all(t.isfinite().all() for t in exact):
            found.update(error=apart(ours, exact), eager_error=apart(eager, exact))
    return found


def with_onednn(module):
    """A copy of a model for inference whose linear layers call oneDNN with packed weights, or None if it has none."""
    made, found = copy.deepcopy(module), False
    for part in made.modules():
        if type(part) is torch.nn.Linear:
            packed, bias = torch.ops.mkldnn._reorder_linear_weight(part.weight.detach().contiguous(), None), part.bias
            part.forward = lambda x, packed=packed, bias=bias: torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")
            found = True
    return made if found else None


def measured(name, mode, chosen):
    case = Case(name, mode, chosen.small, not chosen.no_dropout)
    row = {"model": name, "mode": mode}
    anyones = 0 if chosen.only_times else graph_breaks(case, "eager")[0]
    reports = []
    breaks, function, first = graph_breaks(case, "lamina", {"reports": reports})
    row["compile"] = sum(report.seconds for report in reports)
    row["trace"], row["breaks"] = first - row["compile"], breaks - anyones
    floating = [node for report in reports for node in report.nodes if node.floating]
    row["carried"] = sum(node.carried for node in floating) / max(1, len(floating))
    row["calls"] = "+".join(str(report.calls) for report in reports)
    row["left"] = sorted({(f"{report.name}: {node.op}", node.reason, node.floating) for report in reports for node in report.left()})
    if not chosen.only_times:
        row.update(errors(case, function))
    functions = {"eager": case.module, "lamina": function}
    if chosen.inductor:
        functions["inductor"], row["inductor_compile"] = inductor_of(case)
    if mode == "infer_f32" and not chosen.untimed and (packed := with_onednn(case.module)) is not None:
        functions["eager_onednn"] = packed
    if not chosen.untimed:
        row["bound"] = torch_bounds.bound(case, mode, chosen.limits)
        row["ms"] = in_turns(case, functions, chosen.seconds, chosen.rounds)
    return row


def copy_of_calls(module):
    """The same module under another code object, so that two backends do not share torch's cache of frames."""
    return lambda *args, **kwargs: module(*args, **kwargs)


def of_batch(value, size):
    """Repeats the rows until there are `size`."""
    return value.repeat(-(-size // value.shape[0]), *[1] * (value.dim() - 1))[:size] if isinstance(value, torch.Tensor) else value


def batches(name, mode, chosen):
    """Counts how often a model is traced for ten batch sizes."""
    row = {"model": name, "mode": mode}
    for backend in ("eager", "lamina"):
        case = Case(name, mode, True, not chosen.no_dropout)
        given, named, reports, seconds = case.args, case.kwargs, [], []
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        function = torch.compile(case.module, backend=backend, options={"reports": reports} if backend == "lamina" else None)
        graphs = []
        for size in BATCHES:
            case.args, case.kwargs = tuple(of_batch(v, size) for v in given), {k: of_batch(v, size) for k, v in named.items()}
            case.run(function)
            graphs.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
            seconds.append(sum(report.seconds for report in reports))
        row[backend] = (graphs[-1] - graphs[0]) / graphs[0]
    row["first"], row["others"] = seconds[0], seconds[-1] - seconds[0]
    row["apart"] = apart(case.result(function), [t.double() for t in case.result(case.module)])
    return row


BATCH_FORM = "{:16} {:14} {:>10} {:>10} {:>10} {:>10} {:>10}"
BATCH_HEAD = ("model", "mode", "recompiles", "anyone's", "first s", "others s", "to eager")


def batch_line(row):
    return BATCH_FORM.format(row["model"], row["mode"], f"{row['lamina']:g}", f"{row['eager']:g}", f"{row['first']:.2f}", f"{row['others']:.2f}",
                             f"{row['apart']:.1e}")


HEAD = ("model", "mode", "error", "eager's", "to eager", "carried", "calls", "breaks", "trace", "compile", "eager", "lamina", "inductor", "ratio", "bound")
FORM = "{:16} {:14} {:>8} {:>8} {:>8} {:>7} {:>9} {:>6} {:>6} {:>9} {:>8} {:>8} {:>8} {:>14} {:>6}"


def compiling(row):
    theirs = row.get("inductor_compile")
    return f"{row['compile']:.2f}" + ("" if theirs is None else f"/{theirs:.1f}")


def line(row):
    ms = row.get("ms", {})
    number = lambda value, form: "-" if value is None else format(value, form)
    ratios = " ".join(f"{ms[other] / ms['lamina']:.2f}" for other in ("eager", "inductor", "eager_onednn") if other in ms)
    return FORM.format(row["model"], row["mode"], *(number(row.get(what), ".1e") for what in ("error", "eager_error", "beside_eager")),
                       f"{row['carried']:.2%}"[:7], row["calls"], row["breaks"], f"{row['trace']:.1f}", compiling(row),
                       *(number(ms.get(who), ".2f") for who in ("eager", "lamina", "inductor")), ratios or "-",
                       f"{row['bound']['ms'] / ms['lamina']:.0%}" if ms else "-")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"among {' '.join(MODELS)}, all of them where none is given; or parts without products: {' '.join(PARTS)}")
    parser.add_argument("--modes", help="infer_f32,train_f32 where none is given")
    for flag in ("small", "inductor", "untimed", "only-times", "left", "no-dropout", "batches", "large"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    parser.add_argument("--table", nargs="+", metavar="FILE")
    chosen = parser.parse_args()
    modes = chosen.modes.split(",") if chosen.modes else []
    for given, known, what in ((chosen.models, {**MODELS, **PARTS, **LARGE}, "model"), (modes, MODES, "mode")):
        for one in given:
            if one not in known:
                parser.error(f"{what} {one!r} is unknown, allowed is one of {', '.join(known)}")
    names = chosen.models or (LARGE if chosen.large else MODELS)
    chosen.cases = [(name, mode) for name in names for mode in modes or (LARGE[name][1] if name in LARGE else ("infer_f32", "train_f32"))]
    return chosen


def main():
    chosen = arguments()
    if chosen.table:
        print(table([row for path in chosen.table for row in json.load(open(path, encoding="utf-8"))]))
        return
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(chosen.threads)
    measure, shown, head = (batches, batch_line, BATCH_FORM.format(*BATCH_HEAD)) if chosen.batches else (measured, line, FORM.format(*HEAD))
    if not chosen.batches and not chosen.untimed:
        chosen.limits = torch_bounds.machine()
        print("{threads} threads, reads {read_gb_per_s:.1f} GB/s, {gflops:.0f} GFLOP/s in f32".format(**chosen.limits), flush=True)
    print(head, flush=True)
    rows, failed = [], 0
    for name, mode in chosen.cases:
        try:
            row = measure(name, mode, chosen)
        except ImportError as missing:
            print(f"{name}: left out, {missing}", flush=True)
            continue
        except Exception as error:
            failed += 1
            print(f"{name} {mode}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            continue
        rows.append(row)
        print(shown(row), flush=True)
        for op, reason, floating in row.get("left", ()) if chosen.left else ():
            print(f"    {'*' if floating else ' '} {op}: {reason}", flush=True)
        gc.collect()
    for text in means(rows):
        print(text)
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
