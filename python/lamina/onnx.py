"""ONNX models as lamina graphs: `from_onnx(model)` and the backend that ONNX's own tests run (`lamina.onnx_backend`).

Weights (initializers) are constants of the graph. An op that the table lacks is replaced by its function where ONNX defines one;
what is left is refused by name.
"""

from __future__ import annotations

import math
import os
from typing import Any, Callable, Union

import numpy
import onnx
import onnx.defs
from onnx import helper, numpy_helper, shape_inference

from lamina._errors import Error
from lamina.graph import Graph

__all__ = ["from_onnx", "OnnxFunction"]

_TYPES = {onnx.TensorProto.FLOAT: "f32", onnx.TensorProto.DOUBLE: "f64", onnx.TensorProto.FLOAT16: "f16", onnx.TensorProto.BFLOAT16: "bf16",
          onnx.TensorProto.BOOL: "boolean"}
_FLOATS = ("f32", "f64", "f16", "bf16")


class _Unfit(Exception):
    """A node that lamina does not carry so; the text says why."""


class _NeedsValue(Exception):
    """The value of a model's input must be known to compile."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class OnnxFunction:
    """A model as a function of its inputs: `f(*arrays)` or `f({"name": array})`; returns a tuple of arrays in the model's order.

    Integer inputs, and others that shapes or attributes depend on (axes, bounds), are compiled in: `static_inputs` names them. The
    model is compiled for each set of their values."""

    def __init__(self, model: onnx.ModelProto, name: str) -> None:
        self.name, self._model = name, model
        weights = {tensor.name for tensor in model.graph.initializer}
        self.input_names = [value.name for value in model.graph.input if value.name not in weights]
        self.output_names = [value.name for value in model.graph.output]
        self.static_inputs = [v.name for v in model.graph.input if v.name in self.input_names and _is_integer(v)]
        self._compiled: dict = {}
        if not self.static_inputs:
            try:
                self._compiled[()] = _Importer(model, name, {}).run()
            except _NeedsValue as needed:
                self.static_inputs.append(needed.name)

    def __call__(self, *arrays: Any) -> tuple:
        given = self._by_name(arrays)
        while True:
            static = {name: given[name] for name in self.static_inputs}
            key = tuple((str(a.dtype), a.shape, a.tobytes()) for a in static.values())
            try:
                if key not in self._compiled:
                    self._compiled[key] = _Importer(self._model, self.name, static).run()
                return self._compiled[key](given)
            except _NeedsValue as needed:
                self.static_inputs.append(needed.name)
                self._compiled.clear()

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
    """A function of an ONNX model (opset 13 or newer), a path, its bytes or the loaded model.

    Raises lamina.Error naming the node and what is allowed where the model is not valid, or an op, type or attribute is not
    carried; of a model with static inputs at the first call."""
    if isinstance(model, (str, os.PathLike)):
        name, model = str(model), onnx.load(model)
    elif isinstance(model, bytes):
        model = onnx.load_from_string(model)
    return OnnxFunction(model, name)


def _is_integer(value: onnx.ValueInfoProto) -> bool:
    kind = value.type.tensor_type.elem_type
    return kind in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)


def _plain(array: Any) -> Any:
    """What numpy's protocols share: brain floats become their bits."""
    return array.view("uint16") if str(getattr(array, "dtype", "")) == "bfloat16" else array


def _typed(array: Any, dtype: str) -> Any:
    """Bits of brain floats as the type that ONNX's own package has for them."""
    if dtype != "bf16" or not isinstance(array, numpy.ndarray):
        return array
    return array.view(helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16))


