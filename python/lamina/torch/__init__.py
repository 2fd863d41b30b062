"""lamina for PyTorch: a backend of torch.compile, functions with gradients, and modules.

    model = torch.compile(model, backend="lamina")
    print(lamina.torch.explain(model, x))        # what lamina runs, what PyTorch runs, and why

Options, as torch.compile(..., options={...}): "require" (the share of float nodes that lamina must run, 0 to 1), "dump"
(folder for JSON dumps that `lamina replay` runs), "warn" (False: no FallbackWarning), "pack" (the most bytes for packed
weights), "freeze" (True: weights change only by writes that torch counts), "reports" (a list that gets a GraphReport of each
compiled graph).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch as _torch

from lamina.torch import nn
from lamina.torch.backend import FallbackWarning, backend
from lamina.torch.functions import add_layer_norm, attention, gated_mlp, layer_norm, rms_norm, softmax
from lamina.torch.report import Report
from lamina.torch.weights import packed_bytes

__all__ = ["FallbackWarning", "Report", "add_layer_norm", "attention", "backend", "explain", "gated_mlp", "layer_norm", "nn",
           "packed_bytes", "rms_norm", "softmax"]


def explain(model: Any, *inputs: Any, **keyword_inputs: Any) -> Report:
    """Compiles `model` for these inputs, runs it (with the backward pass if gradients are enabled), and returns a Report of
    what lamina runs.

    The first floating output is summed for the backward pass; the parameters' gradients are not changed."""
    reports: list = []
    _torch._dynamo.reset()
    breaks = _torch._dynamo.utils.counters["graph_break"]
    breaks.clear()
    compiled = _torch.compile(model, backend=backend, options={"reports": reports})
    result = compiled(*inputs, **keyword_inputs)
    loss = _first_float(result)
    if loss is not None and loss.requires_grad:
        wanted = [p for p in getattr(model, "parameters", lambda: [])() if p.requires_grad] or [t for t in inputs if getattr(t, "requires_grad", False)]
        _torch.autograd.grad(loss.float().sum(), wanted, allow_unused=True)
    _torch._dynamo.reset()
    return Report(reports, sum(breaks.values()))


def _first_float(result: Any) -> Any:
    if isinstance(result, _torch.Tensor):
        return result if result.is_floating_point() else None
    values = result if isinstance(result, (list, tuple)) else result.values() if isinstance(result, Mapping) else []
    return next((found for found in map(_first_float, values) if found is not None), None)
