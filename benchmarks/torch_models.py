#!/usr/bin/env python3
"""Whole models under torch.compile(backend="lamina"), beside eager mode and inductor, on the CPU.

    torch_models.py [MODEL]... [--modes infer_f32,infer_bf16,infer_autocast,train_f32,train_autocast] [--small] [--inductor]
                    [--seconds S] [--rounds R] [--threads N] [--untimed] [--left] [--no-dropout] [--json FILE]

A row a model and mode:
  error      norm of the difference from the same model in float64 over the norm of that, of the output or of all gradients; beside
             it eager's own ("-": torch has an op of the model not in float64), and the difference of lamina from eager; the
             dropout of all three draws the same numbers
  carried    of the nodes that compute floats, those that lamina computes
  calls      into lamina, one number a graph; in training forward + backward
  breaks     graph breaks
  trace, compile    seconds of the first call: torch's part, with one call of the model, and lamina's part
  eager, lamina, inductor    milliseconds a call; in turns, S seconds each, R rounds, medians of the rounds' medians
  ratio      eager over lamina, and inductor over lamina

Needs the package lamina, torch, and transformers, timm, diffusers for their models; what is not installed is left out and said.
--small takes sizes that show the graphs and say nothing about speed. --left prints what is left to PyTorch, and why.
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
from torch_model_list import MODELS, first_tensor, loss_of, model_of

MODES = ("infer_f32", "infer_bf16", "infer_autocast", "train_f32", "train_autocast")


class Case:
    """A model in a mode: how it is called."""

    def __init__(self, name, mode, small, dropout):
        self.training, self.autocast = mode.startswith("train"), mode.endswith("autocast")
        self.module, self.args, self.kwargs = model_of(name, small, self.training)
        if not dropout:
            for part in self.module.modules():
                if isinstance(part, torch.nn.Dropout):
                    part.p = 0.0
        if mode.endswith("bf16"):
            self.change_type(torch.bfloat16)

    def change_type(self, dtype):
        to = lambda v: v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v
        self.module = self.module.to(dtype)
        self.args, self.kwargs = tuple(map(to, self.args)), {k: to(v) for k, v in self.kwargs.items()}

    def widened(self):
        wide = copy.copy(self)
        wide.module, wide.autocast = copy.deepcopy(self.module), False
        wide.change_type(torch.float64)
        return wide

    def run(self, function):
        """One inference, or one step of training without the optimizer; what it is judged by."""
        with contextlib.ExitStack() as stack:
            if not self.training:
                stack.enter_context(torch.no_grad())
            if self.autocast:
                stack.enter_context(torch.autocast("cpu", torch.bfloat16))
            result = function(*self.args, **self.kwargs)
            if not self.training:
                return [first_tensor(result)]
            loss = loss_of(result)
        for parameter in self.module.parameters():
            parameter.grad = None
        loss.backward()
        return [p.grad for p in self.module.parameters() if p.grad is not None]

    def result(self, function):
        torch.manual_seed(1)
        statistics_before = copy.deepcopy(dict(self.module.named_buffers()))
        made = [t.detach().clone() for t in self.run(function)]
        for name, value in self.module.named_buffers():  # running statistics: each run begins with the same
            value.copy_(statistics_before[name])
        return made


def apart(made, exact):
    """The norm of the difference over the norm of what is exact, of all elements of all tensors together."""
    square = lambda t: t.double().square().sum().item()
    return math.sqrt(sum(square(a.double() - e) for a, e in zip(made, exact)) / sum(map(square, exact)))


def first_call(case, backend, options=None):
    torch._dynamo.reset()
    function = torch.compile(case.module, backend=backend, options=options)
    begin = time.perf_counter()
    case.run(function)
    return function, time.perf_counter() - begin


def in_turns(case, functions, seconds, rounds):
    """{name: milliseconds a call}."""
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


def measured(name, mode, chosen):
    case = Case(name, mode, chosen.small, not chosen.no_dropout)
    row = {"model": name, "mode": mode}
    torch._dynamo.utils.counters["graph_break"].clear()
    reports = []
    function, first = first_call(case, "lamina", {"reports": reports})
    row["compile"] = sum(report.seconds for report in reports)
    row["trace"] = first - row["compile"]
    row["breaks"] = sum(torch._dynamo.utils.counters["graph_break"].values())
    floating = [node for report in reports for node in report.nodes if node.floating]
    row["carried"] = sum(node.carried for node in floating) / max(1, len(floating))
    row["calls"] = "+".join(str(report.calls) for report in reports)
    row["left"] = sorted({(f"{report.name}: {node.op}", node.reason, node.floating) for report in reports for node in report.left()})
    ours, eager, wide = case.result(function), case.result(case.module), case.widened()
    try:
        exact = wide.result(wide.module)
        row["error"], row["eager_error"] = apart(ours, exact), apart(eager, exact)
    except RuntimeError:  # a model that uses ops which torch does not have in float64
        row["error"] = row["eager_error"] = None
    row["beside_eager"] = apart(ours, [t.double() for t in eager])
    if not chosen.untimed:
        functions = {"eager": case.module, "lamina": function}
        if chosen.inductor:
            functions["inductor"] = torch.compile(copy_of_calls(case.module), backend="inductor")
        row["ms"] = in_turns(case, functions, chosen.seconds, chosen.rounds)
    return row


def copy_of_calls(module):
    """The same module under another code object, so that two backends do not share torch's cache of frames."""
    return lambda *args, **kwargs: module(*args, **kwargs)


