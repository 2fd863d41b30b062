"""lamina as a backend of ONNX (onnx.backend.base): prepare(model).run(inputs), on the CPU."""

from __future__ import annotations

from typing import Any

import onnx
from onnx.backend.base import Backend, BackendRep

from lamina.onnx import OnnxFunction, from_onnx

__all__ = ["LaminaBackend", "prepare", "run_model", "supports_device"]


class LaminaRep(BackendRep):
    """A prepared model."""

    def __init__(self, function: OnnxFunction) -> None:
        self.function = function

    def run(self, inputs: Any, **kwargs: Any) -> tuple:
        """inputs: arrays in the model's order. Returns a tuple of arrays."""
        return self.function(*inputs)


class LaminaBackend(Backend):
    """ONNX's interface to whoever runs its models."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> LaminaRep:
        """Raises lamina.Error, by name, for what is not carried."""
        return LaminaRep(from_onnx(model))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.upper().split(":")[0] == "CPU"


prepare, run_model, supports_device = LaminaBackend.prepare, LaminaBackend.run_model, LaminaBackend.supports_device
