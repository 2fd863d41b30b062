"""ONNX models as functions: `from_onnx(model)`; `lamina.onnx_backend` is the interface that ONNX's own tests run.

    function.py    a model as a function of arrays
    importer.py    from a model's nodes to a graph: rules, constants computed, functions expanded
    node.py        a node as its rule sees it
    folding.py     nodes whose inputs are known, computed when the model is read
    elementwise.py reductions.py norms.py windows.py shapes.py resize.py    the rules, by family
    table.py       which operator has which rule

Weights (initializers) are constants of the graph. An operator that the table lacks, or whose rule does not fit, is replaced by the
function that ONNX defines for it; what is left is refused by name.
"""

from __future__ import annotations

from lamina.onnx.function import OnnxFunction, from_onnx

__all__ = ["from_onnx", "OnnxFunction"]
