#!/usr/bin/env python3
"""benchmarks/gpu/report.py: what two programs printed becomes one table."""
import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "benchmarks", "gpu"))
from report import table_of  # noqa: E402

NORMS = """Some GPU (cuda): copy bandwidth 4000.0 GB/s

| case | type | rows | by | time | GB/s | of copy bandwidth | schedule |
| --- | --- | --- | --- | --- | --- | --- | --- |
| forward | f32 | 16384x1024 | lamina | 40.0 us | 3355.4 | 83.9 % | warp, 4 rows |
| add+norm | bf16 | 8192x8192 | lamina | 200.0 us | 2684.4 | 67.1 % | block |
"""
TORCH = """Some GPU, PyTorch 2.15: copy bandwidth 4010.0 GB/s

| forward | f32 | 16384x1024 | eager | 50.0 us | 2684.4 | 67.1 % | |
| forward | f32 | 16384x1024 | torch.compile | 44.0 us | 3050.4 | 76.3 % | |
"""


class Report(unittest.TestCase):
    def test_the_ratio_is_to_the_fastest_peer(self):
        lines = table_of(NORMS + TORCH).splitlines()
        self.assertEqual(
            lines[0], "| case | type | rows | lamina, us | GB/s | of copy bandwidth | eager, us | torch.compile, us "
            "| over the fastest of them | schedule |")
        self.assertEqual(lines[2], "| forward | f32 | 16384x1024 | 40.0 | 3355.4 | 83.9 % | 50.0 | 44.0 | 1.10x | warp, 4 rows |")
        self.assertEqual(lines[3], "| add+norm | bf16 | 8192x8192 | 200.0 | 2684.4 | 67.1 % |  |  |  | block |")
        self.assertEqual(len(lines), 4)

    def test_without_peers_there_are_no_columns_of_theirs(self):
        lines = table_of(NORMS).splitlines()
        self.assertEqual(lines[0], "| case | type | rows | lamina, us | GB/s | of copy bandwidth | schedule |")
        self.assertEqual(lines[2], "| forward | f32 | 16384x1024 | 40.0 | 3355.4 | 83.9 % | warp, 4 rows |")


if __name__ == "__main__":
    unittest.main()
