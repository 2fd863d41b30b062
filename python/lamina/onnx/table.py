"""Maps ONNX operators to rules. A rule is a function from a node to the tensors, or the known values, of its outputs."""

from __future__ import annotations

from lamina.onnx import elementwise, norms, reductions, resize, shapes, windows

RULES = {**elementwise.RULES, **reductions.RULES, **norms.RULES, **windows.RULES, **shapes.RULES, **resize.RULES}
