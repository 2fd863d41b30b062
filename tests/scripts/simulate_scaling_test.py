#!/usr/bin/env python3
"""scripts/simulate_scaling.py: what holds whatever the costs are."""
import os
import sys
import unittest
from dataclasses import replace

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "scripts"))
from simulate_scaling import MACHINES, SLICE_NS, TWO, Call, Machine, combined_by_columns, combined_by_pairs  # noqa: E402

COSTS = {"increment_ns": 4, "handover_ns": 40, "partial_sums_ns": 6, "region_of_two_ns": 0}
KERNEL = {"case": "LayerNorm", "type": "f32", "columns": 768, "bytes_a_row": 6144, "ns_in_cache": 100, "ns_from_memory": 300}
WAYS = ("static", "counter", "counter a socket", "counter a cache")


def call(machine=MACHINES[0], rows=4096, chunk=16, **given):
    return Call(machine, COSTS, KERNEL, rows, chunk, **given)


class Simulation(unittest.TestCase):
    def test_every_chunk_is_done_once(self):
        for machine in MACHINES:
            for way in WAYS:
                for rows in (1, 17, 4096):
                    _, by_chunk = call(machine, rows, way=way).ends()
                    self.assertEqual(sorted(by_chunk), list(range(-(-rows // 16))), (machine.name, way, rows))

    def test_one_core_is_as_fast_as_without_threads(self):
        one = Machine("one core", 1, 1)
        for where in ("cache", "memory"):
            for way in WAYS:
                single = call(one, chunk=64, way=way, where=where)
                self.assertAlmostEqual(single.time() / single.alone(), 1, delta=0.01)

    def test_nothing_is_faster_than_cores_and_bandwidth_allow(self):
        for machine in MACHINES:
            for way in WAYS:
                for where in ("cache", "memory"):
                    found = call(machine, 65536, 64, way=way, where=where)
                    self.assertLessEqual(found.alone() / found.time(), found.best() * 1.001, (machine.name, way, where))

    def test_small_chunks_wait_for_the_counter(self):
        # 63 other cores, 56 of them with other caches: a chunk shorter than the time of all their increments makes threads
        # wait.
        waits, works = (call(MACHINES[1], chunk=chunk, where="cache") for chunk in (1, 64))
        self.assertGreater(waits.time(), 3 * works.time())

    def test_more_expensive_ways_between_caches_make_nothing_faster(self):
        for way in WAYS:
            cheap = call(MACHINES[2], way=way)
            expensive = replace(cheap, machine=replace(MACHINES[2], beyond_cache=8, beyond_socket=16))
            self.assertGreaterEqual(expensive.time(), cheap.time())

    def test_pages_that_one_thread_touched_cost_the_other_socket(self):
        own, foreign = (call(MACHINES[2], 65536, way="static", placement=placement) for placement in ("static", "one thread"))
        self.assertGreater(foreign.time(), 1.5 * own.time())

    def test_a_call_waits_for_a_late_thread_unless_workers_are_optional(self):
        for machine in MACHINES:
            waited, optional = (call(machine, where="cache", late=SLICE_NS, optional=optional) for optional in (False, True))
            self.assertGreater(waited.time(), SLICE_NS)
            self.assertLess(optional.time(), SLICE_NS / 10)

    def test_an_empty_region_of_two_takes_what_it_was_measured_to(self):
        empty = replace(call(TWO, 0, way="static", where="cache"), costs={**COSTS, "region_of_two_ns": 1000})
        self.assertAlmostEqual(empty.time(), 1000)

    def test_a_tree_adds_to_the_time_of_the_blocks(self):
        found = call(MACHINES[1], chunk=64, where="cache")
        ends, by_chunk = found.ends()
        last = max(end for end, _ in by_chunk.values())
        first = found.barrier([(end, core) for core, end in enumerate(ends)])
        self.assertGreater(combined_by_columns(found, 768, first), first)
        self.assertGreater(combined_by_pairs(found, 768, by_chunk), last)


if __name__ == "__main__":
    unittest.main()
