"""Runs LLVM's analysis programs: llvm-objdump for the disassembly of an object, and llvm-mca for the cost of a loop."""
import json
import os
import re
import shutil
import subprocess

ITERATIONS = 400
FULL = 0.9  # share of the cycles: a resource that is busy for longer is the loop's bottleneck


class Missing(Exception):
    """Raised if a program is not installed."""


class Failed(Exception):
    """Raised if a program fails."""


def llvm_program(name):
    """Returns the path of NAME-19, or else of NAME."""
    for candidate in (f"{name}-19", name):
        if shutil.which(candidate):
            return candidate
    raise Missing(f"neither {name}-19 nor {name} is installed (Debian: llvm-19)")


def output_of(command):
    """Returns the output and the warnings of a command."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])}: {done.stderr.strip() or done.returncode}")
    return done.stdout, done.stderr


def disassembly_of(path):
    text, _ = output_of([llvm_program("llvm-objdump"), "-d", "--no-show-raw-insn", path])
    return text


class Cost:
    """llvm-mca's result for a loop: cycles per iteration, and the bottleneck."""

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


# Models assign about 500 cycles to a non-temporal store, which stalls the loop's next iterations. This is the cost of memory,
# not of arithmetic, so ordinary stores replace them.
ORDINARY_STORES = {"vmovntps": "vmovups", "vmovntpd": "vmovupd", "vmovntdq": "vmovups"}


def cost_of(loop, processor, path):
    lines = [re.sub(r"^vmovnt\w+", lambda match: ORDINARY_STORES[match[0]], str(each)) for each in loop.instructions]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    text, _ = output_of([llvm_program("llvm-mca"), "-mtriple=x86_64", f"-mcpu={processor}", f"-iterations={ITERATIONS}", "-json",
                         path])
    said = json.loads(text)
    return Cost(said["CodeRegions"][0], said["TargetInfo"]["Resources"])