HEAD = ("model", "mode", "error", "eager's", "to eager", "carried", "calls", "breaks", "trace", "compile", "eager", "lamina", "inductor", "ratio")
FORM = "{:16} {:14} {:>8} {:>8} {:>8} {:>7} {:>9} {:>6} {:>6} {:>7} {:>8} {:>8} {:>8} {:>11}"


def line(row):
    ms = row.get("ms", {})
    number = lambda value, form: "-" if value is None else format(value, form)
    ratios = " ".join(f"{ms[other] / ms['lamina']:.2f}" for other in ("eager", "inductor") if other in ms)
    return FORM.format(row["model"], row["mode"], number(row["error"], ".1e"), number(row["eager_error"], ".1e"), f"{row['beside_eager']:.1e}",
                       f"{row['carried']:.2%}"[:7], row["calls"], row["breaks"], f"{row['trace']:.1f}", f"{row['compile']:.2f}",
                       *(number(ms.get(who), ".2f") for who in ("eager", "lamina", "inductor")), ratios or "-")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"among {' '.join(MODELS)}; all of them where none is given")
    parser.add_argument("--modes", default="infer_f32,train_f32")
    for flag in ("small", "inductor", "untimed", "left", "no-dropout"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json")
    chosen = parser.parse_args()
    for given, known, what in ((chosen.models, MODELS, "model"), (chosen.modes.split(","), MODES, "mode")):
        for one in given:
            if one not in known:
                parser.error(f"{what} {one!r} is unknown, allowed is one of {', '.join(known)}")
    return chosen


def main():
    chosen = arguments()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(chosen.threads)
    print(FORM.format(*HEAD), flush=True)
    rows, failed = [], 0
    for name in chosen.models or MODELS:
        for mode in chosen.modes.split(","):
            try:
                row = measured(name, mode, chosen)
            except ImportError as missing:
                print(f"{name}: left out, {missing}", flush=True)
                continue
            except Exception as error:
                failed += 1
                print(f"{name} {mode}: {type(error).__name__}: {str(error)[:600]}", flush=True)
                continue
            rows.append(row)
            print(line(row), flush=True)
            for op, reason, floating in row["left"] if chosen.left else ():
                print(f"    {'*' if floating else ' '} {op}: {reason}", flush=True)
            gc.collect()
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
