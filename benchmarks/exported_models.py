#!/usr/bin/env python3
"""Compares exported models: lamina's file in liblamina_runtime, AOTInductor's package in libtorch, and ONNX Runtime.

    exported_models.py [MODEL]... [--rounds R] [--seconds S] [--threads N] [--folder FOLDER] [--json FILE]
    exported_models.py --smoke

MODEL: bert (BERT-base, 12 layers, 128 tokens), llama (a block of 2048 channels with grouped queries, 128 tokens), resnet50 (one
image of 224 pixels); default: all. Weights are random, in f32. Rows of each model, one per runtime:
  export     seconds from torch.export's program to the file, with empty caches: median of R processes; ONNX Runtime compiles
             when it loads. Before, a file of that size is written and removed, so that its pages were used before: where a hypervisor
             has to find memory that was not used for a while, the first write of 344 MB takes up to 1 s instead of 0.07 s
  file       MB of the file
  load       milliseconds until the model can be called, in a process that has imported the package; the file is in the page cache
  first      milliseconds from there to the first result
  call       milliseconds per call: median of R processes, which take turns with those of the other runtimes, S seconds each
  apart      the largest difference from PyTorch's result, relative to the largest element
"lamina, packed" has packed weights in its file. Then the ratios: the others' times over lamina's, above 1 lamina is faster.

Needs the packages lamina, torch and numpy, and a C++ compiler for AOTInductor. ONNX Runtime is compared if onnxruntime and
onnxscript are there. --smoke runs small sizes with lamina alone.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RUNTIMES = {"lamina": ".lamina", "lamina, packed": ".packed.lamina", "AOTInductor": ".pt2", "ONNX Runtime": ".onnx"}


# ---- models: (module, inputs)

def bert(small):
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, layers, heads, tokens = (32, 2, 2, 16) if small else (768, 12, 12, 128)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
            self.first, self.second = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))

        def forward(self, x, mask):
            split = lambda y: y.view(y.shape[0], y.shape[1], heads, -1).transpose(1, 2)
            attended = F.scaled_dot_product_attention(split(self.query(x)), split(self.key(x)), split(self.value(x)), mask)
            x = self.norms[0](x + self.output(attended.transpose(1, 2).reshape(x.shape)))
            return self.norms[1](x + self.second(F.gelu(self.first(x))))

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions, self.norm = nn.Embedding(1000, width), nn.Embedding(tokens, width), nn.LayerNorm(width)
            self.layers = nn.ModuleList(Layer() for _ in range(layers))

        def forward(self, ids, mask):
            x = self.norm(self.words(ids) + self.positions.weight)
            mask = (1 - mask)[:, None, None, :] * -10000.0
            for layer in self.layers:
                x = layer(x, mask)
            return x

    return Bert(), (torch.randint(0, 1000, (1, tokens)), torch.ones(1, tokens))


def llama(small):
    import torch
    from torch import nn
    from torch.nn import functional as F

    width, heads, groups, hidden, tokens = (64, 4, 2, 96, 16) if small else (2048, 32, 8, 5632, 128)
    size = width // heads

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList(nn.RMSNorm(width, eps=1e-5) for _ in range(2))
            self.query, self.output = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.key, self.value = (nn.Linear(width, groups * size, bias=False) for _ in range(2))
            self.gate, self.up, self.down = (nn.Linear(a, b, bias=False) for a, b in ((width, hidden), (width, hidden), (hidden, width)))
            angles = torch.arange(tokens)[:, None] / 10000 ** (torch.arange(0, size, 2) / size)
            self.register_buffer("cos", torch.cat([angles.cos(), angles.cos()], -1))
            self.register_buffer("sin", torch.cat([angles.sin(), angles.sin()], -1))

        def rotated(self, x):
            first, second = x.chunk(2, -1)
            return x * self.cos + torch.cat([-second, first], -1) * self.sin

        def forward(self, x):
            normal = self.norms[0](x)
            split = lambda y: y.view(y.shape[0], y.shape[1], -1, size).transpose(1, 2)
            query, key = self.rotated(split(self.query(normal))), self.rotated(split(self.key(normal)))
            key, value = (y.repeat_interleave(heads // groups, 1) for y in (key, split(self.value(normal))))
            attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.output(attended.transpose(1, 2).reshape(x.shape))
            normal = self.norms[1](x)
            return x + self.down(F.silu(self.gate(normal)) * self.up(normal))

    return Block(), (torch.randn(1, tokens, width),)


def resnet50(small):
    import torch
    from torch import nn

    blocks, width, side = ((1, 1), 8, 32) if small else ((3, 4, 6, 3), 64, 224)

    class Bottleneck(nn.Module):
        def __init__(self, before, inner, stride):
            super().__init__()
            self.convolutions = nn.ModuleList([nn.Conv2d(before, inner, 1, bias=False), nn.Conv2d(inner, inner, 3, stride, 1, bias=False),
                                               nn.Conv2d(inner, 4 * inner, 1, bias=False)])
            self.norms = nn.ModuleList(nn.BatchNorm2d(n) for n in (inner, inner, 4 * inner))
            has_same_shape = before == 4 * inner and stride == 1
            self.shortcut = nn.Identity() if has_same_shape else nn.Sequential(nn.Conv2d(before, 4 * inner, 1, stride, bias=False), nn.BatchNorm2d(4 * inner))

        def forward(self, x):
            y = torch.relu(self.norms[0](self.convolutions[0](x)))
            y = torch.relu(self.norms[1](self.convolutions[1](y)))
            return torch.relu(self.norms[2](self.convolutions[2](y)) + self.shortcut(x))

    layers, before = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(3, 2, 1)], width
    for stage, count in enumerate(blocks):
        for block in range(count):
            layers.append(Bottleneck(before, width << stage, 2 if stage and not block else 1))
            before = 4 * width << stage
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10 if small else 1000))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):  # a new model's statistics do nothing
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.8, 1.2)
    return model, (torch.randn(1, 3, side, side),)


MODELS = {"bert": bert, "llama": llama, "resnet50": resnet50}


# ---- export: functions of torch.export's program, the module, its inputs and a path

def export_lamina(program, module, inputs, path):
    import lamina

    lamina.export(program, path, packed=".packed" in path.name)


def export_inductor(program, module, inputs, path):
    import torch

    torch._inductor.aoti_compile_and_package(program, package_path=str(path))


def export_onnx(program, module, inputs, path):
    import torch

    torch.onnx.export(module, inputs, str(path), dynamo=True, external_data=False, verbose=False)


EXPORTS = {"lamina": export_lamina, "lamina, packed": export_lamina, "AOTInductor": export_inductor, "ONNX Runtime": export_onnx}


# ---- runtimes: functions of a path and a number of threads, which return a function of the inputs

def load_lamina(threads):
    import lamina

    load = lamina.load

    def loaded(path):
        model = load(path)
        return lambda inputs: model(*inputs, threads=threads)

    return loaded


def load_inductor(threads):
    import torch
    import torch._inductor.package

    torch.set_num_threads(threads)

    def loaded(path):
        model = torch._inductor.aoti_load_package(path)
        return lambda inputs: model(*map(torch.from_numpy, inputs)).numpy()

    return loaded


def load_onnx(threads):
    import onnxruntime

    def loaded(path):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        return lambda inputs: session.run(None, dict(zip(names, inputs)))[0]

    return loaded


LOADERS = {"lamina": load_lamina, "lamina, packed": load_lamina, "AOTInductor": load_inductor, "ONNX Runtime": load_onnx}


def run_worker(runtime, path, arrays, threads, seconds):
    """Prints the times of one process as JSON."""
    import numpy

    with numpy.load(arrays) as stored:
        inputs, expected = [stored[f"input{i}"] for i in range(len(stored.files) - 1)], stored["expected"]
    load = LOADERS[runtime](threads)
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass
    begin = time.perf_counter()
    run = load(path)
    loaded = time.perf_counter()
    result = run(inputs)
    first = time.perf_counter()
    times = []
    while not times or time.perf_counter() - first < seconds:
        start = time.perf_counter()
        run(inputs)
        times.append(time.perf_counter() - start)
    apart = float(numpy.abs(result - expected).max() / numpy.abs(expected).max())
    print(json.dumps({"load": 1e3 * (loaded - begin), "first": 1e3 * (first - loaded), "call": 1e3 * statistics.median(times), "apart": apart}))


# ---- the comparison

def new_program(name, small):
    """Returns the module of a model, its inputs, and what torch.export makes of it."""
    import torch

    torch.manual_seed(0)
    module, inputs = MODELS[name](small)
    module.eval()
    with torch.no_grad():
        return module, inputs, torch.export.export(module, inputs)


def _use_pages(path, count):
    with tempfile.NamedTemporaryFile(dir=path.parent) as file:
        for _ in range(0, count, 1 << 20):
            file.write(bytes(1 << 20))


def run_exporter(runtime, name, path, small):
    """Prints the seconds of an export as JSON."""
    import torch

    module, inputs, program = new_program(name, small)
    _use_pages(pathlib.Path(path), 2 * sum(each.nbytes for each in program.state_dict.values()))
    if runtime.startswith("lamina"):
        import lamina
    begin = time.perf_counter()
    with torch.no_grad():
        EXPORTS[runtime](program, module, inputs, pathlib.Path(path))
    print(json.dumps({"export": time.perf_counter() - begin}))


def prepare(name, small, folder, runtimes, rounds):
    """Writes the files of a model, each by processes of their own without anything in caches. Returns for each runtime the path, the
    seconds and the bytes; a text if it could not be written."""
    import numpy
    import torch

    made = {}
    for runtime in runtimes * rounds:
        if isinstance(made.get(runtime), str):
            continue
        path = folder / (name + RUNTIMES[runtime])
        command = [sys.executable, __file__, "--export", runtime, name, str(path)] + ["--smoke"] * small
        with tempfile.TemporaryDirectory() as caches:
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": caches})
        if done.returncode == 0:
            about = made.setdefault(runtime, {"path": str(path), "bytes": path.stat().st_size, "seconds": []})
            about["seconds"].append(json.loads(done.stdout.splitlines()[-1])["export"])
        else:
            made[runtime] = done.stderr.strip().splitlines()[-1]
    for about in made.values():
        if isinstance(about, dict):
            about["export"] = statistics.median(about.pop("seconds"))
    module, inputs, _ = new_program(name, small)
    with torch.no_grad():
        expected = module(*inputs)
    numpy.savez(folder / f"{name}.npz", expected=expected.numpy(), **{f"input{i}": each.numpy() for i, each in enumerate(inputs)})
    return made


def measure(made, arrays, chosen):
    """Adds the medians of the processes' times."""
    rows = {runtime: [] for runtime, about in made.items() if isinstance(about, dict)}
    for _ in range(chosen.rounds):
        for runtime, all_of_it in rows.items():
            command = [sys.executable, __file__, "--worker", runtime, made[runtime]["path"], str(arrays), "--threads", str(chosen.threads), "--seconds", str(chosen.seconds)]
            done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(chosen.threads)})
            if done.returncode != 0:
                sys.exit(f"{runtime}: {done.stderr}")
            all_of_it.append(json.loads(done.stdout.splitlines()[-1]))
    for runtime, all_of_it in rows.items():
        made[runtime].update({key: statistics.median(each[key] for each in all_of_it) for key in all_of_it[0]})


