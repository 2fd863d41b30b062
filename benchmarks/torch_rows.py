#!/usr/bin/env python3
"""PyTorch eager and torch.compile on the rows of a result file of norm_vs_onednn, if torch is installed.

    torch_rows.py RESULTS.json [--out FILE.json] [--seconds S] [--case NAME] [--limit-mib 64]

Measures in a separate process (torch brings its own OpenMP and oneDNN) with the file's number of threads. Figures are medians;
torch allocates its outputs, as usual. Prints torch's times next to the file's. --out writes the file again with "torch_eager" and
"torch_compile" in each result.
"""
import argparse
import json
import os
import statistics
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("torch_rows.py: torch is not installed; nothing is measured")

EPSILON = 1e-5
QUANTIZE_SCALE = 0.03
TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "f64": torch.float64}
OUT_OF_CACHE = 128 << 20  # bytes per tensor


class Tensors:
    def __init__(self, fields):
        dtype, shape = TYPES[fields["type"]], (fields["rows"], fields["columns"])
        self.src, self.other, self.diff_dst = (torch.randn(shape).to(dtype) for _ in range(3))
        self.gamma, self.beta = (torch.randn(shape[1]).to(dtype) for _ in range(2))  # torch requires src's type
        self.mean = self.src.float().mean(1, keepdim=True).to(self.statistics_type())
        variance = self.src.float().var(1, unbiased=False, keepdim=True)
        self.rstd = torch.rsqrt(variance + EPSILON).to(self.statistics_type())

    def statistics_type(self):
        return torch.float64 if self.src.dtype == torch.float64 else self.src.dtype


def layer_norm(t, src):
    return F.layer_norm(src, src.shape[1:], t.gamma, t.beta, EPSILON)


def residual_with_sum(t):
    total = t.src + t.other
    return total, layer_norm(t, total)


def quantized(t):
    return torch.clamp(torch.round(F.gelu(layer_norm(t, t.src)) / QUANTIZE_SCALE), -128, 127).to(torch.int8)


CASES = {
    "LayerNorm": lambda t: layer_norm(t, t.src),
    "LayerNorm+stats": lambda t: torch.native_layer_norm(t.src, t.src.shape[1:], t.gamma, t.beta, EPSILON),
    "LayerNormBackward": lambda t: torch.ops.aten.native_layer_norm_backward(
        t.diff_dst, t.src, t.src.shape[1:], t.mean, t.rstd, t.gamma, t.beta, [True, True, True]),
    "Add+LayerNorm": lambda t: layer_norm(t, t.src + t.other),
    "Add+LayerNorm+sum": residual_with_sum,
    "Add+LayerNorm+GELU": lambda t: F.gelu(layer_norm(t, t.src + t.other)),
    "LayerNorm+GELU+Quantize": quantized,
    "RMSNorm": lambda t: F.rms_norm(t.src, t.src.shape[1:], t.gamma, EPSILON),
    "SoftMax": lambda t: F.softmax(t.src, 1),
}


def median_us(run, seconds, evict):
    """The median of at least 7 samples. Small work is repeated within a sample."""
    run()
    start = time.perf_counter()
    run()
    repeats = 1 if evict is not None else max(1, min(1000, int(3e-4 / (time.perf_counter() - start))))
    samples, begin = [], time.perf_counter()
    while len(samples) < 7 or time.perf_counter() - begin < seconds:
        if evict is not None:
            evict.sum()
        start = time.perf_counter()
        for _ in range(repeats):
            run()
        samples.append((time.perf_counter() - start) / repeats)
    return statistics.median(samples) * 1e6


def measure(fields, seconds, cache_bytes):
    tensors = Tensors(fields)
    evict = torch.ones(2 * cache_bytes // 4) if fields["tensor_bytes"] >= OUT_OF_CACHE else None
    eager = CASES[fields["case"]]
    with torch.no_grad():
        result = {"torch_eager": median_us(lambda: eager(tensors), seconds, evict), "torch_compile": None}
        try:
            compiled = torch.compile(eager)
            result["torch_compile"] = median_us(lambda: compiled(tensors), seconds, evict)
        except Exception as error:  # there is no C++ compiler, or inductor does not support the case
            print(f"torch_rows.py: torch.compile of {fields['case']}: {str(error).splitlines()[0]}", file=sys.stderr)
        torch.compiler.reset()
    return result


def shown(value):
    return "-" if value is None else f"{value:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--out", metavar="FILE.json")
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--case", action="append", choices=list(CASES), help="only this case; may be given again")
    parser.add_argument("--limit-mib", type=int, default=128, help="leave out rows with larger tensors")
    arguments = parser.parse_args()
    with open(arguments.results, encoding="utf-8") as file:
        content = json.load(file)
    machine = content["machine"]
    torch.set_num_threads(machine["threads"])
    machine["torch"] = torch.__version__
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; times in us, medians")
    print(f"{'case':24} {'type':5} {'size':18} {'lamina':>10} {'oneDNN':>10} {'eager':>10} {'compile':>10}")
    for fields in content["results"]:
        chosen = not arguments.case or fields["case"] in arguments.case
        chosen = chosen and fields.get("memory", "as given") == "as given"  # torch chooses the placement
        if not chosen or fields["tensor_bytes"] > arguments.limit_mib * 2**20 * 1.01:
            continue
        fields.update(measure(fields, arguments.seconds, machine["last_level_cache_bytes"]))
        times = [fields[name]["us"] if fields[name] else None for name in ("lamina", "onednn")]
        times += [fields["torch_eager"], fields["torch_compile"]]
        size = f"{fields['rows']}x{fields['columns']}"
        print(f"{fields['case']:24} {fields['type']:5} {size:18} " + " ".join(f"{shown(value):>10}" for value in times), flush=True)
    if arguments.out:
        with open(arguments.out + ".new", "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
        os.replace(arguments.out + ".new", arguments.out)


if __name__ == "__main__":
    main()
