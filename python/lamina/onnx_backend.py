"""lamina as a backend of ONNX (onnx.backend.base): prepare(model).run(inputs), on the CPU."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

from lamina.onnx import OnnxFunction, from_onnx

__all__ = ["LaminaBackend", "prepare", "run_model", "supports_device"]


class LaminaRep(BackendRep):
    """A model prepared for execution."""

    def __init__(self, function: OnnxFunction) -> None:
        self.function = function

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """Runs the model. inputs: arrays in the model's order. Returns a tuple of arrays."""
        return self.function(*inputs)


class LaminaBackend(Backend):
    """ONNX's backend interface."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> LaminaRep:
        """Returns a prepared model. Raises lamina.Error for an unsupported op, type or attribute."""
        return LaminaRep(from_onnx(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper().split(":")[0] == "CPU"


prepare, run_model, supports_device = LaminaBackend.prepare, LaminaBackend.run_model, LaminaBackend.supports_device
