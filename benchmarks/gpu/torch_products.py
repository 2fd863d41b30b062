#!/usr/bin/env python3
"""PyTorch's products and convolutions (cuBLAS without TF32, cuDNN) of the sizes of gpu_products, timed with CUDA events the same
way: several calls one after the other, the fastest of five times. The calls are in a CUDA graph, so that the time of PyTorch's own code on
the host does not count. Prints rows of a table in Markdown.

    torch_products.py
"""
import sys

try:
    import torch
except ImportError:
    sys.exit("torch_products.py: torch is not installed; nothing is measured")

SIDE, ROWS = 4096, (4096, 2048, 1024, 512, 256, 128, 64, 16, 1)
GRADIENTS = ((768, 768, 16384), (256, 256, 65536), (3072, 768, 32768), (16384, 64, 16384))  # of weights: columns, rows, samples
CONVOLUTIONS = ((64, 64, 56, 3, 1), (256, 256, 14, 3, 1), (256, 64, 56, 1, 1), (128, 128, 28, 3, 2))  # from, to, side, taps, stride
BATCH = 32


CALLS = 20


def microseconds(work):
    for _ in range(3):  # outside of the graph: cuDNN tries its algorithms
        work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            work()

    def milliseconds():
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        stop.record()
        stop.synchronize()
        return start.elapsed_time(stop)

    milliseconds()
    return 1e3 * min(milliseconds() for _ in range(5)) / CALLS


def products():
    for dtype in (torch.bfloat16, torch.float32):
        weights = torch.randn(SIDE, SIDE, device="cuda").to(dtype)
        for rows in ROWS:
            src = torch.randn(rows, SIDE, device="cuda").to(dtype)
            yield dtype, f"{rows}x{SIDE}x{SIDE}", lambda: src @ weights
    for m, n, k in GRADIENTS:
        src, diff = (torch.randn(k, columns, device="cuda").to(torch.bfloat16) for columns in (m, n))
        yield torch.bfloat16, f"{m}x{n}x{k}", lambda: src.t() @ diff


def convolutions():
    for channels, to, side, taps, stride in CONVOLUTIONS:
        for layout, name in ((torch.channels_last, "NXC"), (torch.contiguous_format, "NCX")):
            x = torch.randn(BATCH, channels, side, side, device="cuda").bfloat16().to(memory_format=layout)
            weights = torch.randn(to, channels, taps, taps, device="cuda").bfloat16().to(memory_format=layout)
            settings = (None, (stride, stride), (taps // 2, taps // 2), (1, 1), False, (0, 0), 1)
            forward = lambda: torch.convolution(x, weights, settings[0], *settings[1:])
            diff = torch.randn_like(forward())
            size = f"{channels} to {to} channels, {taps} x {taps} of stride {stride}, {side} x {side}"
            yield torch.bfloat16, f"Convolution {name}, {size}", forward
            for kind, wanted in (("BackwardData", [True, False, False]), ("BackwardWeights", [False, True, False])):
                work = lambda wanted=wanted: torch.ops.aten.convolution_backward(diff, x, weights, *settings, wanted)
                yield torch.bfloat16, f"Convolution{kind} {name}, {size}", work


def main():
    if not torch.cuda.is_available():
        sys.exit("torch_products.py: torch sees no CUDA device; nothing is measured")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}\n")
    print("| type | sizes | us |\n| --- | --- | --- |")
    for cases in (products(), convolutions()):
        for dtype, size, work in cases:
            print(f"| {str(dtype).removeprefix('torch.')} | {size} | {microseconds(work):.1f} |", flush=True)


if __name__ == "__main__":
    main()
