"""Exports models as one file that `lamina.load` and liblamina_runtime run (docs/export.md)."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import sys
import tempfile
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

from lamina import _core
from lamina._errors import Error
from lamina.graph import Graph

MOST_VARIANTS = 1024
_OUTPUTS, _INNER = 1 << 31, 1 << 32  # ids of tensors in renumbered graphs begin here
_NO_TENSOR = 2**64 - 1

Shape = Sequence[Union[int, range]]
Shapes = Union[None, Mapping[Any, Shape], Sequence[Mapping[Any, Shape]]]


class Variant(NamedTuple):
    """A model for one list of input shapes."""

    graph: _core.Graph  # finalized
    inputs: list  # (tensor id, name)
    outputs: list
    weights: dict  # tensor id -> array in the tensor's strides


def export(model: Any, path: Union[str, os.PathLike], *, isa: Union[None, str, Sequence[str]] = None, shapes: Shapes = None,
           weights: Optional[Mapping[Any, Any]] = None, example_inputs: Optional[Sequence[Any]] = None, threads: int = 0,
           packed: bool = False) -> None:
    """Writes a model with its weights and machine code to one file.

    model: a lamina.Graph; the result of lamina.from_onnx; a torch.export.ExportedProgram; a torch.nn.Module, with
    `example_inputs`; or the path of a JSON dump or an ONNX file (`.onnx`). isa: names of instruction sets, also of other machines,
    the best first; default: the best one of this machine. weights: arrays for inputs that become part of the file: by tensor or id
    for graphs, by name for ONNX models; those of ONNX and torch models are in it anyway. threads: the most that a run uses;
    default 16. packed: the file has the weights also as they are packed for each instruction set, so that the first run packs none
    of them.

    shapes: the shapes of inputs, by name, or by tensor or id for graphs: {"x": (4, 768)}. An extent may be a range: {"x":
    (range(1, 9), 768)} is a model for the batches 1 to 8. Ranges of one dict have the same length and vary together; a sequence of
    dicts is a model for all of them. Inputs that are not listed have the shapes that the model knows.

    Inputs that nothing reads are not inputs of the file. Raises lamina.Error with everything that cannot be exported."""
    with _uncollected():
        make = _maker_of(model, dict(weights or {}), example_inputs)
        variants = [make(each) for each in _expanded(shapes)]
        if len(variants) > 1:
            variants = _with_equal_ids(variants)
    _write(variants, os.fspath(path), [isa] if isinstance(isa, str) else list(isa or ()), threads, packed)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without collections of garbage: tracing makes many objects and little garbage, and torch has 170,000 objects, which
    each collection visits. They took a fifth of the export of BERT."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _maker_of(model: Any, weights: dict, example_inputs: Optional[Sequence[Any]]) -> Callable:
    """Returns a function from shapes of inputs, by what the user calls them, to a Variant."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, (torch.nn.Module, torch.export.ExportedProgram)):
        from lamina.torch.exported import maker_of

        return maker_of(model, weights, example_inputs)
    if example_inputs is not None:
        raise Error("export: example_inputs are given, allowed are they with a torch.nn.Module")
    if isinstance(model, (str, os.PathLike)):
        name = os.fspath(model)
        if name.endswith(".onnx"):
            from lamina.onnx import from_onnx

            model = from_onnx(name)
        else:
            with open(name, encoding="utf-8") as file:
                model = Graph.from_json(file.read(), name)
    if isinstance(model, Graph):
        return lambda shapes: _graph_variant(model, weights, shapes)
    if hasattr(model, "variant"):
        return lambda shapes: model.variant(weights, shapes)
    raise Error(f"export: a {type(model).__name__} is given, allowed is a Graph, the result of from_onnx, an ExportedProgram, a "
                "torch.nn.Module, or the path of a JSON dump or ONNX file")


# ---- shapes

def _expanded(shapes: Shapes) -> Iterator[dict]:
    """Yields the shapes of each variant, without ranges."""
    given = [shapes or {}] if shapes is None or isinstance(shapes, Mapping) else list(shapes)
    count = 0
    for each in given:
        ranges = [extent for shape in each.values() for extent in shape if isinstance(extent, range)]
        lengths = {len(extent) for extent in ranges} or {1}
        if len(lengths) > 1 or 0 in lengths:
            raise Error(f"export: shapes have ranges of {sorted(lengths)} extents, allowed are ranges of the same length, 1 or more")
        count += min(lengths)
        if count > MOST_VARIANTS:
            raise Error(f"export: the shapes are more than {MOST_VARIANTS} variants, allowed are {MOST_VARIANTS}")
        for place in range(min(lengths)):
            yield {key: tuple(extent[place] if isinstance(extent, range) else int(extent) for extent in shape) for key, shape in each.items()}


# ---- graphs

def _id_of(key: Any) -> int:
    found = getattr(key, "id", key)
    if not isinstance(found, int):
        raise Error(f"export: a {type(key).__name__} names an input of the graph, allowed is its tensor or id")
    return found


def _graph_variant(graph: Graph, weights: dict, shapes: dict) -> Variant:
    graph.finalize()
    own = {tensor.id: tensor for tensor in graph._graph.border()[0]}
    described = [_core.LogicalTensor(_id_of(key), _known(own, _id_of(key)).dtype, shape) for key, shape in shapes.items()]
    made = _core.with_shapes(graph._graph, described)
    arrays = {_id_of(key): as_weight(made.tensor(_known(own, _id_of(key)).id), array) for key, array in weights.items()}
    inputs = [(tensor.id, str(tensor.id)) for tensor in graph._inputs if tensor.id in own and tensor.id not in arrays]
    return Variant(made, inputs, [(tensor.id, str(tensor.id)) for tensor in made.border()[1]], arrays)


