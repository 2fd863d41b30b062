#!/usr/bin/env python3
"""scripts/loop_costs.py: how it finds loops in code, and the table for one kernel.

    loop_costs_test.py code                      what needs no other program
    loop_costs_test.py kernel COMPILE_FOR        the table; exit code 77, with the reason, where llvm-mca is not installed
"""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT = os.path.join(ROOT, "scripts", "loop_costs.py")
sys.path.insert(0, os.path.dirname(SCRIPT))
import llvm_programs  # noqa: E402
import machine_loops  # noqa: E402

SKIPPED = 77
PROGRAM_IS_MISSING = 3


def code(text):
    """Instructions of `ADDRESS: NAME OPERANDS` lines, as llvm-objdump prints them."""
    return [machine_loops.Instruction(machine_loops.Instruction.LINE.match(line)) for line in text.strip().splitlines()]


# for (rdx) { for (rax += 32) { load, store; if (odd) spill } }, and unreachable bytes
NESTED = code("""
  0: xorl %edx, %edx
  4: xorl %eax, %eax
  8: vmovups 0x40(%rsi,%rax,4), %zmm0
  c: vaddps (%rsi,%rax,4), %zmm0, %zmm1
  10: leaq 0x20(%rax), %rcx
  14: testb $0x1, %dl
  18: jne 0x20 <f+0x20>
  1c: vmovups %zmm1, -0x40(%rsp)
  20: vmovntps %zmm1, (%rdi,%rax,4)   # a store
  24: cmpq $0x2e0, %rax               # imm = 0x2E0
  28: movq %rcx, %rax
  2c: jb 0x8 <f+0x8>
  30: incq %rdx
  34: cmpq %r8, %rdx
  38: jl 0x4 <f+0x4>
  3c: retq
  40: nopl (%rax)
""")


class Code(unittest.TestCase):
    def test_the_inner_loop_alone_is_found(self):
        self.assertEqual([header for header, _ in machine_loops.inner_loops(NESTED)], [0x8])

    def test_a_branch_makes_a_shortest_and_a_longest_iteration(self):
        [ways] = machine_loops.walks_in(NESTED)
        self.assertEqual([(loop.way, len(loop.instructions)) for loop in ways], [("shortest", 9), ("longest", 10)])

    def test_an_iteration_without_branches_is_one(self):
        straight = [each for each in NESTED if each.address not in (0x14, 0x18, 0x1c)]
        [[loop]] = machine_loops.walks_in(straight)
        self.assertEqual(loop.way, "")

    def test_elements_loads_stores_and_spills_are_told_apart(self):
        [[_, longest]] = machine_loops.walks_in(NESTED)
        self.assertEqual((longest.elements, longest.vectors), (32, 2))
        self.assertEqual((longest.loads, longest.stores, longest.spills, longest.streams), (2, 1, 1, True))

    def test_a_walk_whose_body_begins_in_the_middle_of_the_loop_is_found(self):
        # The latch comes first, as compilers often place it; the loop is entered by a jump past it.
        rotated = code("""
          0: jmp 0x10 <f+0x10>
          4: nopl (%rax)
          8: addq $0x10, %rax
          c: cmpq $0x300, %rax
          d: jae 0x18 <f+0x18>
          10: vmovups (%rsi,%rax,4), %zmm0
          14: jmp 0x8 <f+0x8>
          18: retq
        """)
        [[loop]] = machine_loops.walks_in(rotated)
        self.assertEqual(([each.address for each in loop.instructions], loop.elements), ([0x10, 0x14, 0x8, 0xc, 0xd], 16))

    def test_loops_over_few_elements_are_no_walks(self):
        scalar = code("""
          0: vmovss (%rsi,%rax,4), %xmm0
          4: incq %rax
          8: cmpq %rax, %rdx
          c: jb 0x0 <f>
          10: retq
        """)
        self.assertEqual(list(machine_loops.walks_in(scalar)), [])

    def test_ports_have_short_names(self):
        names = ["Zn4FP2", "SPRPort05", "SPRPort11", "ICXPort0", "Zn4FP45.\x00"]
        self.assertEqual([llvm_programs.short_name(name) for name in names], ["FP2", "port 5", "port 11", "port 0", "FP45"])

    def test_a_loop_that_no_port_holds_up_waits_for_its_results(self):
        def bound(cycles, usage, uops):
            region = {"SummaryView": {"TotalCycles": cycles * 10, "Iterations": 10, "TotaluOps": uops * 10, "DispatchWidth": 6},
                      "Instructions": [0], "ResourcePressureView":
                      {"ResourcePressureInfo": [{"InstructionIndex": 1, "ResourceIndex": 0, "ResourceUsage": usage}]}}
            return llvm_programs.Cost(region, ["ICXPort5"]).bound
        self.assertEqual(bound(10, 9.5, 12), "port 5")
        self.assertEqual(bound(10, 4, 57), "dispatch of 6 a cycle")
        self.assertEqual(bound(10, 4, 12), "latency (port 5 40 % busy)")


class Kernel(unittest.TestCase):
    compile_for = None

    def run_script(self, *arguments):
        return subprocess.run([sys.executable, SCRIPT, "--compile-for", self.compile_for, *arguments], capture_output=True,
                              text=True, check=False)

    def test_layer_norm_has_two_walks_that_sum_and_one_that_writes(self):
        done = self.run_script("--case", "LayerNorm", "--type", "f32", "--machine", "znver4", "--machine", "alderlake")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = [re.split(r"\s{2,}", line) for line in done.stdout.splitlines()[1:]]
        for machine in ("znver4", "alderlake"):
            mine = [row for row in rows if row[1] == machine]
            self.assertEqual([("stores" in row[3]) for row in mine], [False, False, True], done.stdout)
            # One load, subtraction, product and sum: more than a dozen cycles would mean that another loop was found.
            self.assertTrue(all(0.5 < float(row[4]) < 12 for row in mine), done.stdout)

    def test_the_loops_stay_where_they_are_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_script("--case", "SoftMax", "--type", "bf16", "--machine", "icelake-server", "--keep", folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("SoftMax-bf16-icelake-server-1.s", os.listdir(folder))

    def test_the_compiler_names_what_it_is_not_given_right(self):
        dump = os.path.join(ROOT, "examples", "graphs", "softmax.json")
        with tempfile.TemporaryDirectory() as folder:
            for arguments, words in [(["pentium", folder, dump], 'machine "pentium", allowed is host, znver4'),
                                     (["znver4", "here", dump], 'folder "here", allowed is an absolute path'),
                                     (["znver4", folder], "usage: compile_for")]:
                done = subprocess.run([self.compile_for, *arguments], capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, words in done.stderr), (2, True), done.stderr)


def main():
    which = sys.argv[1]
    if which == "kernel":
        Kernel.compile_for = sys.argv[2]
        asked = subprocess.run([sys.executable, SCRIPT, "--check", "--compile-for", Kernel.compile_for], capture_output=True,
                               text=True, check=False)
        if asked.returncode == PROGRAM_IS_MISSING:
            print(f"skipped: {asked.stderr.strip()}")
            return SKIPPED
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Kernel if which == "kernel" else Code)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
