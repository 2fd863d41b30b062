"""ONNX models as functions: `from_onnx(model)`. `lamina.onnx_backend` is the interface for ONNX's own tests.

    function.py    a model as a function of arrays
    files.py       reads models without copies of their weights
    importer.py    converts a model's nodes to a graph: applies rules, computes constants, expands functions
    refusals.py    collects what is refused in a model
    stages.py      splits a model where the size of a result depends on data
    suppression.py NonMaxSuppression in NumPy
    node.py        the interface of a node for its rule
    types.py       element types of models, and the types that hold them in the graph
    folding.py     constant folding when the model is read
    scales.py      scales behind convolutions, folded into their weights
    control.py     If, Loop and Scan
    sequences.py   sequences and optional values
    inputs.py      sequences and optional values as inputs of a model
    elementwise.py casts.py reductions.py norms.py windows.py shapes.py resize.py choices.py einsum.py quantized.py recurrent.py
                   sampling.py spectra.py indexed.py
                   the rules, by family
    microsoft.py microsoft_attention.py microsoft_quantized.py group_query_attention.py matmul_nbits.py
                   the rules for ONNX Runtime's own operators
    optimizers.py  the rules for the optimisers of ONNX's training domain
    table.py       maps operators to rules

Weights (initializers) are constants of the graph. An operator without a rule, or whose rule does not apply, is replaced by
the function that ONNX defines for it. Without such a function it is refused, and lamina.Error names it.
"""

from __future__ import annotations

from lamina.onnx.function import OnnxFunction, from_onnx

__all__ = ["from_onnx", "OnnxFunction"]