def _known(own: dict, tensor_id: int) -> Any:
    if tensor_id not in own:
        raise Error(f"export: tensor {tensor_id} is no input of the graph, allowed is one of {', '.join(map(str, own))}")
    return own[tensor_id]


def as_weight(tensor: Any, array: Any) -> Any:
    """Returns the array, copied if it must be, in the strides of its tensor. Raises lamina.Error if it is another array."""
    dtype, shape, strides = _core.describe(array)
    expected, types = tuple(tensor.shape), _core.array_types()
    if tensor.dtype in ("s4", "u4"):
        fits = dtype == "u8" and (*shape[:-1], 2 * shape[-1]) == expected
    else:
        is_held = dtype.startswith("u") and tensor.dtype in types and types[dtype][0] == types[tensor.dtype][0]
        fits = (dtype == tensor.dtype or is_held) and tuple(shape) == expected
    if not fits:
        raise Error(f"export: the data of tensor {tensor.id} are {dtype}{list(shape)}, allowed is {tensor.dtype}{list(expected)}")
    wanted = tuple(tensor.strides or ()) if tensor.dtype not in ("s4", "u4") else ()
    if wanted and all(a == b or n == 1 for a, b, n in zip(strides, wanted, shape)):
        return array
    return array.contiguous() if hasattr(array, "contiguous") else _numpy().asarray(array, order="C")


def _numpy() -> Any:
    import numpy  # Graphs without weights need none

    return numpy


# ---- variants

def _with_equal_ids(variants: list) -> list:
    """Renumbers the tensors of graphs that were made one by one: the same ids for inputs and outputs, and for constants of the same
    data."""
    if all(v.weights.keys() == variants[0].weights.keys() and all(v.weights[i] is variants[0].weights[i] for i in v.weights) and
           (v.inputs, v.outputs) == (variants[0].inputs, variants[0].outputs) for v in variants):
        return variants
    names = [[name for _, name in ports] for ports in variants[0][1:3]]
    for each in variants:
        if [[name for _, name in ports] for ports in each[1:3]] != names:
            raise Error("export: the variants of the model have other inputs or outputs", "unimplemented")
    constants = _Constants(len(names[0]))
    return [_renumbered(each, constants) for each in variants]


class _Constants:
    """Numbers for constants by type, shape, strides and data."""

    def __init__(self, first: int) -> None:
        self._first, self._numbers, self._digests = first, {}, {}

    def number_of(self, tensor: Any, array: Any) -> int:
        place = (_core.address(array, False), *_core.describe(array))
        if place not in self._digests:
            self._digests[place] = (hashlib.sha256(_bytes_of(array)).digest(), array)  # keeps the array, so that no other has its address
        key = (tensor.dtype, tuple(tensor.shape), tuple(tensor.strides or ()), self._digests[place][0])
        return self._numbers.setdefault(key, self._first + len(self._numbers))


def _bytes_of(array: Any) -> Any:
    if hasattr(array, "data_ptr"):
        torch = sys.modules["torch"]
        array = array.detach().contiguous().flatten().view(torch.uint8).numpy() if array.numel() else b""
        return memoryview(array)
    return memoryview(_numpy().ascontiguousarray(array)).cast("B") if array.size else b""


def _renumbered(variant: Variant, constants: _Constants) -> Variant:
    ids = {_NO_TENSOR: _NO_TENSOR}
    ids.update({tensor_id: place for place, (tensor_id, _) in enumerate(variant.inputs)})
    ids.update({tensor_id: _OUTPUTS + place for place, (tensor_id, _) in enumerate(variant.outputs)})
    ids.update({i: constants.number_of(variant.graph.tensor(i), array) for i, array in variant.weights.items()})
    dump = json.loads(variant.graph.to_json())
    new = lambda tensor_id: ids.setdefault(tensor_id, _INNER + tensor_id)
    for op in dump["graph"]:
        for tensor in (*op["inputs"], *op["outputs"]):
            tensor["id"] = new(tensor["id"])
    for constant in dump.get("constants", []):
        constant["id"] = new(constant["id"])
    for key in ("input_ports", "output_ports"):
        dump[key] = [new(tensor_id) for tensor_id in dump[key]]
    graph = _core.Graph.from_json(json.dumps(dump), "variant")
    graph.finalize()
    return Variant(graph, [(ids[i], name) for i, name in variant.inputs], [(ids[i], name) for i, name in variant.outputs],
                   {ids[i]: array for i, array in variant.weights.items()})


def _write(variants: list, path: str, isas: list, threads: int, packed: bool) -> None:
    """Through a temporary file, so that `path` has a whole model or stays as it is."""
    weights: dict = {}
    for variant in variants:
        for tensor_id, array in variant.weights.items():
            weights.setdefault(tensor_id, array)
    handle, made = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=os.path.basename(path) + ".")
    os.close(handle)
    try:
        _core.export_graphs([variant.graph for variant in variants], made, isas, threads, packed, list(weights.items()), variants[0].inputs,
                            variants[0].outputs)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(made, 0o666 & ~mask)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise
