#!/usr/bin/env python3
"""Estimates the cost of the inner loops of generated code on other machines: cycles per vector, by llvm-mca.

    loop_costs.py [--case NAME]... [--type T]... [--machine NAME]... [--size ROWSxCOLUMNS]
                  [--compile-for PROGRAM] [--keep FOLDER] [--update FILE.md]
    loop_costs.py --check

compile_for (tools/) compiles the kernels of small graphs for each machine. llvm-objdump disassembles them, machine_loops.py
extracts the inner loops (for a loop with branches, its shortest and longest iteration), and llvm-mca simulates about a
hundred iterations of each on its model of the processor. `--machine host` is this machine. `--check` only checks that the
programs are installed. `--keep` writes the loops' assembly to a folder. `--update` writes two tables with a column per
machine to a file: the walks between the lines `<!-- loops -->` and `<!-- end of loops -->`, and the arithmetic bounds between
those of `bounds`. Exit codes: 0 success, 1 a failure, 2 usage, 3 a program is missing.

A vector is a register of f32: 16 elements, on alderlake 8. In the model every load hits the first-level cache, every branch
is predicted, and instruction fetch is unlimited. So a figure is a lower bound for arithmetic with data in the first-level
cache; it does not include memory.
"""
import argparse
import os
import re
import struct
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from llvm_programs import Failed, Missing, cost_of, disassembly_of, llvm_program, output_of  # noqa: E402
from machine_loops import instructions_of, walks_in  # noqa: E402
from report import as_markdown, as_text  # noqa: E402
from transformer_dumps import Dump  # noqa: E402

MACHINES = ["znver4", "sapphirerapids", "icelake-server", "alderlake"]
HEADER = struct.Struct("<8sQQ32s")  # header of an entry of the code cache: src/backends/cache/code_cache.cpp


# ---- the graphs

def rows_of(dump, name, dtype, shape):
    return dump.input(name, dtype, shape)


def norm(dump, source, columns):
    gamma, beta = (dump.input(name, "f32", [columns]) for name in ("gamma", "beta"))
    return dump.like("LayerNorm", [source, gamma, beta], begin_norm_axis=-1, epsilon=1e-5, keep_stats=False, use_affine=True)


def layer_norm(dump, dtype, shape):
    norm(dump, rows_of(dump, "src", dtype, shape), shape[1])


def layer_norm_backward(dump, dtype, shape):
    src, diff_dst = (rows_of(dump, name, dtype, shape) for name in ("src", "diff_dst"))
    mean, variance = (dump.input(name, "f32", [shape[0]]) for name in ("mean", "variance"))
    gamma = dump.input("gamma", "f32", [shape[1]])
    dump.op("LayerNormBackward", [src, diff_dst, mean, variance, gamma], dump.tensor(dtype, shape),
            *(dump.tensor("f32", [shape[1]]) for _ in ("diff_gamma", "diff_beta")), begin_norm_axis=-1, epsilon=1e-5,
            use_affine=True)


def added(dump, dtype, shape):
    return dump.like("Add", [rows_of(dump, name, dtype, shape) for name in ("src", "other")], auto_broadcast="numpy")


def add_layer_norm(dump, dtype, shape):
    norm(dump, added(dump, dtype, shape), shape[1])


def add_layer_norm_gelu(dump, dtype, shape):
    dump.like("GELU", [norm(dump, added(dump, dtype, shape), shape[1])], mode="gelu_erf")


def layer_norm_gelu_quantize(dump, dtype, shape):
    gelu = dump.like("GELU", [norm(dump, rows_of(dump, "src", dtype, shape), shape[1])], mode="gelu_erf")
    dump.op("Quantize", [gelu], dump.tensor("s8", shape), axis=1, qtype="per_tensor", zps=[0])
    dump.ops[-1]["attrs"]["scales"] = {"type": "f32[]", "value": [0.03]}


