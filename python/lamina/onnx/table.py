"""Maps domains and operators of ONNX to rules. A rule is a function from a node to the tensors, or the known values, of its outputs."""

from __future__ import annotations

from lamina.onnx import choices, einsum, elementwise, microsoft, norms, quantized, recurrent, reductions, resize, shapes, windows

_FAMILIES = (elementwise, reductions, norms, windows, shapes, resize, choices, einsum, quantized, recurrent)
RULES = {"": {name: rule for family in _FAMILIES for name, rule in family.RULES.items()}, microsoft.DOMAIN: microsoft.RULES}
