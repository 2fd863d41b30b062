"""Graphs of operations: describe, partition, compile and call them from Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Optional, Sequence, Union

from lamina import _arrays, _core
from lamina._core import LogicalTensor
from lamina._errors import Error
from lamina._program import Port, first_reason, link, packed_port, whole
from lamina._verbose import Progress

if TYPE_CHECKING:
    from lamina.explanation import Explanation

__all__ = ["Graph", "CompiledGraph"]


class Graph:
    """A graph of deep-learning operations for the CPU.

    >>> g = Graph()
    >>> x = g.input((128, 768))
    >>> y = g.op("GELU", [g.op("LayerNorm", [x], use_affine=False, keep_stats=False)])
    >>> run = g.compile()

    fpmath_mode: "strict"; "bf16", "f16", "tf32" or "any" allow products of f32 to be computed in a narrower type.
    """

    def __init__(self, fpmath_mode: str = "strict") -> None:
        self._graph = _core.Graph(fpmath_mode)
        self._inputs: list[LogicalTensor] = []
        self._constants: dict[int, tuple] = {}
        self._from_dump = False  # a dump contains tensors that this object has not returned
        self._own: dict[int, LogicalTensor] = {}  # the tensors that this graph has returned
        self._next_tensor = 0
        self._next_op = 0

    @classmethod
    def from_json(cls, text: str, name: str = "graph") -> "Graph":
        """Creates a graph from a dump in the format of oneDNN Graph and lamina. `name` prefixes error messages.

        Raises lamina.Error if the text is not a dump (with line and column) or an op is rejected (with the op, port or
        attribute)."""
        made = cls()
        made._graph = _core.Graph.from_json(text, name)
        made._constants = {entry["id"]: (made._graph.tensor(entry["id"]), entry["value"]) for entry in json.loads(text).get("constants", [])}
        made._inputs = [tensor for tensor in made._graph.border()[0] if tensor.id not in made._constants]
        made._from_dump = True
        made._next_tensor = made._next_op = 1 << 40  # above the ids in dumps
        return made

    def to_json(self) -> str:
        """Returns the graph as a dump, which `lamina replay` runs and `lamina explain` explains."""
        return self._graph.to_json()

    def input(self, shape: Optional[Sequence[Optional[int]]] = None, dtype: str = "f32", *,
              strides: Optional[Sequence[int]] = None, constant: bool = False) -> LogicalTensor:
        """Adds a tensor that the caller passes.

        shape: extents, with None for an extent that differs from call to call; None as a whole if the rank is unknown. dtype: a
        name of lamina.data_types(), such as "f32"; for "s4" and "u4" the caller passes a dense uint8 array with two elements per
        byte along the last axis, the first in the low four bits. strides: in elements, 0 broadcasts;
        default dense row-major. constant: the tensor has the same values at every call, so that data derived from it is
        cached."""
        tensor = LogicalTensor(self._take_id(), dtype, shape, strides, "constant" if constant else "undef")
        self._inputs.append(tensor)
        return self._owned(tensor)

    def constant(self, value: float, dtype: str = "f32") -> LogicalTensor:
        """Adds a scalar whose value is known now, rounded to dtype. It is compiled in and is not an argument of the call."""
        return _Constant(self._owned(LogicalTensor(self._take_id(), dtype, ())), value)

    def op(self, kind: str, inputs: Iterable[Any], *, name: str = "", dtype: Optional[str] = None,
           outputs: Optional[Sequence[bool]] = None, **attributes: Any) -> Union[LogicalTensor, tuple]:
        """Adds an operation; docs/ops/KIND.md and `lamina.op_schema(kind)` document its ports and attributes.

        inputs: tensors in the order of the ports; None omits an optional one. dtype: the type of the first output, if it may
        be chosen (MatMul, TypeCast). outputs: which optional outputs to compute; default all. Returns the output, or a tuple
        of them (None for an omitted one). Raises lamina.Error with the op, the port or attribute, the given and the allowed
        value; the graph is then unchanged."""
        inputs = list(inputs)
        given = [self._given(kind, name, place, tensor) for place, tensor in enumerate(inputs)]
        node = _core.Op(self._next_op, kind, given, attributes, name)
        inferred = node
        if dtype is not None and attributes.get("zps"):  # these are of dtype, perhaps not of the type that is inferred
            inferred = _core.Op(self._next_op, kind, given, {**attributes, "zps": []}, name)
        made = []
        for position, described in enumerate(inferred.infer_outputs()):
            if outputs is not None and not outputs[position]:
                node.leave_out_output()
                made.append(None)
                continue
            tensor = described.with_id(self._take_id())
            if dtype is not None and position == 0:
                tensor = LogicalTensor(tensor.id, dtype, tensor.shape)
            node.add_output(tensor)
            made.append(self._owned(tensor))
        self._graph.add_op(node)
        self._next_op += 1
        for tensor in inputs:
            if isinstance(tensor, _Constant) and not tensor.told:
                self._graph.set_constant(tensor.tensor.id, tensor.value)
                self._constants[tensor.tensor.id] = (tensor.tensor, tensor.value)
                tensor.told = True
        return made[0] if len(made) == 1 else tuple(made)

    def mark_outputs(self, tensors: Iterable[LogicalTensor]) -> None:
        """Makes tensors outputs of the graph even if an op reads them."""
        for place, tensor in enumerate(tensors):
            self._check_own(f"mark_outputs: tensor {place}", tensor, tensor)
            self._graph.add_op(_core.Op(self._next_op, "End", [tensor], {}))
            self._next_op += 1

    def finalize(self) -> None:
        """Ends building: orders the ops and infers shapes. Raises lamina.Error for a cycle or contradicting shapes."""
        self._graph.finalize()

    def partitions(self, policy: str = "fusion") -> list:
        """Returns the partitions, in an order in which they can run. policy: "fusion", or "debug" for one op each."""
        self.finalize()
        return self._graph.partitions(policy)

    def explain(self, title: str = "") -> Explanation:
        """Explains why each op is in its partition: a list of partitions, which `show()` opens as a page and a notebook
        displays. Ends building.

        title: the heading of the page. Kernels are included if every shape is known; CompiledGraph.explain() explains the
        kernels that ran."""
        from lamina.explanation import Explanation

        return Explanation(self.partitions(), title=title)

    def compile(self, outputs: Optional[Sequence[LogicalTensor]] = None, *, progress: Optional[Progress] = None,
                values: Optional[Mapping[int, Any]] = None) -> "CompiledGraph":
        """Returns the graph as a function of its inputs, in the order in which they were added.

        outputs: the tensors to return; default: those that no op reads. values: arrays of constant inputs by tensor id, which
        are kept; calls pass the other inputs. Graphs with unknown extents are compiled when a call
        first uses a shape. progress: called during compilation as progress(done, total, name) with the number of compiled
        partitions (fractional while one is being compiled), their total, and the current one, "partition 3: LayerNorm +
        GELU"; if it returns true, compilation stops with lamina.Error. Raises lamina.Error if an op cannot run, with the
        reason."""
        for place, tensor in enumerate(outputs or ()):
            self._check_own(f"compile: output {place}", tensor, tensor)
        if outputs is not None and not self._graph.is_finalized:
            self.mark_outputs(outputs)
        partitions = self.partitions()
        for partition in partitions:
            if not partition.is_supported:
                raise Error(first_reason(partition), "unimplemented")
        wanted = list(outputs) if outputs is not None else self._graph.border()[1]
        return CompiledGraph(partitions, list(self._inputs), wanted, self._constants, progress, values or {})

    def _owned(self, tensor: LogicalTensor) -> LogicalTensor:
        self._own[tensor.id] = tensor
        return tensor

    def _given(self, kind: str, name: str, place: int, given: Any) -> LogicalTensor:
        """Returns the tensor of an input after checking that it belongs to this graph: ids of two graphs mean different
        tensors."""
        op = f'{kind} "{name}"' if name else kind
        tensor = _unwrap(given)
        self._check_own(f"{op}: input {place}", tensor, given)
        return tensor

    def _check_own(self, place: str, tensor: Any, given: Any) -> None:
        if not isinstance(tensor, LogicalTensor):
            hint = ": an op with several outputs returns a tuple, choose one of its entries" if isinstance(tensor, tuple) else ""
            raise Error(f"{place} is a {type(tensor).__name__}, allowed is a tensor or None{hint}")
        own = self._own.get(tensor.id)
        if given is not None and own is not tensor and (own is not None or not self._from_dump):
            raise Error(f"{place} is a tensor of another graph, allowed are tensors of this one")

    def _take_id(self) -> int:
        self._next_tensor += 1
        return self._next_tensor - 1


class _Constant:
    def __init__(self, tensor: LogicalTensor, value: float) -> None:
        self.tensor, self.value, self.told = tensor, value, False


def _unwrap(tensor: Any) -> LogicalTensor:
    if tensor is None:
        return LogicalTensor(2**64 - 1, "undef")
    return tensor.tensor if isinstance(tensor, _Constant) else tensor


def _port(tensor: LogicalTensor, shape: tuple, strides: tuple) -> Port:
    """Returns the argument for an input, from the shape and strides of the array that the caller passes."""
    if tensor.dtype in ("s4", "u4"):
        return packed_port(tensor, shape)
    return whole(LogicalTensor(tensor.id, tensor.dtype, shape, strides))


class CompiledGraph:
    """A compiled graph. Many threads may call it at once; it releases the GIL while it computes."""

    def __init__(self, partitions: list, inputs: list, outputs: list, constants: dict, progress: Optional[Progress] = None,
                 values: Mapping[int, Any] = {}) -> None:
        self._partitions, self._inputs, self._outputs, self._constants = partitions, inputs, outputs, constants
        self._progress, self._values = progress, values
        self._ready: dict = {}

    def __call__(self, *arrays: Any, out: Any = None) -> Any:
        """Runs the graph. Arrays are numpy's, torch's or any objects with `__dlpack__` or the buffer protocol, on the CPU,
        with any positive strides; nothing is copied. numpy's unsigned integers may contain the raw bits of another type.

        out: an array or a sequence of arrays to write to; default: new ones of the first input's library. Returns one array,
        or a tuple in the order of the outputs. Raises lamina.Error with the input and what is allowed."""
        key = _core.signature(arrays)
        ready = self._ready.get(key)
        if ready is None:
            ready = self._ready[key] = self.compiled_for(arrays)
        return ready(arrays, out)

    def compiled_for(self, arrays: Sequence[Any]) -> _arrays.Ready:
        """Returns the code for arrays of these types, shapes and strides; None entries are not inputs."""
        described = [_core.describe(array) for array in arrays if array is not None]
        if len(described) != len(self._inputs) - len(self._values):
            raise Error(f"{len(described)} inputs are given, allowed is {len(self._inputs) - len(self._values)}")
        passed = iter(described)
        ports = []
        for tensor in self._inputs:
            _, shape, strides = _core.describe(self._values[tensor.id]) if tensor.id in self._values else next(passed)
            ports.append(_port(tensor, shape, strides))
        linked = link(self._partitions, ports, self._outputs, self._constants, self._progress)
        for position, tensor in enumerate(self._inputs):
            if tensor.id in self._values:
                linked.run.keep(position, self._values[tensor.id])
        return _arrays.Ready(linked, arrays)

    def explain(self, title: str = "") -> Explanation:
        """As Graph.explain(), with the kernels of the most recently compiled shapes."""
        compiled = list(self._ready.values())[-1].linked.compiled if self._ready else []
        from lamina.explanation import Explanation

        return Explanation(self._partitions, compiled, title)

    def info(self) -> list:
        """Returns, for each set of compiled shapes, a list with a dict per partition: kernels, schedules, bytes and compile
        time."""
        return [[json.loads(code.info_json()) for code in ready.linked.compiled] for ready in self._ready.values()]
