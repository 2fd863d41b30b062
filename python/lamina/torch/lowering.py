"""Lowers an FX graph of ATen ops to a lamina graph.

Input: a torch.fx.GraphModule from AOTAutograd, with every shape known (FakeTensors in meta["val"]). Output: a lamina graph in
which each node that the table (table.py) supports is one or a few ops. Every other node between two of them is a Wildcard, so
that lamina's partitioner cuts around it.

A node is one of: *outer*, computed by torch (placeholders, constants, foreign nodes); *inner*, computed by lamina; or a
*view* of one of these, which computes nothing. A view of an outer tensor is a port with other strides. A view of an inner
tensor is a layout op where lamina reads it, and a torch view where torch reads it.
"""

from __future__ import annotations

import collections
import functools
import json
import math
import operator
from typing import Any, Iterable, NamedTuple, Optional

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx import GraphModule, Node

from lamina import _core
from lamina._core import LogicalTensor
from lamina._errors import Error
from lamina._program import first_reason
from lamina.torch import constants
from lamina.torch.nodes import FLOATS, MANY, VIEWS, Args, Refused, base_of, dtype_of, is_known, may_draw, name_of


MOST_JOINED = 64  # inputs of a Concat


class Source(NamedTuple):
    """The source of a port's memory: a view of an outer node's tensor."""

    root: Node
    offset: int  # in elements


@functools.cache
def weights_port(kind: str) -> Optional[int]:
    """Returns the position of the input that an op's schema names weights; None if there is none."""
    names = [port["name"] for port in json.loads(_core.op_schema_json(kind))["inputs"]]
    return names.index("weights") if "weights" in names else None


@functools.cache
def is_elementwise(kind: str) -> bool:
    return json.loads(_core.op_schema_json(kind))["class"] == "elementwise"


class WeightsUse(NamedTuple):
    """How an execution uses weights, or a tensor from which elementwise ops compute them, like scales of integers."""

    reads: int = 0  # of each element of the weights
    size: int = 0  # elements of the weights
    is_matrix: bool = True  # only of products, which read the tensor itself, perhaps transposed