def layer_norm_dropout(dump, dtype, shape):
    seed, offset = (dump.input(name, "s64", []) for name in ("seed", "offset"))
    inputs = [norm(dump, rows_of(dump, "src", dtype, shape), shape[1]), seed, offset, dump.input("probability", "f32", [])]
    dump.op("Dropout", inputs, dump.tensor(dtype, shape), dump.tensor("u8", shape))


def soft_max(dump, dtype, shape):
    dump.like("SoftMax", [rows_of(dump, "src", dtype, shape)], axis=-1)


CASES = {
    "LayerNorm": (layer_norm, ["f32", "bf16"]),
    "LayerNormBackward": (layer_norm_backward, ["f32", "bf16"]),
    "Add+LayerNorm": (add_layer_norm, ["f32", "bf16"]),
    "Add+LayerNorm+GELU": (add_layer_norm_gelu, ["f32", "bf16"]),
    "LayerNorm+GELU+Quantize": (layer_norm_gelu_quantize, ["f32"]),
    "LayerNorm+Dropout": (layer_norm_dropout, ["f32", "bf16"]),
    "SoftMax": (soft_max, ["f32", "bf16"]),
}


# Cases that arithmetic bounds if data are in cache: the number of row tensors in the case's type, bytes per element of other
# tensors, and the walks over every row (a second walk for mean and variance is rare).
BOUND_BY_ARITHMETIC = {
    "Add+LayerNorm+GELU": (3, 0, "13"),
    "LayerNorm+GELU+Quantize": (1, 1, "13"),
    "LayerNorm+Dropout": (2, 1, "13"),
    "SoftMax": (2, 0, "123"),
}


def write_dump(case, dtype, shape, folder):
    dump = Dump(case)
    CASES[case][0](dump, dtype, shape)
    path = os.path.join(folder, "graph.json")
    dump.write(path)
    return path


# ---- from a graph to its kernels

def compiler(given):
    places = [given] if given else [os.path.join(ROOT, "build", kind, "bin", "compile_for") for kind in ("bench", "test")]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise Missing(f"compile_for is not built ({' or '.join(places)})")


def objects_in(folder):
    """Yields (LLVM's name of the processor, the object's bytes) for each kernel in a folder of the cache."""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            entry = file.read()
        magic, key_bytes, object_bytes, _ = HEADER.unpack_from(entry)
        if magic != b"lamina1\n" or len(entry) != HEADER.size + key_bytes + object_bytes:
            raise Failed(f"{name} is no entry of lamina's cache as this script knows it")
        key = entry[HEADER.size:HEADER.size + key_bytes].decode()
        yield key.splitlines()[1].split(" ")[0], entry[HEADER.size + key_bytes:]


# ---- the table

def costs(arguments, case, dtype, machine):
    """Returns (number and path, loop, cost) of each walk in the kernels of a case."""
    name = f"{case}-{dtype}-{machine}"
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.join(folder, "kernels")
        output_of([compiler(arguments.compile_for), machine, kernels, write_dump(case, dtype, arguments.size, folder)])
        found = []
        for processor, code in objects_in(kernels):
            path = os.path.join(folder, "kernel.o")
            with open(path, "wb") as file:
                file.write(code)
            for number, ways in enumerate(walks_in(instructions_of(disassembly_of(path)))):
                for loop in ways:
                    assembly = os.path.join(arguments.keep or folder, f"{name}-{number + 1}{loop.way}.s")
                    cost = cost_of(loop, processor if machine == "host" else machine, assembly)
                    found.append((f"{number + 1} {loop.way}".strip(), loop, cost))
        if not found:
            raise Failed(f"{name}: no inner loop was found that walks along a row")
        return found


class Walk:
    """A row of the long table."""

    def __init__(self, kernel, machine, name, loop, cost):
        self.kernel, self.machine, self.name = kernel, machine, name
        self.text, self.cycles, self.bound = loop.text(), cost.cycles / loop.vectors, cost.bound
        self.width = loop.width


