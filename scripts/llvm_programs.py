"""LLVM's programs that look at code: what llvm-objdump prints of an object, and what llvm-mca says of a loop."""
import json
import os
import re
import shutil
import subprocess

ITERATIONS = 400
FULL = 0.9  # of the cycles: a resource that is busy so long is what the loop waits for


class Missing(Exception):
    """A program that is not installed."""


class Failed(Exception):
    """A program that said no."""


def llvm_program(name):
    """The newest of NAME-19, NAME that is on the path."""
    for candidate in (f"{name}-19", name):
        if shutil.which(candidate):
            return candidate
    raise Missing(f"neither {name}-19 nor {name} is installed (Debian: llvm-19)")


def output_of(command):
    """What it prints, and what it warns of."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{os.path.basename(command[0])}: {done.stderr.strip() or done.returncode}")
    return done.stdout, done.stderr


def disassembly_of(path):
    text, _ = output_of([llvm_program("llvm-objdump"), "-d", "--no-show-raw-insn", path])
    return text


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
