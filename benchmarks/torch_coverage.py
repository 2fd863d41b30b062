#!/usr/bin/env python3
"""How much of models that the project was not made for lamina carries, and how right it is.

    torch_coverage.py [MODEL]... [--modes infer,train,bf16] [--results FILE] [--limit SECONDS] [--threads N] [--require SHARE]
                      [--list]

Runs each model (torch_coverage_plain.py, torch_coverage_transformers.py, torch_coverage_pictures.py: small, random weights; none is in
torch_model_list.py) in a process of its own, for inference, for a training step without the optimizer, and for inference in bf16, under
torch.compile(backend="lamina"). One line per model and mode:
  carried    the share of the nodes with floats that lamina computes, and of all nodes
  error      norm of the difference from float64 over the norm of that, of the first output or of all gradients, then eager's
  breaks     graph breaks that lamina adds
  left       what is left to PyTorch

--results is a file of JSON lines that each run extends: models in it are not run again, so that a run can be cut off at any time.
The summary is about all rows in it: means, models whose error is more than five times eager's, and the ops left to PyTorch by
number of models. A row that seems wrong is measured with two other sets of numbers, and the middle error counts. Where torch lacks an op of the model in float64, the difference from eager is at most 1e-5 (bf16: 2e-2). A model that does not build, or
that torch itself does not compile, is named and not counted.
Needs the packages lamina and torch; models of transformers, timm and torchvision are left out where the package is missing.
"""
import argparse
import collections
import contextlib
import importlib.util
import json
import logging
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
import traceback
import warnings

import torch

import torch_coverage_pictures
import torch_coverage_plain
import torch_coverage_transformers
import torch_models

FAMILIES = {"plain": torch_coverage_plain.MODELS, "transformers": torch_coverage_transformers.MODELS, "pictures": torch_coverage_pictures.MODELS}
FEW = """transformer_of_torch recommender graph_attention mixture_of_experts wavenet u_net losses albert debertav2 qwen3moe mamba2 bart hf_vit
         wav2vec2 regnety_002 pvt_v2_b0 tv_mobilenet_v2""".split()
MODELS = {name: build for models in FAMILIES.values() for name, build in models.items()}
GROUPS = {**FAMILIES, "all": MODELS, "few": FEW}
MODES = ("infer", "train", "bf16")
WRONG = 5  # times eager's error
FLOOR = 1e-6  # an error that is not wrong beside an eager one of 0
# A difference from eager that is wrong where float64 cannot be had: torch lacks an op of the model in it, or it is NaN.
APART = {"infer": 1e-5, "train": 1e-5, "bf16": 2e-2}


class Case(torch_models.Case):
    """A model of this list; a run and its result are those of torch_models."""

    def __init__(self, name, mode, seed=0):
        torch.manual_seed(seed)
        self.module, (self.args, kwargs) = MODELS[name]()
        self.training, self.autocast, self.is_part, self.slope = mode == "train", False, False, None
        self.kwargs = {key: value for key, value in kwargs.items() if key != "labels" or self.training}
        self.module.train(self.training)
        if mode == "bf16":
            self.change_type(torch.bfloat16)
        self.wide = None
        self.wide = super().widened()  # before a run: some modules keep tensors of one

    def widened(self):
        return self.wide


def measured(name, mode):
    case = Case(name, mode)
    case.result(case.module)  # a model that does not run in eager mode is not compiled
    row = {"model": name, "mode": mode}
    anyones = torch_models.graph_breaks(case, "eager")[0]
    reports = []
    row["compiles"] = True
    breaks, function, _ = torch_models.graph_breaks(case, "lamina", {"reports": reports})
    row["breaks"] = breaks - anyones
    nodes = [node for report in reports for node in report.nodes]
    for key, counted in (("floats", [node for node in nodes if node.floating]), ("nodes", nodes)):
        row[key], row[f"carried_{key}"] = len(counted), sum(node.carried for node in counted)
    if not nodes:
        raise RuntimeError("torch traces no graph of the model")
    row["left"] = sorted({(node.op, node.reason, node.floating) for node in nodes if not node.carried})
    row.update(torch_models.errors(case, function))
    if is_wrong(row):
        row.update(sorted([error_of(row), *(error_again(name, mode, seed) for seed in (1, 2))], key=times_eager)[1])  # the middle one
    return row


def error_of(row):
    return {key: row[key] for key in ("error", "eager_error", "beside_eager")}


def error_again(name, mode, seed):
    """The errors with other numbers. The gradient of a ReLU or a max pool jumps where two numbers are about equal, so that the last
    bit of an activation decides it: of three errors the middle one counts."""
    case = Case(name, mode, seed)
    torch._dynamo.reset()
    return torch_models.errors(case, torch.compile(case.module, backend="lamina"))


def times_eager(row):
    return row["beside_eager"] if row["error"] is None else row["error"] / max(row["eager_error"], FLOOR / WRONG)


def told(name, mode, path):
    """Writes the row of a model to a file, also where it fails."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    row = {"model": name, "mode": mode}
    try:
        row = measured(name, mode)
    except Exception as error:
        row["failed"] = f"{type(error).__name__}: {str(error)[:400]}"
        row["by_lamina"] = any("lamina" in frame.filename for frame in traceback.extract_tb(error.__traceback__)) or "lamina" in str(error)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(row, file)


def in_process(name, mode, limit):
    """The row of a model, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path, begin = os.path.join(folder, "row"), time.monotonic()
        process = multiprocessing.get_context("fork").Process(target=told, args=(name, mode, path))
        process.start()
        process.join(limit)
        row = {"model": name, "mode": mode, "failed": f"longer than {limit:g} s", "by_lamina": False}
        if process.is_alive():
            process.kill()
            process.join()
        elif os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                row = json.load(file)
        else:
            row["failed"], row["by_lamina"] = f"the process ended with {process.exitcode}", True
        return dict(row, seconds=round(time.monotonic() - begin, 1))