def walks(arguments):
    found = []
    for case in arguments.case or CASES:
        for dtype in [each for each in CASES[case][1] if not arguments.type or each in arguments.type]:
            for machine in arguments.machine or MACHINES:
                found += [Walk(f"{case} {dtype}", machine, *each) for each in costs(arguments, case, dtype, machine)]
    return found


def long_table(found):
    return [["kernel", "machine", "walk", "instructions a vector", "cycles a vector", "bound by"]] + [
        [each.kernel, each.machine, each.name, each.text, f"{each.cycles:.2f}", each.bound] for each in found]


def by_machines(found):
    """A table with a column per machine, and an abbreviated bottleneck for each loop."""
    machines = list(dict.fromkeys(each.machine for each in found))
    lines = {}
    for each in found:
        bound = re.sub(r"(latency|dispatch).*", r"\1", each.bound.replace("port ", "p").replace("FPDivider", "divider"))
        lines.setdefault((each.kernel, each.name), {})[each.machine] = f"{each.cycles:.1f} {bound}"
    return [["kernel", "walk", *machines]] + [
        [*key, *(cells.get(machine, "-") for machine in machines)] for key, cells in sorted(lines.items(), key=order_in(found))]


def by_arithmetic(found):
    """A table of the maximum bytes per cycle: the bytes of a vector over the cycles of its walks, each with its shortest
    iteration."""
    machines = list(dict.fromkeys(each.machine for each in found))
    lines = {}
    for kernel in dict.fromkeys(each.kernel for each in found):
        case, dtype = kernel.split()
        if case not in BOUND_BY_ARITHMETIC:
            continue
        tensors, others, walks_taken = BOUND_BY_ARITHMETIC[case]
        for machine in machines:
            taken = [each for each in found if each.kernel == kernel and each.machine == machine
                     and each.name[0] in walks_taken and "longest" not in each.name]
            bytes_moved = (tensors * {"f32": 4, "bf16": 2}[dtype] + others) * taken[0].width
            lines.setdefault(kernel, []).append(f"{bytes_moved / sum(each.cycles for each in taken):.1f}")
    return [["kernel", *machines]] + [[kernel, *cells] for kernel, cells in lines.items()]


def order_in(found):
    """The sort key: kernels in their order of appearance, then the walk's number."""
    kernels = list(dict.fromkeys(each.kernel for each in found))
    return lambda item: (kernels.index(item[0][0]), item[0][1].split()[0], "longest" in item[0][1])


def update(path, name, lines):
    begin, end = f"<!-- {name} -->\n", f"\n<!-- end of {name} -->"
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if begin not in content or end not in content:
        raise Failed(f"{path} lacks the line {begin.strip()} or {end.strip()}")
    with open(path, "w", encoding="utf-8") as file:
        file.write(content.split(begin)[0] + begin + as_markdown(lines) + end + content.split(end)[1])


def size_of(text):
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text!r}, allowed is ROWSxCOLUMNS, as 4096x768")
    return [int(match[1]), int(match[2])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=CASES)
    parser.add_argument("--type", action="append", choices=["f32", "bf16"])
    parser.add_argument("--machine", action="append", choices=[*MACHINES, "host"])
    parser.add_argument("--size", type=size_of, default=[4096, 768])
    parser.add_argument("--compile-for", metavar="PROGRAM")
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--update", metavar="FILE.md")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    try:
        compiler(arguments.compile_for)
        for name in ("llvm-mca", "llvm-objdump"):
            llvm_program(name)
        if arguments.check:
            return 0
        if arguments.keep:
            os.makedirs(arguments.keep, exist_ok=True)
        found = walks(arguments)
        print(as_text(long_table(found)))
        if arguments.update:
            update(arguments.update, "loops", by_machines(found))
            update(arguments.update, "bounds", by_arithmetic(found))
    except Missing as missing:
        print(f"loop_costs: {missing}", file=sys.stderr)
        return 3
    except Failed as failed:
        print(f"loop_costs: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
