#!/usr/bin/env python3
"""What the inner loops of generated code cost on machines that are not at hand: cycles a vector, by llvm-mca.

    loop_costs.py [--case NAME]... [--type T]... [--machine NAME]... [--size ROWSxCOLUMNS]
                  [--compile-for PROGRAM] [--keep FOLDER] [--update FILE.md]
    loop_costs.py --check

compile_for (tools/) makes the kernels of small graphs for each machine; llvm-objdump reads them, this script cuts out the
inner loops (of one with branches the shortest and the longest iteration), and llvm-mca runs each some hundred times on its
model of the processor. `--machine host` is this one. `--check` only says whether the programs are there. `--keep` leaves the
loops' assembly in a folder, `--update` puts a table with a column a machine between the lines `<!-- loops -->` and `<!-- end
of loops -->` of a file. Exit codes: 0 all good, 1 something failed, 2 usage, 3 a program is missing.

A vector is as many f32 as a register has: 16, on alderlake 8. The model has every load hit the first-level cache, every
branch predicted, and no limit to the fetching of instructions. So a figure is a bound from below, and says what the
arithmetic allows where data are close; nothing about memory.
"""
import argparse
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
from transformer_dumps import Dump  # noqa: E402

MACHINES = ["znver4", "sapphirerapids", "icelake-server", "alderlake"]
ITERATIONS = 400
FULL = 0.9  # of the cycles: a resource that is busy so long is what the loop waits for
HEADER = struct.Struct("<8sQQ32s")  # of an entry in the cache of code: src/backends/cache/code_cache.cpp


class Missing(Exception):
    """A program that is not installed."""


class Failed(Exception):
    """A program that said no."""


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
    dump.op("Dropout", [norm(dump, rows_of(dump, "src", dtype, shape), shape[1]), seed, offset, dump.input("probability", "f32", [])],
            dump.tensor(dtype, shape), dump.tensor("u8", shape))


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


def write_dump(case, dtype, shape, folder):
    dump = Dump(case)
    CASES[case][0](dump, dtype, shape)
    path = os.path.join(folder, "graph.json")
    dump.write(path)
    return path


# ---- programs

def llvm_program(name):
    """The newest of NAME-19, NAME that is on the path."""
    for candidate in (f"{name}-19", name):
        if shutil.which(candidate):
            return candidate
    raise Missing(f"neither {name}-19 nor {name} is installed (Debian: llvm-19)")


def compiler(given):
    places = [given] if given else [os.path.join(ROOT, "build", kind, "bin", "compile_for") for kind in ("bench", "test")]
    for place in places:
        if os.access(place, os.X_OK):
            return place
    raise Missing(f"compile_for is not built ({' or '.join(places)})")