# ---- what is shown

FORM = "{:28} {:6} {:>8} {:>8} {:>9} {:>9} {:>7}  {}"


def is_wrong(row):
    error, eager = row.get("error"), row.get("eager_error")
    return not row["beside_eager"] <= APART[row["mode"]] if error is None else not error <= max(WRONG * eager, FLOOR)


def line(row):
    if "failed" in row:
        return FORM.format(row["model"], row["mode"], "-", "-", "-", "-", "-", row["failed"].replace("\n", " ")[:150])
    share = lambda key: f"{row[f'carried_{key}'] / max(1, row[key]):.2%}"[:7]
    number = lambda key: "-" if row.get(key) is None else f"{row[key]:.1e}"
    ops = collections.Counter(op.replace("aten.", "") for op, _, floating in row["left"])
    return FORM.format(row["model"], row["mode"], share("floats"), share("nodes"), number("error"), number("eager_error"), row["breaks"],
                       ("WRONG " if is_wrong(row) else "") + " ".join(ops))


def summary(rows):
    ran, failed = [r for r in rows if "failed" not in r], [r for r in rows if "failed" in r]
    lines = []
    for mode in (*MODES, "all"):
        those = [r for r in ran if mode in (r["mode"], "all")]
        if those:
            shares = {key: [r[f"carried_{key}"] / max(1, r[key]) for r in those] for key in ("floats", "nodes")}
            lines.append(f"{mode}: {len({r['model'] for r in those})} models, {statistics.mean(shares['floats']):.2%} of nodes with floats carried in the mean, "
                         f"{statistics.mean(shares['nodes']):.2%} of all nodes, {sum(s == 1 for s in shares['floats'])} of {len(those)} rows whole")
    ratios = [r["error"] / r["eager_error"] for r in ran if r.get("error") and r.get("eager_error")]
    lines.append(f"wrong: {', '.join(r['model'] + ' ' + r['mode'] for r in ran if is_wrong(r)) or 'none'}; error over eager's at most {max(ratios, default=0):.2f}")
    lines.append(f"graph breaks added: {', '.join(r['model'] for r in ran if r['breaks'] > 0) or 'none'}")
    of_lamina = [f"{r['model']} {r['mode']}" for r in failed if r.get("by_lamina")]
    lines.append(f"failed in lamina: {', '.join(of_lamina) or 'none'}; not built or not run by torch: {len(failed) - len(of_lamina)} rows")
    models = collections.defaultdict(set)
    for row in ran:
        for op, reason, floating in row["left"]:
            models[op, reason, floating].add(row["model"])
    for (op, reason, floating), names in sorted(models.items(), key=lambda entry: -len(entry[1])):
        lines.append(f"{len(names):4} {'*' if floating else ' '} {op}: {reason}   ({', '.join(sorted(names)[:4])})")
    return "\n".join(lines)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="names of models, or of families (plain, transformers, pictures, few, all); default: all")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--results", help="a file of JSON lines that is continued")
    parser.add_argument("--limit", type=float, default=150, help="seconds of a model in a mode")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--require", type=float, default=0.0, help="exit with 1 if a smaller share of the nodes with floats is carried in the mean")
    parser.add_argument("--list", action="store_true", help="print the names of the models")
    chosen = parser.parse_args()
    for given, known, what in ((chosen.models, {**MODELS, **GROUPS}, "model"), (chosen.modes.split(","), MODES, "mode")):
        for one in given:
            if one not in known:
                parser.error(f"{what} {one!r} is unknown, allowed is one of {', '.join(known)}")
    return chosen


def known_rows(path):
    if not path or not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(text) for text in file]


def can_be_imported(name):
    """Whether the packages of a model are there; imports them, so that the processes need not."""
    needed = {"transformers": ["transformers"], "pictures": ["torchvision"] if name.startswith("tv_") else ["timm"]}
    family = next(family for family, models in FAMILIES.items() if name in models)
    found = all(importlib.util.find_spec(package) for package in needed.get(family, []))
    for package in needed.get(family, []) if found else []:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    return found


def main():
    chosen = arguments()
    names = [name for given in chosen.models or FAMILIES for name in GROUPS.get(given, [given])]
    if chosen.list:
        print("\n".join(names))
        return 0
    import lamina.torch  # noqa: F401, once for all processes

    torch.set_num_threads(chosen.threads)
    rows = known_rows(chosen.results)
    print(FORM.format("model", "mode", "floats", "nodes", "error", "eager's", "breaks", "left to PyTorch"), flush=True)
    known = {(row["model"], row["mode"]) for row in rows}
    for name in names:
        if not can_be_imported(name):
            print(f"{name}: left out, its package is not installed", flush=True)
            continue
        for mode in chosen.modes.split(","):
            if (name, mode) in known:
                continue
            row = in_process(name, mode, chosen.limit)
            rows.append(row)
            print(line(row), flush=True)
            if chosen.results:
                with open(chosen.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    rows = [row for row in rows if row["model"] in names]
    print(summary(rows))
    return 0 if rows and all_is_well(rows, chosen.require) else 1


def all_is_well(rows, least):
    """Whether no model fails in lamina, is wrong or has a graph break of lamina's, and at least this share is carried in the mean."""
    ran = [row for row in rows if "failed" not in row]
    share = statistics.mean(row["carried_floats"] / max(1, row["floats"]) for row in ran) if ran else 0
    return share >= least and not any(row.get("by_lamina") for row in rows) and not any(is_wrong(row) or row["breaks"] > 0 for row in ran)


if __name__ == "__main__":
    sys.exit(main())