def print_table(name, made):
    print(f"\n{name:18}{'export s':>10}{'file MB':>10}{'load ms':>10}{'first ms':>10}{'call ms':>10}{'apart':>10}")
    for runtime, about in made.items():
        if isinstance(about, str):
            print(f"{runtime:18}{about[:60]}")
            continue
        print(f"{runtime:18}{about['export']:10.2f}{about['bytes'] / 1e6:10.1f}{about['load']:10.1f}{about['first']:10.1f}{about['call']:10.2f}{about['apart']:10.1e}")
    ours = made["lamina"]
    for runtime, about in made.items():
        if isinstance(about, dict) and not runtime.startswith("lamina"):
            ratios = {key: about[key] / ours[key] for key in ("export", "load", "first", "call")}
            print(f"{runtime + ' / lamina':28}" + "".join(f"{key} {ratio:.2f}   " for key, ratio in ratios.items()))


def print_libraries():
    """The bytes of the libraries that a process needs besides those of the system."""
    import importlib.util

    sizes = {}
    from lamina import runtime

    sizes["liblamina_runtime"] = os.path.getsize(runtime._library()._name)
    for name, package, pattern in (("libtorch_cpu", "torch", "lib/libtorch_cpu.so"), ("onnxruntime", "onnxruntime", "capi/*.so*")):
        found = importlib.util.find_spec(package)
        if found is not None:
            sizes[name] = sum(path.stat().st_size for path in pathlib.Path(found.origin).parent.glob(pattern))
    print("\nlibraries, MB: " + ", ".join(f"{name} {size / 1e6:.1f}" for name, size in sizes.items()))


