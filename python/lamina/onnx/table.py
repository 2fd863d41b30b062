"""Maps domains and operators of ONNX to rules. A rule is a function from a node to the tensors, or the known values, of its outputs."""

from __future__ import annotations

from lamina.onnx import (casts, choices, einsum, elementwise, group_query_attention, indexed, matmul_nbits, microsoft,
                         microsoft_attention, microsoft_quantized, norms, optimizers, quantized, recurrent, reductions, resize, sampling, shapes,
                         spectra, windows)

_FAMILIES = (elementwise, casts, reductions, norms, windows, shapes, indexed, resize, choices, einsum, quantized, recurrent, sampling, spectra)
_OF_MICROSOFT = (microsoft, microsoft_attention, group_query_attention, matmul_nbits, microsoft_quantized)


def _rules(families: tuple) -> dict:
    return {name: rule for family in families for name, rule in family.RULES.items()}


RULES = {"": _rules(_FAMILIES), microsoft.DOMAIN: _rules(_OF_MICROSOFT), optimizers.DOMAIN: optimizers.RULES}
