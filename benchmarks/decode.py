#!/usr/bin/env python3
"""Times the generation of tokens by a Llama with random weights and a static cache: eager, inductor and lamina, in turns.

    decode.py [--width N] [--layers N] [--heads N] [--shared N] [--hidden N] [--lengths N,N,...] [--tokens N]
              [--dtype bf16|f32] [--contenders NAME,NAME,...] [--rounds R] [--seconds S] [--smoke]

The default shape is that of a Llama of 1B parameters; --width 4096 --layers 1 --hidden 14336 is a block of an 8B one. A call
makes one token with a cache of the given length that is full but for the last entry; with --tokens N it reads the last N tokens
of a prompt at once. Tokens per second, medians of R rounds of S seconds, and the fraction of what reading all weights and the cache
once would allow, at the bandwidth measured by a sum:
  eager     PyTorch
  inductor  torch.compile's default, if it finds a C++ compiler
  lamina    torch.compile(backend="lamina")
  frozen    lamina with options={"freeze": True}: the bytes of packed weights are not compared
"""
import argparse
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

import lamina.torch  # registers the backend


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.size = args.width // args.heads
        self.first, self.second = nn.RMSNorm(args.width), nn.RMSNorm(args.width)
        self.q = nn.Linear(args.width, args.width, bias=False)
        self.k, self.v = (nn.Linear(args.width, args.shared * self.size, bias=False) for _ in range(2))
        self.o = nn.Linear(args.width, args.width, bias=False)
        self.gate, self.up = (nn.Linear(args.width, args.hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(args.hidden, args.width, bias=False)

    def forward(self, x, keys, values, position, mask):
        h = self.first(x)
        q, k, v = (f(h).unflatten(-1, (-1, self.size)).transpose(1, 2) for f in (self.q, self.k, self.v))
        keys.index_copy_(2, position, k)
        values.index_copy_(2, position, v)
        attended = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask, enable_gqa=True)
        x = x + self.o(attended.transpose(1, 2).flatten(2))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.blocks = nn.ModuleList(Block(args) for _ in range(args.layers))

    def forward(self, x, cache, position):
        places = torch.arange(cache[0].shape[2])
        mask = (places[None, :] <= position[:, None])[None, None]
        for i, block in enumerate(self.blocks):
            x = block(x, cache[2 * i], cache[2 * i + 1], position, mask)
        return x


def read_bandwidth():
    """Bytes per second."""
    data = torch.ones(1 << 26)
    data.sum()
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        data.sum()
        times.append(time.perf_counter() - begin)
    return data.numel() * data.element_size() / min(times)


def functions_of(model, names):
    options = {"lamina": {}, "frozen": {"freeze": True, "pack": 1 << 40}}
    for name in names:
        if name == "eager":
            yield name, model
        elif name == "inductor":
            yield name, torch.compile(model)
        else:
            yield name, torch.compile(model, backend="lamina", options={"warn": False, **options[name]})


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
    return {name: statistics.median(values) for name, values in medians.items()}


def measure(args, model, functions, length, bandwidth):
    dtype = next(model.parameters()).dtype
    size = args.width // args.heads
    cache = [torch.randn(1, args.shared, length, size).to(dtype) for _ in range(2 * args.layers)]
    caches = {name: [tensor.clone() for tensor in cache] for name in functions}
    x, position = torch.randn(1, args.tokens, args.width).to(dtype), torch.arange(length - args.tokens, length)
    with torch.no_grad():
        results = {name: f(x, caches[name], position) for name, f in functions.items()}
        calls = {name: (lambda f=f, cache=caches[name]: f(x, cache, position)) for name, f in functions.items()}
        times = in_turns(calls, args.rounds, args.seconds)
    least = sum(t.numel() * t.element_size() for t in [*model.parameters(), *cache]) / bandwidth
    reference = next(iter(results.values())).float()
    print(f"cache of {length}: " + "; ".join(
        f"{name} {args.tokens / times[name]:.2f} tokens/s, {least / times[name]:.2f} of reading"
        f", apart {((results[name].float() - reference).norm() / reference.norm()).item():.1e}" for name in functions), flush=True)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in {"width": 2048, "layers": 16, "heads": 32, "shared": 8, "hidden": 8192}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--lengths", default="128,1024,4096")
    parser.add_argument("--tokens", type=int, default=1)
    parser.add_argument("--dtype", choices=("bf16", "f32"), default="bf16")
    parser.add_argument("--contenders", default="eager,inductor,lamina,frozen")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--smoke", action="store_true", help="a small model, a moment, without inductor")
    args = parser.parse_args()
    if args.smoke:
        args.width, args.layers, args.heads, args.shared, args.hidden = 64, 2, 4, 2, 96
        args.lengths, args.rounds, args.seconds, args.contenders = "16", 1, 0, "eager,lamina"
    lengths = [int(length) for length in args.lengths.split(",")]
    if args.tokens < 1 or min(lengths) < args.tokens:
        parser.error(f"--tokens {args.tokens}, allowed is 1 to {min(lengths)}, the least of --lengths")
    return args


def main():
    args = arguments()
    torch.manual_seed(0)
    model = Model(args).to({"bf16": torch.bfloat16, "f32": torch.float32}[args.dtype])
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    bandwidth = read_bandwidth()
    print(f"{args.layers} blocks of width {args.width}, {weights / 1e6:,.0f} MB of weights, {torch.get_num_threads()} threads, "
          f"reading {bandwidth / 1e9:.1f} GB/s", flush=True)
    functions = dict(functions_of(model, args.contenders.split(",")))
    for length in map(int, args.lengths.split(",")):
        measure(args, model, functions, length, bandwidth)


if __name__ == "__main__":
    main()
