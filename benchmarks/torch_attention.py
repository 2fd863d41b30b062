#!/usr/bin/env python3
"""Compares lamina with PyTorch on attention and on a layer of BERT, on the CPU, if torch is installed.

    torch_attention.py [--lamina build/bench/bin/lamina] [--seconds S] [--rounds R] [--threads N] [--case TEXT]...

Attention is torch.nn.functional.scaled_dot_product_attention. With fewer heads of keys than of queries it is measured
with enable_gqa and with keys and values repeated in the timed call, and the faster one counts. The layer of BERT is in
eager mode, with the same attention. Both are in inference mode. torch allocates its outputs, as usual.

Both get the same inputs and take turns: in each round torch runs for S seconds in this process, then `lamina replay` for S
seconds in another process. Times are medians of the rounds' medians. Results are compared before a case is measured, and
the program stops if they differ too much. "apart" is the norm of the difference over the norm of torch's result.
GF/s count only the products; for causal attention, only the pairs of tokens that are not masked. Decoding is one query per head.
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("torch_attention.py: torch is not installed; nothing is measured")

import transformer_dumps as dumps

LAMINA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "bench", "bin", "lamina")
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
DESCRIPTORS = {"f32": "<f4", "bf16": "<u2"}  # of .npy files, which contain bf16 as raw bits
FARTHEST = {"f32": 1e-5, "bf16": 1e-2}  # the largest relative difference of the results
LEAST_RUNS = 3


class Case:
    """A dump and torch's equivalents. `fill` returns the inputs of the dump by name, and torch's ways to compute its
    result from them, by name: functions without arguments, the fastest of which counts."""

    def __init__(self, dump, shown, causal, flops, fill):
        self.dump, self.shown, self.causal, self.flops, self.fill = dump, shown, causal, flops, fill
        self.dtype = dump.output["dtype"]


def attention_case(batch, heads, tokens, width, kv_heads, dtype, causal, queries=None):
    group = heads // kv_heads

    def fill():
        query, key, value = (torch.randn(batch, count, rows, width).to(TYPES[dtype])
                             for count, rows in ((heads, queries or tokens), (kv_heads, tokens), (kv_heads, tokens)))
        inputs = {"query": query, "key": key, "value": value, "scale": torch.tensor(1 / math.sqrt(width))}
        if causal:
            inputs["hidden"] = torch.tensor(-math.inf)

        def attend(repeat=1, **options):
            keys, values = (t.repeat_interleave(repeat, 1) if repeat > 1 else t for t in (key, value))
            return F.scaled_dot_product_attention(query, keys, values, is_causal=causal, **options)

        grouped = {"enable_gqa": lambda: attend(enable_gqa=True), "repeated": lambda: attend(repeat=group)}
        return inputs, grouped if group > 1 else {"plain": attend}

    shown = (f"{'decoding' if queries else 'attention'} {batch}x{heads}x{tokens}x{width}"
             + (f", {kv_heads} of keys" if group > 1 else ""))
    kept = tokens * (tokens + 1) // 2 if causal else (queries or tokens) * tokens
    dump = dumps.attention(batch, heads, tokens, width, kv_heads, dtype, causal, queries)
    return Case(dump, shown, causal, 4 * batch * heads * width * kept, fill)


class EncoderLayer:
    """A layer of BERT as written for torch. Weights are [out, in], as in torch.nn.Linear."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.weights = {name: tensor.t().contiguous() for name, tensor in inputs.items() if name.endswith(".weight")}

    def linear(self, name, states):
        return F.linear(states, self.weights[name + ".weight"], self.inputs[name + ".bias"])

    def heads(self, name, states):
        return self.linear(name, states).view(*states.shape[:2], dumps.HEADS, dumps.WIDTH).transpose(1, 2)

    def norm(self, name, states):
        return F.layer_norm(states, states.shape[-1:], self.inputs[name + ".gamma"], self.inputs[name + ".beta"], dumps.EPSILON)

    def run(self):
        states = self.inputs["hidden_states"]
        query, key, value = (self.heads(name, states) for name in ("query", "key", "value"))
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=self.inputs["mask"])
        joined = context.transpose(1, 2).reshape(states.shape)
        states = self.norm("attention_norm", self.linear("attention", joined) + states)
        inner = F.gelu(self.linear("intermediate", states))
        return self.norm("dense_norm", self.linear("dense", inner) + states)