class _Importer:
    def __init__(self, model: onnx.ModelProto, name: str, static: dict) -> None:
        self.model, self.name, self.static = model, name, static
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        if self.opset < 13:
            raise Error(f"{name}: opset {self.opset}, allowed is 13 or newer", "unimplemented")
        self.graph = Graph()
        self.tensors: dict[str, Any] = {}
        self.weights: dict[int, numpy.ndarray] = {}  # by tensor id
        self.values: dict[str, numpy.ndarray] = {}  # known now: initializers and what Constant nodes hold

    def run(self) -> Callable:
        """A function of the inputs by their names."""
        try:
            model = shape_inference.infer_shapes(self.model, strict_mode=False)
        except Exception as error:
            raise Error(f"{self.name}: {error}", "invalid_graph") from None
        graph = model.graph
        self.values = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self.values.update(self.static)
        inputs = [value for value in graph.input if value.name not in self.values]
        self.open = {value.name for value in inputs}
        for value in inputs:
            self.tensors[value.name] = self._input(value)
        for node in graph.node:
            self._node(node, 0)
        outputs = [self._tensor(value.name, f"output {value.name!r}") for value in graph.output]
        passed = {self.tensors[v.name].id for v in inputs}
        if any(tensor.id in passed for tensor in outputs) or len({t.id for t in outputs}) != len(outputs):
            raise Error(f"{self.name}: an output is an input or another output, allowed is what a node computes", "unimplemented")
        compiled = self.graph.compile(outputs)
        names = {self.tensors[value.name].id: value.name for value in inputs}
        order = [names.get(tensor.id) for tensor in self.graph._inputs]
        weights = [self.weights.get(tensor.id) for tensor in self.graph._inputs]
        types = [tensor.dtype for tensor in outputs]

        def call(given: dict) -> tuple:
            made = compiled(*[weight if name is None else _plain(given[name]) for name, weight in zip(order, weights)])
            made = made if isinstance(made, tuple) else (made,)
            return tuple(_typed(array, dtype) for array, dtype in zip(made, types))

        return call

    def _input(self, value: onnx.ValueInfoProto) -> Any:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or kind.elem_type not in _TYPES:
            raise Error(f"{self.name}: input {value.name!r} is {_type_name(value.type)}, allowed is a tensor of {', '.join(_TYPES.values())}",
                        "unimplemented")
        if not kind.HasField("shape"):
            return self.graph.input(None, _TYPES[kind.elem_type])
        shape = [dim.dim_value if dim.HasField("dim_value") else None for dim in kind.shape.dim]
        return self.graph.input(shape, _TYPES[kind.elem_type])

    def _tensor(self, name: str, where: str) -> Any:
        if name in self.tensors:
            return self.tensors[name]
        if name not in self.values:
            raise Error(f"{self.name}: {where} reads {name!r}, which nothing makes", "invalid_graph")
        array = self.values[name]
        dtype = {"float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "bool": "boolean"}.get(str(array.dtype))
        if dtype is None:
            raise _Unfit(f"{name!r} is a tensor of {array.dtype}")
        tensor = self.graph.input(array.shape, dtype, constant=True)
        self.weights[tensor.id] = numpy.ascontiguousarray(array if dtype != "bf16" else array.view("uint16"))
        self.tensors[name] = tensor
        return tensor

    def _node(self, node: onnx.NodeProto, depth: int) -> None:
        where = f"node {node.name or node.output[0]!r} ({node.op_type})"
        rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        why = "no rule" if node.domain in ("", "ai.onnx") else f"domain {node.domain!r}"
        if rule is not None:
            try:
                made = rule(_Call(self, node, where))
                for name, tensor in zip(node.output, made if isinstance(made, (list, tuple)) else [made]):
                    if name:
                        (self.values if isinstance(tensor, numpy.ndarray) else self.tensors)[name] = tensor
                return
            except _Unfit as unfit:
                why = str(unfit)
            except Error as refused:
                why = str(refused)
        if depth < 4 and self._expand(node, depth):
            return
        raise Error(f"{self.name}: {where}: {why}", "unimplemented")

    def _expand(self, node: onnx.NodeProto, depth: int) -> bool:
        """Replaces the node by the body of the function that ONNX defines for it."""
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, node.domain)
        except Exception:
            return False
        if not schema.has_function:
            return False
        body = schema.function_body
        defaults = {name: attribute.default_value for name, attribute in schema.attributes.items() if attribute.default_value.name}
        given = {**defaults, **{attribute.name: attribute for attribute in node.attribute}}
        prefix = f"{node.output[0]}/"
        names = {**{a: b for a, b in zip(body.input, node.input)}, **{a: b for a, b in zip(body.output, node.output)}}
        for inner in body.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(inner)
            del copy.input[:], copy.output[:], copy.attribute[:]
            copy.input.extend(names.get(name, prefix + name) if name else "" for name in inner.input)
            copy.output.extend(names.get(name, prefix + name) if name else "" for name in inner.output)
            for attribute in inner.attribute:
                if attribute.ref_attr_name:
                    if attribute.ref_attr_name in given:
                        bound = copy.attribute.add()
                        bound.CopyFrom(given[attribute.ref_attr_name])
                        bound.name = attribute.name
                else:
                    copy.attribute.add().CopyFrom(attribute)
            self._node(copy, depth + 1)
        return True