def output_of(command):
    """What it prints, and what it warns of."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])}: {done.stderr.strip() or done.returncode}")
    return done.stdout, done.stderr


# ---- from objects to loops

def objects_in(folder):
    """(processor as LLVM calls it, object's bytes) of each kernel in a folder of the cache."""
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            entry = file.read()
        magic, key_bytes, object_bytes, _ = HEADER.unpack_from(entry)
        if magic != b"lamina1\n" or len(entry) != HEADER.size + key_bytes + object_bytes:
            raise Failed(f"{name} is no entry of lamina's cache as this script knows it")
        key = entry[HEADER.size:HEADER.size + key_bytes].decode()
        yield key.splitlines()[1].split(" ")[0], entry[HEADER.size + key_bytes:]


class Instruction:
    LINE = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")

    def __init__(self, match):
        self.address, self.name = int(match[1], 16), match[2]
        self.operands = re.sub(r"\s*(#|<).*", "", match[3]).strip()

    @property
    def target(self):
        """Where a jump within the function goes; None of other instructions."""
        return int(self.operands, 16) if self.name.startswith("j") and self.operands.startswith("0x") else None

    def __str__(self):
        return f"{self.name} {'.elsewhere' if self.target is not None else self.operands}"


def instructions_of(path):
    text, _ = output_of([llvm_program("llvm-objdump"), "-d", "--no-show-raw-insn", path])
    return [Instruction(match) for match in map(Instruction.LINE.match, text.splitlines()) if match]


class Block:
    """Instructions that run one after the other, and the addresses where the function may go on."""

    def __init__(self, instructions, follower):
        self.instructions, self.address = instructions, instructions[0].address
        last = instructions[-1]
        falls_through = follower is not None and not last.name.startswith(("jmp", "ret"))
        self.successors = [last.target] * (last.target is not None) + [follower] * falls_through


def blocks_of(instructions):
    """Address -> Block, without what no way leads to (padding)."""
    begins = {instructions[0].address} | {each.target for each in instructions if each.target is not None}
    begins |= {after.address for each, after in zip(instructions, instructions[1:]) if each.name.startswith(("j", "ret"))}
    groups = []
    for each in instructions:
        if each.address in begins:
            groups.append([])
        groups[-1].append(each)
    followers = [group[0].address for group in groups[1:]] + [None]
    blocks = {group[0].address: Block(group, follower) for group, follower in zip(groups, followers)}
    reached, to_visit = set(), [instructions[0].address]
    while to_visit:
        if (one := to_visit.pop()) not in reached:
            reached.add(one)
            to_visit += blocks[one].successors
    return {address: block for address, block in blocks.items() if address in reached}


def dominators_of(blocks, entry):
    """Address -> addresses of the blocks through which every way from the entry to it leads."""
    predecessors = {address: [other for other in blocks if address in blocks[other].successors] for address in blocks}
    found = {address: set(blocks) for address in blocks}
    found[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for address in blocks:
            before = [found[other] for other in predecessors[address]]
            now = {address} | (set.intersection(*before) if before and address != entry else set())
            changed = changed or now != found[address]
            found[address] = now
    return found, predecessors


def inner_loops(instructions):
    """(header, blocks of the body) of each natural loop that has no other within; both by address."""
    blocks = blocks_of(instructions)
    dominators, predecessors = dominators_of(blocks, instructions[0].address)
    bodies = {}
    for address, block in blocks.items():
        for header in set(block.successors) & dominators[address]:
            body, reached = bodies.setdefault(header, {header}), [address]
            while reached:
                if (one := reached.pop()) not in body:
                    body.add(one)
                    reached += predecessors[one]
    for header, body in sorted(bodies.items()):
        if not any(other in body for other in bodies if other != header):
            yield header, {address: blocks[address] for address in body}


def ways_through(header, body):
    """The instructions of the shortest and of the longest iteration; one where there is but one way."""
    def ways(choose):
        known = {}

        def rest(address):
            if address not in known:
                block = body[address]
                tails = [[] if after == header else rest(after) for after in block.successors if after in body]
                known[address] = block.instructions + choose(tails, key=len)
            return known[address]
        return rest(header)
    shortest, longest = ways(min), ways(max)
    return {"": longest} if len(shortest) == len(longest) else {"shortest": shortest, "longest": longest}


def steps_of(loop):
    """By how much an iteration moves each register that only takes constant steps."""
    value = {}  # register -> (register at the loop's begin, distance from it)

    def now(register):
        return value.get(register, (register, 0))

    for each in loop:
        operands = each.operands.split(", ")
        destination = operands[-1].lstrip("%")
        moved = re.fullmatch(r"(-?(?:0x)?[0-9a-f]*)\(%(\w+)\), %\w+", each.operands)
        constant = re.fullmatch(r"\$(-?(?:0x)?[0-9a-f]+), %\w+", each.operands)
        if each.name == "leaq" and moved:
            register, distance = now(moved[2])
            value[destination] = (register, distance + int(moved[1] or "0", 0))
        elif each.name == "movq" and re.fullmatch(r"%\w+, %\w+", each.operands):
            value[destination] = now(operands[0].lstrip("%"))
        elif each.name in ("addq", "subq") and constant:
            register, distance = now(destination)
            value[destination] = (register, distance + int(constant[1], 0) * (1 if each.name == "addq" else -1))
        elif each.name in ("incq", "decq"):
            register, distance = now(destination)
            value[destination] = (register, distance + (1 if each.name == "incq" else -1))
        elif not each.name.startswith(("cmp", "test", "j", "prefetch")):
            value[destination] = ("", 0)
    return {register: distance for register, (origin, distance) in value.items() if origin == register and distance}


class Loop:
    """One iteration of an inner loop. Walks count elements in the index register of their accesses."""
    ACCESS = re.compile(r"\(%\w+,%(\w+)(?:,\d)?\)")

    def __init__(self, instructions, way):
        self.instructions, self.way = instructions, way
        names = " ".join(each.operands for each in instructions)
        self.width = 16 if "%zmm" in names else 8
        steps = steps_of(instructions)
        indices = [match[1] for each in instructions if each.name.startswith("v") for match in [self.ACCESS.search(each.operands)]
                   if match and match[1] in steps]
        self.elements = steps[max(indices, key=indices.count)] if indices else 0
        self.is_walk = self.elements >= self.width and ("%zmm" in names or "%ymm" in names)
        memory = [each for each in instructions
                  if each.name.startswith("v") and "(" in each.operands and "(%rip)" not in each.operands]
        spills = [each for each in memory if "(%rsp)" in each.operands or "(%rbp)" in each.operands]
        touches = [each for each in memory if each not in spills]
        writes = [each for each in touches if "(" in re.split(r", (?![^(]*\))", each.operands)[-1]]
        self.loads, self.stores, self.spills = len(touches) - len(writes), len(writes), len(spills)
        self.streams = any(each.name.startswith("vmovnt") for each in writes)

    @property
    def vectors(self):
        return self.elements / self.width

    def text(self):
        """Instructions a vector: loads, stores, what is kept on the stack for want of registers, all."""
        counts = [(self.loads, "loads"), (self.stores, "stores past the caches" if self.streams else "stores"),
                  (self.spills, "spills")]
        parts = [f"{count / self.vectors:.3g} {name}" for count, name in counts if count]
        return ", ".join(parts + [f"{len(self.instructions) / self.vectors:.3g} in all"])


# ---- llvm-mca

class Cost:
    """What llvm-mca says of a loop: cycles an iteration, and what it waits for."""

    def __init__(self, region, resources):
        summary = region["SummaryView"]
        self.cycles = summary["TotalCycles"] / summary["Iterations"]
        whole = len(region["Instructions"])
        busy = {}
        for entry in region["ResourcePressureView"]["ResourcePressureInfo"]:
            if entry["InstructionIndex"] == whole:
                name = short_name(resources[entry["ResourceIndex"]])
                busy[name] = max(busy.get(name, 0), entry["ResourceUsage"])
        most = max(busy.values(), default=0)
        ports = ", ".join(name for name, usage in busy.items() if usage > 0.97 * most)
        dispatch = summary["TotaluOps"] / summary["Iterations"] / summary["DispatchWidth"]
        if most >= FULL * self.cycles:
            self.bound = ports
        elif dispatch >= FULL * self.cycles:
            self.bound = f"dispatch of {summary['DispatchWidth']} a cycle"
        else:
            self.bound = f"latency ({ports} {100 * most / self.cycles:.0f} % busy)"


def short_name(resource):
    """`Zn4FP2` -> `FP2`, `SPRPort05` -> `port 5`: models write the number of a port with up to two digits."""
    name = re.sub(r"^(Zn\d|SPR|ICX|ADLP|SKX)", "", resource.split(".")[0])
    return re.sub(r"^Port0?(\d+)$", r"port \1", name)


# Models give a store past the caches some 500 cycles, for which the loop's next iterations wait: its memory, not its arithmetic.
ORDINARY_STORES = {"vmovntps": "vmovups", "vmovntpd": "vmovupd", "vmovntdq": "vmovups"}


def cost_of(loop, processor, path):
    lines = [re.sub(r"^vmovnt\w+", lambda match: ORDINARY_STORES[match[0]], str(each)) for each in loop.instructions]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    text, _ = output_of([llvm_program("llvm-mca"), "-mtriple=x86_64", f"-mcpu={processor}", f"-iterations={ITERATIONS}", "-json",
                         path])
    said = json.loads(text)
    return Cost(said["CodeRegions"][0], said["TargetInfo"]["Resources"])


# ---- the table

def walks_in(instructions):
    """For each inner loop that walks along a row: its iterations, the shortest and the longest where branches make them differ."""
    for header, body in inner_loops(instructions):
        ways = [Loop(way, name) for name, way in ways_through(header, body).items()]
        if all(loop.is_walk for loop in ways):
            yield ways


def costs(arguments, case, dtype, machine):
    """(number and way, loop, cost) of each walk in the kernels of a case."""
    name = f"{case}-{dtype}-{machine}"
    with tempfile.TemporaryDirectory() as folder:
        kernels = os.path.join(folder, "kernels")
        output_of([compiler(arguments.compile_for), machine, kernels, write_dump(case, dtype, arguments.size, folder)])
        found = []
        for processor, code in objects_in(kernels):
            path = os.path.join(folder, "kernel.o")
            with open(path, "wb") as file:
                file.write(code)
            for number, ways in enumerate(walks_in(instructions_of(path))):
                for loop in ways:
                    assembly = os.path.join(arguments.keep or folder, f"{name}-{number + 1}{loop.way}.s")
                    cost = cost_of(loop, processor if machine == "host" else machine, assembly)
                    found.append((f"{number + 1} {loop.way}".strip(), loop, cost))
        if not found:
            raise Failed(f"{name}: no inner loop was found that walks along a row")
        return found


class Walk:
    """A line of the long table."""

    def __init__(self, kernel, machine, name, loop, cost):
        self.kernel, self.machine, self.name = kernel, machine, name
        self.text, self.cycles, self.bound = loop.text(), cost.cycles / loop.vectors, cost.bound


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
    """A column a machine; what a loop waits for in short."""
    machines = list(dict.fromkeys(each.machine for each in found))
    lines = {}
    for each in found:
        bound = re.sub(r"(latency|dispatch).*", r"\1", each.bound.replace("port ", "p").replace("FPDivider", "divider"))
        lines.setdefault((each.kernel, each.name), {})[each.machine] = f"{each.cycles:.1f} {bound}"
    return [["kernel", "walk", *machines]] + [
        [*key, *(cells.get(machine, "-") for machine in machines)] for key, cells in sorted(lines.items(), key=order_in(found))]


def order_in(found):
    """By kernel as found, then by the walk's number."""
    kernels = list(dict.fromkeys(each.kernel for each in found))
    return lambda item: (kernels.index(item[0][0]), item[0][1].split()[0], "longest" in item[0][1])


def as_text(lines):
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def update(path, lines):
    begin, end = "<!-- loops -->\n", "\n<!-- end of loops -->"
    with open(path, encoding="utf-8") as file:
        content = file.read()
    if begin not in content or end not in content:
        raise Failed(f"{path} lacks the line {begin.strip()} or {end.strip()}")
    head, *body = [f"| {' | '.join(line)} |" for line in lines]
    text = "\n".join([head, "|" + " --- |" * len(lines[0]), *body])
    with open(path, "w", encoding="utf-8") as file:
        file.write(content.split(begin)[0] + begin + text + end + content.split(end)[1])


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
            update(arguments.update, by_machines(found))
    except Missing as missing:
        print(f"loop_costs: {missing}", file=sys.stderr)
        return 3
    except Failed as failed:
        print(f"loop_costs: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