def encoder_input(name, shape):
    """Values of the same size as in a trained layer. The last eighth of each sequence is padding."""
    if name == "divisor":
        return torch.tensor(math.sqrt(dumps.WIDTH))
    if name == "mask":
        mask = torch.zeros(shape)
        mask[..., shape[-1] - shape[-1] // 8:] = -10000
        return mask
    if name.endswith(".gamma"):
        return 1 + 0.1 * torch.randn(shape)
    scale = 1 if name == "hidden_states" else 0.1 if name.endswith((".bias", ".beta")) else 1 / math.sqrt(shape[0])
    return scale * torch.randn(shape)


def encoder_case(batch, tokens):
    dump = dumps.encoder(batch, tokens)

    def fill():
        inputs = {name: encoder_input(name, tensor["shape"]) for name, tensor in dump.inputs.items()}
        return inputs, {"eager": EncoderLayer(inputs).run}

    weights = dumps.HIDDEN * (4 * dumps.HIDDEN + 2 * dumps.INTERMEDIATE)
    flops = batch * tokens * (2 * weights + 4 * tokens * dumps.HIDDEN)
    return Case(dump, f"BERT-base layer {batch}x{tokens}", False, flops, fill)


def all_cases():
    cases = [attention_case(*shape, dtype, causal) for shape in dumps.ATTENTION_SHAPES for causal in (False, True)
             for dtype in TYPES]
    cases += [attention_case(*shape, dtype, False, queries=1) for shape in dumps.DECODING_SHAPES for dtype in TYPES]
    return cases + [encoder_case(*shape) for shape in dumps.ENCODER_SHAPES]


def write_npy(path, tensor, dtype):
    tensor = tensor.contiguous()
    shape = "".join(f"{extent}, " for extent in tensor.shape)
    header = f"{{'descr': '{DESCRIPTORS[dtype]}', 'fortran_order': False, 'shape': ({shape}), }}"
    header = header.ljust(64 * (1 + (len(header) + 10) // 64) - 11) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        file.write(ctypes.string_at(tensor.data_ptr(), tensor.numel() * tensor.element_size()))


def read_npy(path, shape, dtype):
    """The tensor in a file that lamina wrote, with this shape and type."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    start = 10 + int.from_bytes(content[8:10], "little")
    return torch.frombuffer(content, dtype=TYPES[dtype], offset=start).reshape(shape)


class Replay:
    """`lamina replay` of one dump with input files in a separate folder."""

    def __init__(self, lamina, threads, case, inputs, folder):
        self.folder, self.case = folder, case
        self.dump_path, self.report_path = (os.path.join(folder, name) for name in ("dump.json", "report.json"))
        case.dump.write(self.dump_path)
        for name, tensor in inputs.items():
            port = case.dump.inputs[name]
            write_npy(os.path.join(folder, f"{port['id']}.npy"), tensor, port["dtype"])
        self.command = [lamina, "replay", self.dump_path, "--engine", "cpu", "--threads", str(threads), "--in", folder]

    def run(self, *arguments):
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"torch_attention.py: {self.case.dump.name}: lamina replay ended with {done.returncode}: "
                     f"{done.stdout}{done.stderr}")

    def result(self):
        results = os.path.join(self.folder, "results")
        os.makedirs(results, exist_ok=True)
        self.run("--out", results)
        output = self.case.dump.output
        return read_npy(os.path.join(results, f"{output['id']}.npy"), output["shape"], output["dtype"])

    def median_ms(self, seconds):
        self.run("--bench", "--repeat", str(seconds), "--report", self.report_path)
        with open(self.report_path, encoding="utf-8") as file:
            return json.load(file)["files"][0]["median_us"] / 1e3


def median_ms(run, seconds):
    run()
    samples, begin = [], time.perf_counter()
    while len(samples) < LEAST_RUNS or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples) * 1e3


def distance(case, ways, replay):
    """The largest difference of lamina's result from torch's results."""
    result = replay.result().double()
    farthest = 0.0
    for way, run in ways.items():
        expected = run().double()
        apart = (torch.linalg.vector_norm(result - expected) / torch.linalg.vector_norm(expected)).item()
        if not apart <= FARTHEST[case.dtype]:
            sys.exit(f"torch_attention.py: {case.dump.name}: lamina's result and torch's ({way}) are {apart:.2g} apart, "
                     f"allowed is {FARTHEST[case.dtype]}; nothing more is measured")
        farthest = max(farthest, apart)
    return farthest


def measure(case, given):
    """Returns the row of the table."""
    inputs, ways = case.fill()
    with tempfile.TemporaryDirectory() as folder, torch.inference_mode():
        replay = Replay(given.lamina, given.threads, case, inputs, folder)
        apart = distance(case, ways, replay)
        lamina, others = [], {way: [] for way in ways}
        for _ in range(given.rounds):
            for way, run in ways.items():
                others[way].append(median_ms(run, given.seconds))
            lamina.append(replay.median_ms(given.seconds))
    way = min(others, key=lambda name: statistics.median(others[name]))
    torch_ms, lamina_ms = statistics.median(others[way]), statistics.median(lamina)
    return [case.shown, case.dtype, "yes" if case.causal else "no", way, f"{torch_ms:.2f}", f"{lamina_ms:.2f}",
            f"{torch_ms / lamina_ms:.2f}", f"{case.flops / lamina_ms / 1e6:.0f}", f"{apart:.1g}"]


def print_row(cells):
    widths = (34, 4, 6, 10, 9, 9, 12, 11, 7)
    padded = [cell.ljust(width) if i < 4 else cell.rjust(width) for i, (cell, width) in enumerate(zip(cells, widths))]
    print("| " + " | ".join(padded) + " |", flush=True)


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}, allowed is 1 or more")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lamina", default=LAMINA, help="the driver; built by the preset bench")
    parser.add_argument("--seconds", type=float, default=1, help="of each in a round")
    parser.add_argument("--rounds", type=positive, default=3)
    parser.add_argument("--threads", type=positive, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--case", action="append", metavar="TEXT", help="only dumps with this in their names")
    given = parser.parse_args()
    if not os.access(given.lamina, os.X_OK):
        sys.exit(f"torch_attention.py: --lamina {given.lamina}: is no program; build it with the preset bench")
    cases = [case for case in all_cases() if not given.case or any(text in case.dump.name for text in given.case)]
    if not cases:
        sys.exit(f"torch_attention.py: --case: no dump is called so, allowed are parts of "
                 f"{', '.join(case.dump.name for case in all_cases())}")
    torch.manual_seed(0)
    torch.set_num_threads(given.threads)
    print(f"torch {torch.__version__}, {given.threads} threads each; medians of {given.rounds} rounds of {given.seconds:g} s")
    print_row(["case", "type", "causal", "torch", "torch ms", "lamina ms", "torch/lamina", "lamina GF/s", "apart"])
    print_row(["---"] * 9)
    for case in cases:
        print_row(measure(case, given))


if __name__ == "__main__":
    main()