def _type_name(kind: Any) -> str:
    if not kind.HasField("tensor_type"):
        return kind.WhichOneof("value") or "untyped"
    return onnx.TensorProto.DataType.Name(kind.tensor_type.elem_type)


class _Call:
    """A node as its rule sees it."""

    def __init__(self, importer: _Importer, node: onnx.NodeProto, where: str) -> None:
        self.importer, self.node, self.where, self.graph = importer, node, where, importer.graph
        self.attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}

    def __len__(self) -> int:
        return len(self.node.input)

    def has(self, position: int) -> bool:
        return position < len(self.node.input) and bool(self.node.input[position])

    def tensor(self, position: int) -> Any:
        return self.importer._tensor(self.node.input[position], self.where)

    def known(self, position: int) -> Any:
        """The value of an input that is known now; None where there is no such input."""
        if not self.has(position):
            return None
        name = self.node.input[position]
        if name in self.importer.open:
            raise _NeedsValue(name)
        if name not in self.importer.values:
            raise _Unfit(f"input {position} {name!r} is not constant")
        return self.importer.values[name]

    def attribute(self, name: str, default: Any) -> Any:
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def only_output(self, *positions: int) -> None:
        for position, name in enumerate(self.node.output):
            if name and position not in positions:
                raise _Unfit(f"output {position} is wanted")

    def floating(self, *tensors: Any) -> None:
        for tensor in tensors:
            if tensor.dtype not in _FLOATS:
                raise _Unfit(f"elements of {tensor.dtype}")

    def op(self, kind: str, inputs: list, **attributes: Any) -> Any:
        return self.graph.op(kind, inputs, name=self.node.name, **attributes)

    def rank(self, tensor: Any) -> int:
        if tensor.shape is None:
            raise _Unfit("the rank is not known")
        return len(tensor.shape)

    def shape(self, tensor: Any) -> list:
        if tensor.shape is None or None in tensor.shape:
            raise _Unfit("a shape is not known")
        return list(tensor.shape)


def _unary(kind: str, **attributes: Any) -> Callable:
    def rule(call: _Call) -> Any:
        x = call.tensor(0)
        call.floating(x)
        return call.op(kind, [x], **{name: call.attribute(*value) if isinstance(value, tuple) else value for name, value in attributes.items()})

    return rule


def _binary(kind: str) -> Callable:
    def rule(call: _Call) -> Any:
        left, right = call.tensor(0), call.tensor(1)
        call.floating(left, right)
        return call.op(kind, [left, right])

    return rule


def _folded(kind: str) -> Callable:
    """Ops of any number of inputs, taken two by two."""
    def rule(call: _Call) -> Any:
        made = call.tensor(0)
        call.floating(made)
        for position in range(1, len(call)):
            made = call.op(kind, [made, call.tensor(position)])
        return made if len(call) > 1 else call.op("Reorder", [made])

    return rule


def _reduce(kind: str) -> Callable:
    def rule(call: _Call) -> Any:
        x = call.tensor(0)
        call.floating(x)
        axes = call.attribute("axes", None)
        given = call.known(1) if axes is None else numpy.array(axes)
        if given is None or given.size == 0:
            if call.attribute("noop_with_empty_axes", 0):
                return call.op("Reorder", [x])
            given = numpy.arange(call.rank(x))
        if 0 in call.shape(x) or not call.rank(x):
            raise _Unfit("a reduction without elements or axes")
        return call.op(kind, [x], axes=[int(axis) for axis in given], keep_dims=bool(call.attribute("keepdims", 1)))

    return rule


def _softmax(kind: str) -> Callable:
    def rule(call: _Call) -> Any:
        x = call.tensor(0)
        call.floating(x)
        made = call.op(kind, [x], axis=call.attribute("axis", -1), **({"outputs": (True, False)} if kind == "SoftMax" else {}))
        return made[0] if isinstance(made, tuple) else made

    return rule


