#!/usr/bin/env python3
"""Times an optimizer's step over tensors of the shapes of a Llama: PyTorch's own, and torch.compile(step, backend="lamina"), in turns.

    torch_optimizers.py [adamw|sgd|lion]... [--width N] [--hidden N] [--layers N] [--dtype f32|bf16] [--threads N] [--rounds R]
                        [--seconds S] [--inductor] [--json FILE] [--smoke]

The default is 100 tensors with 110 million elements: an embedding, and the products and norms of 11 layers. Milliseconds of a step,
medians of R rounds of S seconds, and the fraction of the time that the bytes of a step take at the machine's bandwidth:
  foreach    PyTorch's step with foreach=True
  fused      PyTorch's step with fused=True, for the optimizers that have it
  inductor   torch.compile's default, with --inductor
  lamina     torch.compile(step, backend="lamina")

The bytes of a step are each parameter, gradient and state read once, and parameters and states written once. The bandwidth is that
of the faster of two sweeps over the same parameters: x *= a, which reads and writes as much, and x += y, which reads twice as
much as it writes. `error` is the largest difference of a parameter from float64 after five steps, over that of foreach=True.
"""
import argparse
import json
import statistics
import time

import torch

import lamina.torch  # noqa: F401, registers the backend


class Lion(torch.optim.Optimizer):
    """The sign of a mean of gradients (Chen et al., 2023), in foreach ops."""

    def __init__(self, params, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads, (now, later) = [p.grad for p in params], group["betas"]
            for p in params:
                if not self.state[p]:
                    self.state[p]["mean"] = torch.zeros_like(p)
            means = [self.state[p]["mean"] for p in params]
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            update = torch._foreach_mul(means, now)
            torch._foreach_add_(update, grads, alpha=1 - now)
            torch._foreach_add_(params, torch._foreach_sign(update), alpha=-group["lr"])
            torch._foreach_lerp_(means, grads, 1 - later)


# name -> (optimizer, whether it has fused=True, tensors that a step reads, tensors that it writes)
OPTIMIZERS = {
    "adamw": (lambda params, **how: torch.optim.AdamW(params, lr=1e-3, **how), True, 4, 3),
    "sgd": (lambda params, **how: torch.optim.SGD(params, lr=1e-2, momentum=0.9, **how), True, 3, 2),
    "lion": (lambda params, **how: Lion(params), False, 3, 2),
}


def shapes(chosen):
    width, hidden = chosen.width, chosen.hidden
    layer = [(width, width), (width // 4, width), (width // 4, width), (width, width), (hidden, width), (hidden, width), (width, hidden),
             (width,), (width,)]
    return [(4 * width, width)] + chosen.layers * layer


def parameters(chosen, dtype):
    torch.manual_seed(0)
    made = [torch.nn.Parameter(torch.randn(shape).to(dtype) * 0.02) for shape in shapes(chosen)]
    for p in made:
        p.grad = torch.randn(p.shape).to(dtype)
    return made


def contenders(name, params, chosen):
    """{name: step}, each with its own state of the same parameters."""
    make, has_fused, _, _ = OPTIMIZERS[name]
    made = {"foreach": make(params, foreach=True).step}
    if has_fused:
        made["fused"] = make(params, fused=True).step
    torch._dynamo.reset()
    if chosen.inductor:
        made["inductor"] = torch.compile(make(params, foreach=True).step)
    made["lamina"] = torch.compile(make(params, foreach=True).step, backend="lamina", options={"require": 1})
    return made


def in_turns(functions, chosen):
    for function in functions.values():
        for _ in range(3):
            function()
    medians = {name: [] for name in functions}
    for _ in range(chosen.rounds):
        for name, function in functions.items():
            times, end = [], time.perf_counter() + chosen.seconds
            while not times or time.perf_counter() < end:
                begin = time.perf_counter()
                function()
                times.append(time.perf_counter() - begin)
            medians[name].append(statistics.median(times))
    return {name: statistics.median(values) for name, values in medians.items()}


def sweeps(params):
    """{name: function}. 16-bit numbers are swept two at a time."""
    data, grads = ([t.view(torch.float32) for t in tensors] for tensors in ([p.detach() for p in params], [p.grad for p in params]))
    return {"x *= a": lambda: [x.mul_(1.0) for x in data], "x += y": lambda: [x.add_(y, alpha=0.0) for x, y in zip(data, grads)]}


def steps(make, params, compiled):
    optimizer = make([torch.nn.Parameter(p.detach().clone()) for p in params])
    own = optimizer.param_groups[0]["params"]
    step = torch.compile(optimizer.step, backend="lamina") if compiled else optimizer.step
    for i in range(5):
        for p, given in zip(own, params):
            p.grad = given.grad.to(p.dtype) * (1 - 0.3 * i)
        step()
    return [p.detach().double() for p in own]


def error(name, params):
    """The error of lamina over that of PyTorch, for the smallest parameters."""
    some = sorted(params, key=torch.numel)[:8]
    make = lambda given: OPTIMIZERS[name][0](given, foreach=True)
    wide = [torch.nn.Parameter(p.detach().double()) for p in some]
    for p, given in zip(wide, some):
        p.grad = given.grad.double()
    exact = steps(make, wide, False)
    off = lambda made: max((a - b).abs().max().item() for a, b in zip(made, exact))
    torch._dynamo.reset()
    return off(steps(make, some, True)) / max(off(steps(make, some, False)), 1e-12)


def measured(name, chosen):
    params = parameters(chosen, {"f32": torch.float32, "bf16": torch.bfloat16}[chosen.dtype])
    _, _, reads, writes = OPTIMIZERS[name]
    size = sum(p.numel() * p.element_size() for p in params)
    row = {"optimizer": name, "tensors": len(params), "elements": sum(map(torch.numel, params)), "error": error(name, params)}
    torch._dynamo.reset()
    row["seconds"] = in_turns({**contenders(name, params, chosen), **sweeps(params)}, chosen)
    row["bandwidth"] = size * max(2 / row["seconds"].pop("x *= a"), 3 / row["seconds"].pop("x += y"))
    row["bound"] = size * (reads + writes) / row["bandwidth"]
    return row


def show(row):
    print(f"{row['optimizer']}: {row['tensors']} tensors, {row['elements'] / 1e6:.1f} million elements, {row['bandwidth'] / 1e9:.1f} GB/s, "
          f"error {row['error']:.2f} of foreach's")
    for name, seconds in row["seconds"].items():
        print(f"  {name:10} {seconds * 1e3:9.2f} ms  {row['bound'] / seconds:6.2f} of the bandwidth", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("optimizers", nargs="*", metavar="OPTIMIZER")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=2816)
    parser.add_argument("--layers", type=int, default=11)
    parser.add_argument("--dtype", choices=("f32", "bf16"), default="f32")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--inductor", action="store_true")
    parser.add_argument("--json")
    parser.add_argument("--smoke", action="store_true", help="small tensors, a moment")
    chosen = parser.parse_args()
    for name in chosen.optimizers:
        if name not in OPTIMIZERS:
            parser.error(f"optimizer {name!r} is unknown, allowed is one of {', '.join(OPTIMIZERS)}")
    if chosen.smoke:
        chosen.width, chosen.hidden, chosen.layers, chosen.rounds, chosen.seconds = 16, 32, 1, 1, 0.001
    torch.set_num_threads(chosen.threads)
    rows = []
    for name in chosen.optimizers or OPTIMIZERS:
        rows.append(measured(name, chosen))
        show(rows[-1])
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
