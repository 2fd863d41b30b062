#!/usr/bin/env python3
"""PyTorch eager and torch.compile on the rows of gpu_norms, timed with CUDA events. The L2 cache is flushed before every run. Also
measures Triton's layer norm through Liger, and Apex's fused one, if they are installed. Prints rows of a table in Markdown, like
gpu_norms.

    torch_rows.py [--runs 25]
"""
import argparse
import statistics
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("torch_rows.py: torch is not installed; nothing is measured")

ROWS = [(16384, 1024), (16384, 4096), (8192, 8192), (1024, 65536), (262144, 256)]
TYPES = {torch.float32: "f32", torch.bfloat16: "bf16"}
EPSILON = 1e-5


def forward(x, r, gamma, beta, dy, mean, rstd):
    return F.layer_norm(x, x.shape[1:], gamma, beta, EPSILON)


def backward(x, r, gamma, beta, dy, mean, rstd):
    return torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[1:], mean, rstd, gamma, beta, [True, True, True])


def add_norm(x, r, gamma, beta, dy, mean, rstd):
    total = x + r
    return total, F.layer_norm(total, x.shape[1:], gamma, beta, EPSILON)


# The number of tensors of the size of src that must move.
CASES = {"forward": (forward, 2), "backward": (backward, 3), "add+norm": (add_norm, 4)}


def optional_contenders():
    contenders = {}
    try:
        from liger_kernel.ops.layer_norm import LigerLayerNormFunction
        contenders["liger (triton)"] = lambda x, r, gamma, beta, *_: LigerLayerNormFunction.apply(x, gamma, beta, EPSILON)
    except ImportError:
        pass
    try:
        from apex.normalization.fused_layer_norm import fused_layer_norm_affine
        contenders["apex"] = lambda x, r, gamma, beta, *_: fused_layer_norm_affine(x, gamma, beta, x.shape[1:], EPSILON)
    except ImportError:
        pass
    return contenders


def time_of(work, flush, runs):
    for _ in range(3):
        work()
    times = []
    for _ in range(runs):
        flush.zero_()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=25)
    runs = parser.parse_args().runs
    if not torch.cuda.is_available():
        sys.exit("torch_rows.py: torch sees no CUDA device; nothing is measured")
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    source = torch.empty_like(flush)
    bandwidth = 2 * flush.numel() / time_of(lambda: flush.copy_(source), source, runs) / 1e6
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: copy bandwidth {bandwidth:.1f} GB/s\n")
    for dtype in TYPES:
        for name, (function, tensors) in CASES.items():
            for rows, size in ROWS:
                x, r, dy = (torch.randn(rows, size, device="cuda").to(dtype) for _ in range(3))
                gamma, beta = (torch.randn(size, device="cuda").to(dtype) for _ in range(2))
                mean = x.float().mean(1, keepdim=True)
                rstd = torch.rsqrt(x.float().var(1, unbiased=False, keepdim=True) + EPSILON)
                contenders = {"eager": function, "torch.compile": torch.compile(function)}
                if name == "forward":
                    contenders |= optional_contenders()
                for contender, work in contenders.items():
                    milliseconds = time_of(lambda: work(x, r, gamma, beta, dy, mean, rstd), flush, runs)
                    rate = tensors * x.numel() * x.element_size() / milliseconds / 1e6
                    print(f"| {name} | {TYPES[dtype]} | {rows}x{size} | {contender} | {1e3 * milliseconds:.1f} us | {rate:.1f} "
                          f"| {100 * rate / bandwidth:.1f} % | |")


if __name__ == "__main__":
    main()