def is_there(runtime):
    import importlib.util

    needed = {"ONNX Runtime": ("onnxruntime", "onnxscript")}.get(runtime, ())
    return all(importlib.util.find_spec(package) is not None for package in needed)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the files, and uses those that are there")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--worker", nargs=3, metavar=("RUNTIME", "FILE", "ARRAYS"), help=argparse.SUPPRESS)
    parser.add_argument("--export", nargs=3, metavar=("RUNTIME", "MODEL", "FILE"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.export:
        return run_exporter(*chosen.export, chosen.smoke)
    if chosen.worker:
        return run_worker(*chosen.worker, chosen.threads, chosen.seconds)
    unknown = [name for name in chosen.models if name not in MODELS]
    if unknown:
        sys.exit(f"no model {', '.join(unknown)}; allowed are {', '.join(MODELS)}")
    runtimes = [each for each in RUNTIMES if is_there(each) and not (chosen.smoke and not each.startswith("lamina"))]
    if chosen.smoke:
        chosen.rounds, chosen.seconds = 1, 0
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.folder or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for name in chosen.models or MODELS:
            stored = folder / f"{name}.json"
            if stored.exists():
                made = json.loads(stored.read_text())
            else:
                made = prepare(name, chosen.smoke, folder, runtimes, chosen.rounds)
                stored.write_text(json.dumps(made))
            measure(made, folder / f"{name}.npz", chosen)
            print_table(name, made)
            results[name] = made
    print_libraries()
    if chosen.json:
        pathlib.Path(chosen.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
