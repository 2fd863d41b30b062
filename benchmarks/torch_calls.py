#!/usr/bin/env python3
"""The overhead of a call from Python with almost no work, in microseconds, compared with PyTorch's own function.

    torch_calls.py [--rounds R] [--calls N]

Both take turns: N calls of each, in R rounds. Prints the minimum and the median of the rounds' means. No gradients are computed.
"""
import argparse
import statistics
import time

import torch
import torch.nn.functional as F

import lamina
import lamina.torch as lt


def partition_of_three():
    """c = a + b of eight elements, into given memory: calls of the compiled partition, with its look-up and without."""
    graph = lamina.Graph()
    run = graph.compile([graph.op("Add", [graph.input((8,)), graph.input((8,))])])
    a, b, c = (torch.ones(8) for _ in range(3))
    run(a, b, out=c)
    executable = run.compiled_for((a, b)).linked.run
    return {"compiled partition, 3 tensors": lambda: executable((a, b), (c,)), "CompiledGraph, out= given": lambda: run(a, b, out=c),
            "torch.add, out= given": lambda: torch.add(a, b, out=c)}


def norms():
    x, w, b = torch.randn(2, 8), torch.randn(8), torch.randn(8)
    return {"lamina.torch.layer_norm, 2x8": lambda: lt.layer_norm(x, (8,), w, b), "F.layer_norm, 2x8": lambda: F.layer_norm(x, (8,), w, b),
            "lamina.layer_norm, 2x8": lambda: lamina.layer_norm(x, w, b)}


def mean_us(run, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - begin) / calls * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20000)
    chosen = parser.parse_args()
    for functions in (partition_of_three(), norms()):
        taken = {name: [] for name in functions}
        with torch.no_grad():
            for run in functions.values():
                mean_us(run, 100)
            for _ in range(chosen.rounds):
                for name, run in functions.items():
                    taken[name].append(mean_us(run, chosen.calls))
        for name, times in taken.items():
            print(f"{name:32} {min(times):6.2f} {statistics.median(times):6.2f}")


if __name__ == "__main__":
    main()
