"""A model as a function of arrays."""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Optional, Union

import onnx
from onnx import numpy_helper, shape_inference, version_converter

from lamina._errors import Error
from lamina._verbose import log
from lamina.explanation import Explanation
from lamina.onnx.files import MOST_VALUES_OF_SHAPES, read_bytes, read_file
from lamina.onnx.importer import Importer
from lamina.onnx.inputs import split_inputs, structured_inputs
from lamina.onnx.node import DataSized, NeedsShapes, NeedsValue
from lamina.onnx.stages import Stages

OLDEST = 13
MOST_COMPILED = 64  # graphs that are kept, for sets of values of static inputs or of shapes


def memory_for_weights() -> int:
    """Returns the bytes that the packed weights of one model may have: a quarter of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 4


class OnnxFunction:
    """A model as a function of its inputs: `f(*arrays)` or `f({"name": array})`. Returns a tuple of arrays in the model's
    order.

    A sequence is a list of arrays, and an optional value that is absent is None. The model is compiled once per their lengths. If
    an operator needs shapes that the model leaves open, it is compiled once per shapes of its inputs (`by_shapes`).

    The values of inputs that determine shapes or attributes (axes, bounds, sizes) are compiled in; `static_inputs` has their
    names. The model is compiled once per set of their values; of more than 64 sets, those used least recently are dropped."""

    def __init__(self, model: onnx.ModelProto, name: str, weights: dict) -> None:
        """model: is changed. weights: arrays of initializers, which may lack their data in the model."""
        self.name, self._model = name, _inferred(model, name)
        self._weights = {t.name: weights[t.name] if t.name in weights else numpy_helper.to_array(t) for t in model.graph.initializer}
        self.input_names = [value.name for value in model.graph.input if value.name not in self._weights]
        self.output_names = [value.name for value in model.graph.output]
        self.static_inputs: list = []
        self._structured = structured_inputs(model)
        self.by_shapes = False
        self._stages: Optional[Stages] = None
        self._compiled: dict = {}
        if self._structured:
            return  # the first call has their lengths
        try:
            self._compiled[()] = self._imported({}, {})
        except (DataSized, NeedsShapes, NeedsValue) as needed:
            self._add(needed)

    def __call__(self, *arrays: Any) -> tuple:
        """Runs the model. Raises lamina.Error with the input or the node, and what is allowed."""
        named = self._by_name(arrays)
        while self._stages is None:
            given, forms = split_inputs(self.name, named, self._structured, self.by_shapes)
            static = {name: given[name] for name in self.static_inputs if name in given}
            try:
                return self._compiled_for(static, forms)(given)
            except (DataSized, NeedsShapes, NeedsValue) as needed:
                self._add(needed)
            self._compiled.clear()
        return self._stages(named)

    def variant(self, weights: dict, shapes: dict) -> Any:
        """The model as a graph for `lamina.export`. weights: known values of inputs, by name."""
        from lamina.onnx.exported import variant_of

        return variant_of(self._model, self.name, self._weights, weights, shapes)

    def _add(self, needed: Exception) -> None:
        """Compiles the model for what an operator needs, from now on."""
        if isinstance(needed, NeedsValue):
            self.static_inputs.append(needed.name)
            log.info("%s is compiled for each value of input %r", self.name, needed.name)
        elif isinstance(needed, DataSized):
            self._stages = Stages(self._model, needed, self._weights, self.name, lambda model: OnnxFunction(model, self.name, self._weights))
            log.info("%s is split at tensors whose size or value depends on data: %s", self.name, needed)
        else:
            self.by_shapes = True
            log.info("%s is compiled for each set of shapes of its inputs", self.name)

    def explain(self, title: str = "") -> Explanation:
        """As CompiledGraph.explain(), for the static inputs of the most recent call. Raises lamina.Error if nothing is
        compiled: a model with static inputs is compiled by its first call, and one whose outputs are all known never."""
        if self._stages is not None and (stage := self._stages.first or self._stages.second) is not None:
            return stage.explain(title or self.name)
        found = [made.explain for made in self._compiled.values() if hasattr(made, "explain")]
        if not found:
            raise Error(f"{self.name}: explain: no graph is compiled, allowed is a model that was called and that computes an output")
        return found[-1](title or self.name)

    def _compiled_for(self, static: dict, forms: dict) -> Any:
        """The last entry of _compiled is the most recently used one."""
        key = (*((name, str(a.dtype), a.shape, a.tobytes()) for name, a in static.items()), *forms.items())
        found = self._compiled.get(key)
        if found is None:
            found = self._compiled[key] = self._imported(static, forms)
            if len(self._compiled) > self._most_compiled():
                del self._compiled[next(iter(self._compiled))]
        elif len(self._compiled) > 1:
            self._compiled[key] = self._compiled.pop(key, found)
        return found

    def _most_compiled(self) -> int:
        """Each graph has packed weights of its own."""
        size = sum(array.nbytes for array in self._weights.values())
        return max(1, min(MOST_COMPILED, memory_for_weights() // max(size, 1)))

    def _imported(self, static: dict, forms: dict) -> Callable:
        return Importer(self._model, self.name, self._weights, static, forms).run()

    def _by_name(self, arrays: tuple) -> dict:
        if len(arrays) == 1 and isinstance(arrays[0], dict):
            missing = [name for name in self.input_names if name not in arrays[0]]
            if missing:
                raise Error(f"{self.name}: input {missing[0]!r} is missing")
            arrays = tuple(arrays[0][name] for name in self.input_names)
        if len(arrays) != len(self.input_names):
            raise Error(f"{self.name}: {len(arrays)} inputs are given, allowed is {len(self.input_names)}: {', '.join(self.input_names)}")
        return {name: numpy_helper.to_array(a) if isinstance(a, onnx.TensorProto) else a for name, a in zip(self.input_names, arrays)}


def from_onnx(model: Union[str, os.PathLike, bytes, onnx.ModelProto], name: str = "model") -> OnnxFunction:
    """Returns a function of an ONNX model.

    model: a path, the bytes of a file, or a loaded model. ONNX's converter converts models of an opset before 13. name: used
    in messages if `model` is not a path. Raises lamina.Error if the model is not valid, or with all nodes that have an
    unsupported op, type or attribute; for nodes that depend on static inputs, the first call raises it."""
    given, weights = model, {}
    if isinstance(given, (str, os.PathLike)):
        name = str(given)
        model, weights = read_file(given)
    elif isinstance(given, bytes):
        model, weights = read_bytes(given)
    else:
        model = onnx.ModelProto()
        model.CopyFrom(given)
    if weights and not _is_of_today(model):
        model, weights = onnx.load_from_string(given) if isinstance(given, bytes) else onnx.load(given), {}
    return OnnxFunction(_of_today(model, name), name, weights)


def _inferred(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Returns the model with the shapes of its values. Inference gets no weights, which it would copy three times."""
    weightless = _without(model, "graph")
    weightless.graph.CopyFrom(_without(model.graph, "initializer"))
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= MOST_VALUES_OF_SHAPES:
            weightless.graph.initializer.append(tensor)
        else:
            weightless.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=onnx.TensorProto.EXTERNAL)
    try:
        graph = shape_inference.infer_shapes(weightless, strict_mode=False).graph
    except Exception as error:
        raise Error(f"{name}: {error}", "invalid_graph") from None
    for field in ("node", "value_info", "output"):
        model.graph.ClearField(field)
        getattr(model.graph, field).extend(getattr(graph, field))
    return model


def _without(message: Any, name: str) -> Any:
    """Returns a copy of a message without one of its fields."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == name:
            continue
        if hasattr(value, "extend"):
            getattr(copy, field.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            getattr(copy, field.name).CopyFrom(value)
        else:
            setattr(copy, field.name, value)
    return copy


def _opset(model: onnx.ModelProto) -> int:
    return next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), OLDEST)


def _is_of_today(model: onnx.ModelProto) -> bool:
    return _opset(model) >= OLDEST


def _of_today(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    if _is_of_today(model):
        return model
    opset = _opset(model)
    if opset < 9 and any(node.op_type == "Scan" for node in model.graph.node):  # the converter keeps it, with another meaning
        raise Error(f"{name}: Scan of opset {opset}, allowed is 9 or newer", "unimplemented")
    try:
        return version_converter.convert_version(model, OLDEST)
    except Exception as error:
        raise Error(f"{name}: opset {opset}, allowed is {OLDEST} or newer, or an opset that ONNX can convert to it: {error}", "unimplemented") from None