def _layer_norm(call: _Call) -> Any:
    x, scale = call.tensor(0), call.tensor(1)
    call.floating(x, scale)
    shape, epsilon = call.shape(x), call.attribute("epsilon", 1e-5)
    axis = call.attribute("axis", -1) % len(shape)
    if scale.dtype != x.dtype or list(scale.shape) != shape[axis:]:
        raise _Unfit(f"a scale of {scale.dtype}{list(scale.shape)}")
    stats = any(call.node.output[1:])
    inputs = [x, scale, call.tensor(2)] if call.has(2) else [x]
    made = call.op("LayerNorm", inputs, begin_norm_axis=axis, epsilon=epsilon, keep_stats=stats, use_affine=call.has(2))
    dst, *rest = made if isinstance(made, tuple) else (made,)
    dst = dst if call.has(2) else call.op("Multiply", [dst, scale])
    if not stats:
        return dst
    mean, variance = rest
    if mean.dtype != "f32":
        raise _Unfit(f"statistics of {mean.dtype}")
    rstd = call.op("Pow", [call.op("Add", [variance, call.graph.constant(epsilon, variance.dtype)])], beta=-0.5)
    column = shape[:axis] + [1] * (len(shape) - axis)
    return [dst, *(call.op("StaticReshape", [t], shape=column, special_zero=False) for t in (mean, rstd))]


def _rms_norm(call: _Call) -> Any:
    x, scale = call.tensor(0), call.tensor(1)
    axis = call.attribute("axis", -1)
    if scale.shape != tuple(call.shape(x)[axis:]):
        raise _Unfit(f"a scale of {list(scale.shape)}")
    return call.op("RMSNorm", [x, scale], begin_norm_axis=axis, epsilon=call.attribute("epsilon", 1e-5))


def _group_norm(call: _Call) -> Any:
    x, scale, bias = (call.tensor(i) for i in range(3))
    channels, groups = call.shape(x)[1], call.attribute("num_groups", 1)
    if scale.shape != (channels,):
        raise _Unfit(f"a scale of {list(scale.shape)}")
    return call.op("GroupNorm", [x, scale, bias], groups=groups, epsilon=call.attribute("epsilon", 1e-5), keep_stats=False, data_format="NCX")


def _instance_norm(call: _Call) -> Any:
    x, scale, bias = (call.tensor(i) for i in range(3))
    return call.op("GroupNorm", [x, scale, bias], groups=call.shape(x)[1], epsilon=call.attribute("epsilon", 1e-5), keep_stats=False,
                   data_format="NCX")


def _batch_norm(call: _Call) -> Any:
    if call.attribute("training_mode", 0):
        raise _Unfit("training_mode 1")
    return call.op("BatchNormInference", [call.tensor(i) for i in range(5)], epsilon=call.attribute("epsilon", 1e-5), data_format="NCX")


def _matmul(call: _Call) -> Any:
    left, right = call.tensor(0), call.tensor(1)
    call.floating(left, right)
    return call.op("MatMul", [left, right])


def _gemm(call: _Call) -> Any:
    left, right = call.tensor(0), call.tensor(1)
    call.floating(left, right)
    made = call.op("MatMul", [left, right], transpose_a=bool(call.attribute("transA", 0)), transpose_b=bool(call.attribute("transB", 0)))
    alpha, beta = call.attribute("alpha", 1.0), call.attribute("beta", 1.0)
    if alpha != 1:
        made = call.op("Multiply", [made, call.graph.constant(alpha, made.dtype)])
    if not call.has(2) or beta == 0:
        return made
    bias = call.tensor(2)
    bias = bias if beta == 1 else call.op("Multiply", [bias, call.graph.constant(beta, made.dtype)])
    return call.op("Add", [made, bias])


def _pads(call: _Call, spatial: int) -> dict:
    auto = call.attribute("auto_pad", "NOTSET")
    if auto not in ("NOTSET", "VALID"):
        return {"auto_pad": auto, "pads_begin": [0] * spatial, "pads_end": [0] * spatial}
    pads = call.attribute("pads", [0] * (2 * spatial))
    return {"pads_begin": list(pads[:spatial]), "pads_end": list(pads[spatial:])}


def _convolution(call: _Call) -> Any:
    inputs = [call.tensor(i) for i in range(len(call)) if call.has(i)]
    call.floating(*inputs)
    spatial = call.rank(inputs[0]) - 2
    return call.op("Convolution", inputs, strides=list(call.attribute("strides", [1] * spatial)), dilations=list(call.attribute("dilations", [1] * spatial)),
                   groups=call.attribute("group", 1), data_format="NCX", weights_format="OIX", **_pads(call, spatial))