class Lowering:
    def __init__(self, module: GraphModule, table: dict, view_rules: dict, left_out: Iterable[str] = ()) -> None:
        self.module, self.table, self.view_rules = module, table, view_rules
        self.left_out = dict(left_out)
        self.graph = _core.Graph()
        self.inner: dict[Node, Any] = {}  # tensors that lamina computes; a list if the node has several outputs
        self.constants: dict[Node, torch.Tensor] = {}
        self.scalars: dict[int, tuple] = {}  # constants of the graph: id -> (tensor, value)
        self.sources: dict[int, Source] = {}  # port id -> the source of its memory
        self.ports: dict[Any, LogicalTensor] = {}
        self.reasons: dict[Node, str] = {}  # for each node that torch runs
        self.node_of_op: dict[int, Node] = {}
        self.origin: dict[int, Node] = {}  # tensor id -> the node whose value it has
        self.made_from: dict[int, list] = {}  # tensor id -> the only input of its op, or all inputs of an elementwise one
        self.moved: set[int] = set()  # tensors whose op only moves elements
        self.uses: dict[int, WeightsUse] = {}  # by the ids of tensors from which weights are computed
        self.wildcards: set[int] = set()
        self._op_count = self._tensor_count = 0
        self._pending: list = []
        self._new_views: list = []  # keys of ports that the current node's ops create
        self._lower_all()
        self._connect_foreign()

    # ---- interface for rules

    def tensor(self, argument: Any, dtype: Optional[str] = None) -> LogicalTensor:
        """Returns the tensor of an argument, cast to `dtype` if needed; a number becomes a constant."""
        if isinstance(argument, Node) and not isinstance(argument.meta.get("val"), torch.Tensor):
            argument = argument.meta.get("val")
        if isinstance(argument, (bool, int, float)):
            return self.constant(argument, dtype or "f32")
        if not isinstance(argument, Node):
            raise Refused(f"argument {argument!r}")
        uniform = self.uniform(argument)
        if uniform is not None and dtype is not None:
            return self.constant(uniform, dtype)
        found = self._port_or_inner(argument)
        return found if dtype is None else self.cast(found, dtype)

    def parameter(self, node: Node, dtype: str) -> LogicalTensor:
        """Returns a tensor even if all its elements are equal, for ports that need a full shape: a norm's gamma, a part of a
        whole."""
        return self.cast(self._port_or_inner(node), dtype)

    def packed_tensor(self, node: Node, dtype: str) -> LogicalTensor:
        """Returns the tensor of s4 or u4 in the bytes of an outer node, which is dense: two along the last axis."""
        key = (dtype, node)
        if key not in self.ports:
            if self.is_inner(node):
                raise Refused(f"{dtype} in bytes that lamina computes")
            value, root = node.meta["val"], self.base(node)
            if not is_known(value) or not value.is_contiguous():
                raise Refused(f"{dtype} in bytes with gaps")
            tensor = LogicalTensor(self._take_id(), dtype, (*value.shape[:-1], 2 * value.shape[-1]))
            self.ports[key] = tensor
            self.sources[tensor.id] = Source(root, value.storage_offset() - root.meta["val"].storage_offset())
        return self.ports[key]

    def cast(self, tensor: LogicalTensor, dtype: str) -> LogicalTensor:
        if tensor.dtype == dtype:
            return tensor
        return self.op("TypeCast", [tensor], dtype=dtype)

    def constant(self, value: Any, dtype: str) -> LogicalTensor:
        if dtype not in FLOATS and not constants.is_integer_of(value, dtype):
            raise Refused(f"the constant {value} as {dtype}")
        if dtype not in FLOATS and isinstance(value, int) and int(float(value)) != value:  # constants of the graph are doubles
            with unset_fake_temporarily():
                return self.known_tensor(f"lamina_number_{value}".replace("-", "minus_"), torch.tensor(value, dtype=torch.int64))
        tensor = LogicalTensor(self._take_id(), dtype, ())
        self._pending.append(("constant", tensor, float(value)))
        return tensor

    def filled(self, value: float, shape: Iterable[int], dtype: str) -> LogicalTensor:
        """Returns a tensor whose elements all have this value."""
        return self.op("Expand", [self.constant(value, dtype)], shape=[int(extent) for extent in shape])

    def op(self, kind: str, inputs: list, dtype: Optional[str] = None, outputs: Optional[tuple] = None, **attributes: Any) -> Any:
        """Adds an op and returns its output, or a tuple if the kind has several (None for one that `outputs` omits)."""
        try:
            node = _core.Op(self._op_count, kind, inputs, attributes)
            described = node.infer_outputs()
        except Error as refused:
            raise Refused(str(refused)) from None
        self._op_count += 1
        made = []
        for position, tensor in enumerate(described):
            if outputs is not None and not outputs[position]:
                node.leave_out_output()
                made.append(None)
                continue
            tensor = LogicalTensor(self._take_id(), dtype if dtype and position == 0 else tensor.dtype, tensor.shape)
            node.add_output(tensor)
            made.append(tensor)
        self._pending.append(("op", node, self._op_count - 1))
        if len(inputs) == 1 or is_elementwise(kind):
            ids = [tensor.id for tensor in inputs if tensor is not None]
            self.made_from.update((tensor.id, ids) for tensor in made if tensor is not None)
            if kind in ("StaticReshape", "StaticTranspose"):
                self.moved.add(made[0].id)
        self._note_weights(kind, inputs, made[0], attributes)
        return made[0] if len(made) == 1 else tuple(made)

    def _note_weights(self, kind: str, inputs: list, made: LogicalTensor, attributes: dict) -> None:
        place = weights_port(kind)
        if place is None:
            return
        if attributes.get("data_format") == "NCX":
            reads = math.prod(made.shape) // max(made.shape[1], 1)
        else:
            reads = math.prod(made.shape) // max(made.shape[-1] * math.prod(inputs[place].shape[:-2]), 1)
        open_ids, seen, is_matrix = [inputs[place].id], set(), kind == "MatMul"
        while open_ids:
            found = open_ids.pop()
            if found in seen:
                continue
            seen.add(found)
            open_ids += self.made_from.get(found, [])
            if found in self.made_from:
                is_matrix = is_matrix and found in self.moved
            else:
                before = self.uses.get(found, WeightsUse())
                size = max(before.size, math.prod(inputs[place].shape))
                self.uses[found] = WeightsUse(before.reads + reads, size, before.is_matrix and is_matrix)

    def known_tensor(self, name: str, value: torch.Tensor) -> LogicalTensor:
        """Returns a tensor of this value, which becomes an attribute of the module."""
        node = next((n for n in self.constants if n.target == name), None)
        if node is None:
            first = next(iter(self.module.graph.nodes))
            self.module.register_buffer(name, value, persistent=False)
            with self.module.graph.inserting_before(first):
                node = self.module.graph.get_attr(name)
            node.meta["val"] = value
            self.constants[node] = value
        return self._port(node)

    def concatenated(self, parts: list, axis: int) -> LogicalTensor:
        """Returns the parts joined along an axis, those of more than one op in several steps."""
        while len(parts) > 1:
            groups = [parts[i:i + MOST_JOINED] for i in range(0, len(parts), MOST_JOINED)]
            parts = [group[0] if len(group) == 1 else self.op("Concat", group, axis=axis) for group in groups]
        return parts[0]

    def reshape(self, tensor: LogicalTensor, shape: Iterable[int]) -> LogicalTensor:
        shape = [int(extent) for extent in shape]
        return tensor if list(tensor.shape) == shape else self.op("StaticReshape", [tensor], shape=shape, special_zero=False)

    def used(self, node: Node) -> set:
        """Returns which outputs of a node with several outputs are read."""
        return {user.args[1] for user in node.users if user.target is operator.getitem}

    # ---- nodes

    def is_view(self, node: Node) -> bool:
        if node.target is operator.getitem:
            return self.is_view(node.args[0]) and base_of(node.args[0]) in MANY
        return node.op == "call_function" and base_of(node) in VIEWS and node not in self.reasons and node not in self.inner

    def base(self, node: Node) -> Node:
        """Returns the node that a view is a view of."""
        while self.is_view(node):
            node = node.args[0]
        return node

    def uniform(self, node: Node) -> Any:
        """Returns the value of a constant whose elements are all equal."""
        if self.is_view(node) and self.base(node) in self.constants and base_of(node) in ("expand", "view", "unsqueeze", "alias"):
            node = self.base(node)
        return constants.uniform(self.constants.get(node))

    def is_inner(self, node: Node) -> bool:
        node = self.base(node)
        if node.target is operator.getitem:
            return node.args[0] in self.inner
        return node in self.inner

    def inner_tensor(self, node: Node) -> LogicalTensor:
        if node.target is operator.getitem and node.args[0] in self.inner:
            made = self.inner[node.args[0]][node.args[1]]
            if made is None:
                raise Refused("an output that lamina does not compute")
            return made
        return self.inner[node]

    def _lower_all(self) -> None:
        for node in self.module.graph.nodes:
            if node.op == "get_attr":
                held = operator.attrgetter(node.target)(self.module)
                if isinstance(held, torch.Tensor):  # excludes the graphs of torch.cond and similar ops
                    self.constants[node] = held
            if node.op != "call_function" or node.target is operator.getitem:
                continue
            if not isinstance(node.meta.get("val"), (torch.Tensor, list, tuple)):
                if not isinstance(node.meta.get("val"), (bool, int, float)):
                    self.reasons[node] = "it returns no tensor"
                continue  # else arithmetic of sizes, whose value is known
            folded = constants.fold(node, self.constants)
            if folded is not None:
                self.constants[node] = folded
                continue
            first_op = self._op_count
            try:
                self._lower(node)
                self._commit(node)
            except (Refused, Error) as refused:
                self._undo(first_op)
                self.inner.pop(node, None)
                self.reasons[node] = str(refused)

    def _undo(self, first_op: int) -> None:
        self._pending.clear()
        self._op_count = first_op
        for key in self._new_views:
            del self.ports[key]
        self._new_views.clear()

    def _lower(self, node: Node) -> None:
        name = name_of(node)
        if node.name in self.left_out:
            raise Refused(self.left_out[node.name])
        if hasattr(node.target, "lamina_reason"):
            raise Refused(node.target.lamina_reason)
        if not all(is_known(known.meta.get("val")) for known in (node, *node.all_input_nodes)):
            raise Refused("a size or number that depends on data")
        if self.is_view(node):
            if self.is_inner(node.args[0]) and self._read_by_lamina(node):
                first_op = self._op_count
                self._inner_view(node)  # raises Refused if lamina cannot, so that torch runs it
                self._undo(first_op)  # its readers create it: a step of a longer chain may have no reader
            return
        rule = self.table.get(name)
        if rule is None:
            raise Refused("no rule")
        made = rule(self, Args(node))
        for tensor in made if isinstance(made, (list, tuple)) else [made]:
            if tensor is not None and tensor.id in self.sources:
                raise Refused("it computes nothing")
        self._check(node, made)
        self.inner[node] = list(made) if isinstance(made, (list, tuple)) else made

    def _check(self, node: Node, made: Any) -> None:
        values = node.meta["val"]
        pairs = zip(made, values) if isinstance(made, (list, tuple)) else [(made, values)]
        for tensor, value in pairs:
            if tensor is None:
                continue
            if tensor.dtype != dtype_of(value) or tuple(tensor.shape) != tuple(value.shape):
                raise Refused(f"lamina returns {tensor.dtype}{list(tensor.shape)}, torch {dtype_of(value)}{list(value.shape)}")

    def _commit(self, node: Node) -> None:
        scalars = []
        for entry in self._pending:
            if entry[0] == "constant":
                scalars.append(entry[1:])
            else:
                self.graph.add_op(entry[1])
                self.node_of_op[entry[2]] = node
        for tensor, value in scalars:
            try:
                self.graph.set_constant(tensor.id, value)
                self.scalars[tensor.id] = (tensor, value)
            except Error as refused:
                if "read by no op" not in str(refused):
                    raise
        self._pending.clear()
        self._new_views.clear()
        made = self.inner.get(node)
        for position, tensor in enumerate(made if isinstance(made, list) else [made]):
            if tensor is not None:
                self.origin.setdefault(tensor.id, (node, position if isinstance(made, list) else None))

    def _read_by_lamina(self, node: Node) -> bool:
        users = list(node.users)
        while users:
            user = users.pop()
            if user.target is operator.getitem or (user.op == "call_function" and base_of(user) in VIEWS):
                users.extend(user.users)
            elif user.op == "call_function" and name_of(user) in self.table and user.name not in self.left_out:
                return True
        return False

    # ---- ports and views

    def _port_or_inner(self, node: Node) -> LogicalTensor:
        if self.is_inner(node):
            return self.inner_tensor(node) if not self.is_view(node) else self._inner_view(node)
        return self._port(node)

    def _port(self, node: Node) -> LogicalTensor:
        if node in self.ports:
            return self.ports[node]
        root, value = self.base(node), node.meta["val"]
        if node in self.constants:
            value = self.constants[node]
        of_root = self.constants.get(root, root.meta["val"])
        if not isinstance(value, torch.Tensor) or not isinstance(of_root, torch.Tensor):
            raise Refused("it reads an operand that is not a tensor")
        if not is_known(value) or not is_known(of_root):
            raise Refused("a size that depends on data")
        if value.device.type != "cpu":
            raise Refused(f"a tensor on {value.device}")
        tensor = LogicalTensor(self._take_id(), dtype_of(value), tuple(value.shape), tuple(value.stride()))
        self.ports[node] = tensor
        self.sources[tensor.id] = Source(root, value.storage_offset() - of_root.storage_offset())
        return tensor

    def _inner_view(self, node: Node) -> LogicalTensor:
        key = ("view", node)
        if key in self.ports:
            return self.ports[key]
        name = base_of(node.args[0]) if node.target is operator.getitem else base_of(node)
        rule = self.view_rules.get(name)
        if rule is None:
            raise Refused(f"no rule for this view of a tensor that lamina computes")
        source = node.args[0].args[0] if node.target is operator.getitem else node.args[0]
        if name in MANY and node.target is not operator.getitem:
            return None  # its parts are separate views
        made = rule(self, node, self._port_or_inner(source))
        if tuple(made.shape) != tuple(node.meta["val"].shape):
            raise Refused(f"a view of shape {list(made.shape)}, torch has {list(node.meta['val'].shape)}")
        self.ports[key] = made
        self._new_views.append(key)
        return made

    # ---- nodes between lamina's ops that torch computes

    def _connect_foreign(self) -> None:
        """Adds Wildcards for foreign nodes that depend on lamina's results; nodes that draw random numbers keep their order.
        """
        tokens: dict[Node, LogicalTensor] = {}
        ports = collections.defaultdict(list)
        for port_id, source in self.sources.items():
            ports[source.root].append(next(t for t in self.ports.values() if t.id == port_id))
        last_random = None
        for node in self.module.graph.nodes:
            if node.op == "output":
                self._mark_outputs(node)
            foreign = node in self.reasons or (node.target is operator.getitem and not self.is_view(node) and not self.is_inner(node))
            if not foreign:
                continue
            reads = []
            for source in node.all_input_nodes:
                base = self.base(source)
                if self.is_inner(base):
                    reads.append(self.inner_tensor(base))
                elif base in tokens:
                    reads.append(tokens[base])
            if may_draw(node):
                reads += [tokens[last_random]] if last_random in tokens else []
                last_random = node
            if reads:
                tokens[node] = LogicalTensor(self._take_id(), "f32", ())
                self._add_wildcard(reads, [tokens[node], *ports[node]])

    def _mark_outputs(self, output: Node) -> None:
        for node in output.all_input_nodes:
            base = self.base(node)
            if self.is_inner(base):
                self._add_wildcard([self.inner_tensor(base)], [], kind="End")

    def _add_wildcard(self, reads: list, makes: list, kind: str = "Wildcard") -> None:
        op = _core.Op(self._op_count, kind, reads, {})
        for tensor in makes:
            op.add_output(tensor)
        self.graph.add_op(op)
        self.wildcards.add(self._op_count)
        self._op_count += 1

    def _take_id(self) -> int:
        self._tensor_count += 1
        return self._tensor_count - 1


class Lowered(NamedTuple):
    lowering: Lowering
    partitions: list  # the partitions that lamina runs


def lower(module: GraphModule, table: dict, view_rules: dict) -> Lowered:
    """Lowers the graph repeatedly until every partition can run: torch runs the nodes of unsupported partitions, with the
    partition's reason."""
    left_out: dict[str, str] = {}
    while True:
        lowering = Lowering(module, table, view_rules, left_out)
        lowering.graph.finalize()
        partitions = [p for p in lowering.graph.partitions() if not set(p.op_ids) <= lowering.wildcards]
        refused = [p for p in partitions if not p.is_supported]
        if not refused:
            return Lowered(lowering, partitions)
        before = len(left_out)
        for partition in refused:
            for op_id in set(partition.op_ids) - lowering.wildcards:
                left_out[lowering.node_of_op[op_id].name] = first_reason(partition)
        if len(left_out) == before:
            raise Error(first_reason(refused[0]), "unimplemented")
