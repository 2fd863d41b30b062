"""Modules that replace torch.nn's. They have the same parameters under the same names, so state dicts are compatible."""

from __future__ import annotations

from typing import Any, Optional

import torch

from lamina.torch import functions as _functions

__all__ = ["LayerNorm", "RMSNorm", "GatedMLP", "Softmax"]


class LayerNorm(torch.nn.LayerNorm):
    """torch.nn.LayerNorm, computed by lamina."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _functions.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class RMSNorm(torch.nn.RMSNorm):
    """torch.nn.RMSNorm, computed by lamina."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functions.rms_norm(x, self.normalized_shape, self.weight, self.eps)


class Softmax(torch.nn.Softmax):
    """torch.nn.Softmax, computed by lamina; dim None means the last axis."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return _functions.softmax(input, -1 if self.dim is None else self.dim)


class GatedMLP(torch.nn.Module):
    """down(silu(gate(x)) * up(x)) without biases, as in LLaMA, for x: [..., features].

    Parameters: gate_proj and up_proj, [hidden, features], and down_proj, [features, hidden]."""

    def __init__(self, features: int, hidden: int, device: Optional[Any] = None, dtype: Optional[torch.dtype] = None) -> None:
        super().__init__()
        make = lambda inputs, outputs: torch.nn.Linear(inputs, outputs, bias=False, device=device, dtype=dtype)
        self.gate_proj, self.up_proj, self.down_proj = make(features, hidden), make(features, hidden), make(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _functions.gated_mlp(x, self.gate_proj.weight, self.up_proj.weight, self.down_proj.weight)