def _pool(kind: str) -> Callable:
    def rule(call: _Call) -> Any:
        call.only_output(0)
        x = call.tensor(0)
        call.floating(x)
        kernel = list(call.attribute("kernel_shape", []))
        spatial = len(kernel)
        attributes = dict(kernel=kernel, strides=list(call.attribute("strides", [1] * spatial)), data_format="NCX",
                          rounding_type="ceil" if call.attribute("ceil_mode", 0) else "floor", **_pads(call, spatial))
        dilations = list(call.attribute("dilations", [1] * spatial))
        if attributes["rounding_type"] == "ceil":
            _no_window_on_padding(call.shape(x)[2:], attributes, dilations)
        if kind == "MaxPool":
            attributes["dilations"] = dilations
        elif any(d != 1 for d in dilations):
            raise _Unfit(f"dilations {dilations}")
        else:
            attributes["exclude_pad"] = not call.attribute("count_include_pad", 0)
        return call.op(kind, [x], **attributes)

    return rule


def _no_window_on_padding(extents: list, attributes: dict, dilations: list) -> None:
    """ONNX drops a last window that begins behind the data; lamina keeps it."""
    for i, extent in enumerate(extents):
        begin, end, step = attributes["pads_begin"][i], attributes["pads_end"][i], attributes["strides"][i]
        last = -(-(extent + begin + end - dilations[i] * (attributes["kernel"][i] - 1) - 1) // step)
        if last * step >= extent + begin:
            raise _Unfit("ceil_mode with a window that begins on padding")


def _reshape(call: _Call) -> Any:
    x, target = call.tensor(0), [int(v) for v in call.known(1)]
    if call.attribute("allowzero", 0) and 0 in target:
        raise _Unfit("allowzero")
    return call.op("StaticReshape", [x], shape=target, special_zero=True)


def _same_elements(shape_of: Callable) -> Callable:
    def rule(call: _Call) -> Any:
        x = call.tensor(0)
        return call.op("StaticReshape", [x], shape=[int(v) for v in shape_of(call, call.shape(x))], special_zero=False)

    return rule


def _flattened(call: _Call, shape: list) -> list:
    axis = call.attribute("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [math.prod(shape[:axis]), math.prod(shape[axis:])]


def _squeezed(call: _Call, shape: list) -> list:
    axes = call.known(1)
    gone = {i for i, e in enumerate(shape) if e == 1} if axes is None else {int(a) % len(shape) for a in numpy.atleast_1d(axes)}
    return [e for i, e in enumerate(shape) if i not in gone]


def _unsqueezed(call: _Call, shape: list) -> list:
    axes = numpy.atleast_1d(call.known(1))
    rank = len(shape) + len(axes)
    new, rest = {int(a) % rank for a in axes}, iter(shape)
    return [1 if i in new else next(rest) for i in range(rank)]


def _transpose(call: _Call) -> Any:
    x = call.tensor(0)
    return call.op("StaticTranspose", [x], order=list(call.attribute("perm", list(range(call.rank(x)))[::-1])))


def _concat(call: _Call) -> Any:
    return call.op("Concat", [call.tensor(i) for i in range(len(call))], axis=call.attribute("axis", 0))


def _clip(call: _Call) -> Any:
    x, low, high = call.tensor(0), call.known(1), call.known(2)
    call.floating(x)
    return call.op("Clamp", [x], min=-math.inf if low is None else float(low), max=math.inf if high is None else float(high))


def _power(call: _Call) -> Any:
    x, exponent = call.tensor(0), call.known(1)
    call.floating(x)
    if exponent.size != 1:
        raise _Unfit("exponents that differ")
    return call.op("Pow", [x], beta=float(exponent.flat[0]))


def _prelu(call: _Call) -> Any:
    x, slope = call.tensor(0), call.tensor(1)
    return call.op("PReLU", [x, slope], data_format="NCX", per_channel_broadcast=False)


def _gelu(call: _Call) -> Any:
    x = call.tensor(0)
    call.floating(x)
    return call.op("GELU", [x], mode="gelu_tanh" if call.attribute("approximate", "none") == "tanh" else "gelu_erf")


def _cast(call: _Call) -> Any:
    x, to = call.tensor(0), _TYPES.get(call.attribute("to", 0))
    call.floating(x)
    if to not in _FLOATS:
        raise _Unfit(f"a cast to {onnx.TensorProto.DataType.Name(call.attribute('to', 0))}")
    return call.op("Reorder", [x]) if to == x.dtype else call.op("TypeCast", [x], dtype=to)


def _cast_like(call: _Call) -> Any:
    x, like = call.tensor(0), call.tensor(1)
    call.floating(x, like)
    return call.op("Reorder", [x]) if like.dtype == x.dtype else call.op("TypeCast", [x], dtype=like.dtype)


def _mean(call: _Call) -> Any:
    total = _folded("Add")(call)
    return call.op("Multiply", [total, call.graph.constant(1 / len(call), total.dtype)])


def _where(call: _Call) -> Any:
    condition, left, right = (call.tensor(i) for i in range(3))
    call.floating(left, right)
    return call.op("Select", [condition, left, right])


def _constant(call: _Call) -> numpy.ndarray:
    for name, value in call.attributes.items():
        if name == "value":
            return numpy_helper.to_array(value)
        if name in ("value_float", "value_floats"):
            return numpy.array(value, "float32")
        if name in ("value_int", "value_ints"):
            return numpy.array(value, "int64")
    raise _Unfit("a constant that is no tensor of numbers")


def _identity(call: _Call) -> Any:
    if call.node.input[0] in call.importer.values:
        return call.known(0)
    return call.op("Reorder", [call.tensor(0)])


def _dropout(call: _Call) -> Any:
    call.only_output(0)
    if call.has(2) and bool(call.known(2)):
        raise _Unfit("training_mode true")
    return call.op("Reorder", [call.tensor(0)])


_RULES = {
    "Abs": _unary("Abs"), "Exp": _unary("Exp"), "Log": _unary("Log"), "Reciprocal": _unary("Reciprocal"), "Relu": _unary("ReLU"),
    "Sigmoid": _unary("Sigmoid"), "Sqrt": _unary("Sqrt"), "Tanh": _unary("Tanh"), "Round": _unary("Round"), "Softplus": _unary("SoftPlus"),
    "Mish": _unary("Mish"), "HardSwish": _unary("HardSwish"), "Elu": _unary("Elu", alpha=("alpha", 1.0)),
    "LeakyRelu": _unary("LeakyReLU", alpha=("alpha", 0.01)), "Swish": _unary("Swish", alpha=("alpha", 1.0)),
    "HardSigmoid": _unary("HardSigmoid", alpha=("alpha", 0.2), beta=("beta", 0.5)), "Gelu": _gelu,
    "Add": _binary("Add"), "Sub": _binary("Subtract"), "Mul": _binary("Multiply"), "Div": _binary("Divide"), "Pow": _power,
    "Max": _folded("Maximum"), "Min": _folded("Minimum"), "Sum": _folded("Add"), "Clip": _clip, "PRelu": _prelu, "Where": _where,
    "ReduceSum": _reduce("ReduceSum"), "ReduceMean": _reduce("ReduceMean"), "ReduceMax": _reduce("ReduceMax"), "ReduceMin": _reduce("ReduceMin"),
    "ReduceProd": _reduce("ReduceProd"), "ReduceL1": _reduce("ReduceL1"), "ReduceL2": _reduce("ReduceL2"),
    "Softmax": _softmax("SoftMax"), "LogSoftmax": _softmax("LogSoftmax"), "LayerNormalization": _layer_norm, "RMSNormalization": _rms_norm,
    "GroupNormalization": _group_norm, "InstanceNormalization": _instance_norm, "BatchNormalization": _batch_norm,
    "MatMul": _matmul, "Gemm": _gemm, "Conv": _convolution, "MaxPool": _pool("MaxPool"), "AveragePool": _pool("AvgPool"),
    "Reshape": _reshape, "Flatten": _same_elements(_flattened), "Squeeze": _same_elements(_squeezed),
    "Unsqueeze": _same_elements(_unsqueezed), "Transpose": _transpose, "Concat": _concat, "Cast": _cast, "CastLike": _cast_like, "Mean": _mean, "Constant": _constant,
    "Identity": _identity, "Dropout": _dropout,
}
