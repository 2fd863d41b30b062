#!/usr/bin/env python3
"""Compares torch.compile(backend="lamina") with and without packed weights, and eager mode, on a stack of Llama blocks.

    torch_weights.py [--layers N] [--width N] [--rows N,N,...] [--dtype bf16|f32] [--train] [--rounds R] [--seconds S]

The blocks have the shape of a Llama of 1B parameters (width 2048, 32 heads, 8 of keys, MLP 8192), random weights. Milliseconds
per call, in turns, medians of R rounds of S seconds:
  eager     PyTorch
  plain     the default: products read weights as they are
  packed    options={"pack": BYTES}: packed once, each call compares the bytes of the weights
  frozen    options={"freeze": True}: bytes are not compared
With --train, a call is a step of the fused AdamW on the mean square of the result, and frozen is left out.
"""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import lamina.torch


class Block(nn.Module):
    def __init__(self, width, heads=32, shared=8):
        super().__init__()
        self.size, hidden = width // heads, 4 * width
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, n * self.size, bias=False) for n in (heads, shared, shared))
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        h = self.first(x)
        q, k, v = (f(h).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], 1) for t in (k, v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


def compiled(model, **options):
    torch._dynamo.reset()
    return torch.compile(model, backend="lamina", options={"warn": False, **options})


def inference(function, x):
    def call():
        with torch.no_grad():
            function(x)

    return call


def step(function, model, x):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)

    def call():
        optimizer.zero_grad()
        function(x).float().square().mean().backward()
        optimizer.step()

    return call


def in_turns(calls, rounds, seconds):
    medians = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            call()
            taken, end = [], time.perf_counter() + seconds
            while not taken or time.perf_counter() < end:
                begin = time.perf_counter()
                call()
                taken.append(time.perf_counter() - begin)
            medians[name].append(statistics.median(taken))
    return {name: 1e3 * statistics.median(values) for name, values in medians.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--width", type=int, default=2048)
    parser.add_argument("--rows", default="256")
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    dtype = {"bf16": torch.bfloat16, "f32": torch.float32}[args.dtype]
    torch.manual_seed(0)
    model = nn.Sequential(*(Block(args.width) for _ in range(args.layers))).to(dtype)
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    print(f"{args.layers} blocks, {weights / 1e6:,.0f} MB of weights, {torch.get_num_threads()} threads", flush=True)
    functions = {"eager": model, "plain": compiled(model), "packed": compiled(model, pack=1 << 40)}
    if not args.train:
        functions["frozen"] = compiled(model, freeze=True, pack=1 << 40)
    for rows in map(int, args.rows.split(",")):
        x = torch.randn(1, rows, args.width).to(dtype)
        calls = {name: step(f, model, x) if args.train else inference(f, x) for name, f in functions.items()}
        for call in calls.values():
            for _ in range(3):
                call()
        times = in_turns(calls, args.rounds, args.seconds)
        told = ", ".join(f"{name} {value:.1f} ms ({times['eager'] / value:.2f})" for name, value in times.items())
        print(f"{rows} rows: {told}; {lamina.torch.packed_bytes() / 1e6:,.0f} MB packed", flush=True)


if __name__ == "__main__":
    main()
