"""An ONNX model as a graph for `lamina.export`."""

from __future__ import annotations

from typing import Any, Optional

import numpy
import onnx

from lamina._errors import Error
from lamina.exporting import Variant
from lamina.onnx.importer import Importer
from lamina.onnx.inputs import Form, structured_inputs
from lamina.onnx.node import DataSized, NeedsValue


def variant_of(model: onnx.ModelProto, name: str, weights: dict, known: dict, shapes: dict) -> Variant:
    """weights: arrays of initializers. known: values of inputs, which become part of the model. shapes: of other inputs, by name."""
    open_inputs = [value for value in model.graph.input if value.name not in weights and value.name not in known]
    for given in (*known, *shapes):
        if given not in [value.name for value in model.graph.input]:
            raise Error(f"{name}: export: the model has no input {given!r}, allowed is one of {', '.join(value.name for value in open_inputs)}")
    structured = sorted(structured_inputs(model))
    if structured:
        raise Error(f"{name}: export: input {structured[0]!r} is a sequence or an optional value, allowed are tensors", "unimplemented")
    forms = {value.name: Form(None, (_shape_of(name, value, shapes.get(value.name)),)) for value in open_inputs}
    importer = Importer(model, name, weights, {key: numpy.asarray(value) for key, value in known.items()}, forms)
    try:
        inputs = importer.read()
    except NeedsValue as needed:
        raise Error(f"{name}: export: input {needed.name!r} determines shapes or attributes, allowed is to give its value in weights",
                    "unimplemented") from None
    except DataSized as found:
        raise Error(f"{name}: export: tensors have a size or value that depends on data: {found}", "unimplemented") from None
    return _variant(importer, inputs, [value.name for value in model.graph.output])


def _shape_of(name: str, value: onnx.ValueInfoProto, given: Optional[tuple]) -> tuple:
    dims = value.type.tensor_type.shape.dim if value.type.tensor_type.HasField("shape") else None
    if given is None:
        if dims is None or not all(dim.HasField("dim_value") for dim in dims):
            raise Error(f"{name}: export: the shape of input {value.name!r} is open, allowed is to give it in shapes", "invalid_shape")
        return tuple(dim.dim_value for dim in dims)
    if dims is not None and (len(dims) != len(given) or any(dim.HasField("dim_value") and dim.dim_value != n for dim, n in zip(dims, given))):
        known = [dim.dim_value if dim.HasField("dim_value") else "?" for dim in dims]
        raise Error(f"{name}: export: input {value.name!r} is given as {list(given)}, allowed is [{', '.join(map(str, known))}]", "invalid_shape")
    return tuple(given)


def _variant(importer: Importer, inputs: list, outputs: list) -> Variant:
    graph, tensors = importer.graph, importer.tensors
    refused = [why for what, names in (("input", inputs), ("output", outputs)) for port in names if (why := _refusal(importer, what, port))]
    passed = {tensors[port].id for port in inputs}
    made = [tensors[port] for port in outputs if port in tensors]
    refused += [f"output {port!r} is an input" for port in outputs if port in tensors and tensors[port].id in passed]
    refused += [f"output {port!r} is another output, too" for place, port in enumerate(outputs) if port in tensors and
                tensors[port].id in [tensors[other].id for other in outputs[:place] if other in tensors]]
    if refused:
        raise Error(f"{importer.name}: export: " + "; ".join(refused), "unimplemented")
    graph.mark_outputs(made)
    graph.finalize()
    read = {tensor.id for tensor in graph._graph.border()[0]}
    return Variant(graph._graph, [(tensors[port].id, port) for port in inputs if tensors[port].id in read],
                   [(tensors[port].id, port) for port in outputs], {key: array for key, array in importer.weights.items() if key in read})


def _refusal(importer: Importer, what: str, port: str) -> str:
    if port in importer.sequences:
        return f"{what} {port!r} is a sequence or an optional value"
    if port in importer.values:
        return f"{what} {port!r} is a constant"
    if importer.tensors[port].id in importer.held:
        return f"{what} {port!r} has a type that lamina holds in {importer.tensors[port].dtype}"
    return ""
