from collections.abc import Sequence


class LogicalTensor:
    """
    What is known of a tensor before it has memory: id, element type, shape, strides.
    """

    def __init__(self, id: int, dtype: str, shape: Sequence[int | None] | None = None, strides: Sequence[int] | None = None, property: str = 'undef') -> None:
        """
        A logical tensor.

        id: ports with the same id are connected. dtype: f32, bf16, f16, f64, s32, s64, s8, u8, boolean, f8_e5m2, f8_e4m3, s4, u4.
        shape: extents, None for one that is not known yet; None: the rank is not known. strides: in elements, one per extent,
        0 broadcasts; None: dense, row-major. property: undef, variable, constant (equal at every execution), host_scalar.
        Raises lamina.Error for a name that does not exist, a negative extent or stride.
        """

    @property
    def id(self) -> int:
        """Its id: ports with the same id are connected."""

    @property
    def dtype(self) -> str:
        """The element type, by its name."""

    @property
    def shape(self) -> object:
        """
        Extents, None for one that is not known; None where the rank is not known.
        """

    @property
    def strides(self) -> object:
        """In elements; None where they are not known."""

    @property
    def nbytes(self) -> int:
        """Bytes from the first to past the last element."""

    def with_id(self, id: int) -> LogicalTensor:
        """The same under another id."""

    def __repr__(self) -> str: ...

class Op:
    """
    An operation: kind, attributes and the tensors at its ports, in the order of its schema.
    """

    def __init__(self, id: int, kind: str, inputs: Sequence[LogicalTensor], attributes: dict, name: str = '') -> None:
        """
        An operation without outputs yet.

        id: of its own among the ops of a graph. kind: a name of lamina.op_kinds(). inputs: in the order of the schema's ports.
        attributes: by name, those that have a default may be absent. name: for messages, default KIND_ID.
        Raises lamina.Error for a kind or attribute that does not exist, or an attribute of another type.
        """

    def infer_outputs(self) -> list[LogicalTensor]:
        """
        The outputs as types and shapes follow from the schema; their id says that they have none yet.

        Raises lamina.Error where the schema refuses the op: port or attribute, what was given and what is allowed.
        """

    def add_output(self, tensor: LogicalTensor) -> None:
        """
        The tensor at the next output port. Whether it fits is checked when a graph takes the op.
        """

    def leave_out_output(self) -> None:
        """Leaves the next output port out: it is not computed."""

class Graph:
    """
    A graph of operations; two ports with the same tensor id are connected.
    """

    def __init__(self, fpmath_mode: str = 'strict') -> None:
        """
        An empty graph for the CPU. fpmath_mode: strict, bf16, f16, tf32 or any: how products of f32 may be computed.
        """

    @staticmethod
    def from_json(text: str, name: str = 'graph') -> Graph:
        """
        A graph from a dump, not finalized. name: stands in front of errors.

        Raises lamina.Error with line and column where the text is no dump, or naming the op that is refused.
        """

    def to_json(self) -> str:
        """The graph as a dump, which `lamina replay` runs."""

    def add_op(self, op: Op) -> None:
        """
        Checks the op against its schema and adds a copy of it.

        Raises lamina.Error naming the op, the port or attribute, what was given and what is allowed; the graph is unchanged.
        """

    def set_constant(self, tensor_id: int, value: float) -> None:
        """
        Says that every element of an input is `value` at every execution, rounded to the tensor's type.

        Raises lamina.Error for a tensor that no op reads, that an op makes, or that has another value already.
        """

    def finalize(self) -> None:
        """
        Ends building: orders ops and infers shapes.

        Raises lamina.Error for a cycle, a tensor that two ops make, or shapes that do not agree.
        """

    @property
    def is_finalized(self) -> bool:
        """Whether building has ended."""

    def tensor(self, tensor_id: int) -> LogicalTensor:
        """
        What the graph knows of a tensor; once finalized, its inferred shape too. Raises lamina.Error where no op has it.
        """

    def border(self) -> tuple[list[LogicalTensor], list[LogicalTensor]]:
        """
        (tensors that ops read and none makes, in order of first use; tensors that none reads or an End op marks).
        """

    def partitions(self, policy: str = 'fusion') -> list[Partition]:
        """
        Partitions of a finalized graph, in an order in which they can run. policy: fusion, or debug: one op each.

        Raises lamina.Error where the graph is not finalized.
        """

class Partition:
    """Ops of a graph that are compiled and executed as one."""

    @property
    def id(self) -> int:
        """Unique in the process."""

    @property
    def op_ids(self) -> list[int]:
        """
        Ids of the graph's ops that are in it; an op that a pass took into another one counts too.
        """

    @property
    def is_supported(self) -> bool:
        """False where no kernel can run it; reasons_json says why."""

    @property
    def inputs(self) -> list[LogicalTensor]:
        """
        The tensors that it reads, in order of first use, with what the graph knows of their shapes.
        """

    @property
    def outputs(self) -> list[LogicalTensor]:
        """The tensors that it makes for others, in the order of its ops."""

    def compile(self, inputs: Sequence[LogicalTensor], outputs: Sequence[LogicalTensor], progress: object | None = None) -> CompiledPartition:
        """
        Code for these tensors, which are matched to ports by id, in any order.

        inputs: with known shapes; those that are no port are ignored. outputs: shapes and strides may be unknown: inferred, dense.
        progress: called as progress(done, total, name) before each of `total` steps, and at the end; what it returns stops the
        compilation if it is true. Not called where the code is in the cache. Other Python threads run meanwhile.
        Raises lamina.Error: a port without its tensor, a tensor that contradicts the graph, shapes that do not agree, an op that
        cannot run, a compilation that was stopped; and what progress raises.
        """

    def reasons_json(self) -> str:
        """
        JSON: "supported", "unsupported_reason" where it is not, and "ops" with "id", "kind", "name" and "reasons"
        ("code", which scripts may rely on, and "text").
        """

class CompiledPartition:
    """Code for one partition with every shape and stride known."""

    def tensor(self, tensor_id: int) -> LogicalTensor:
        """
        The tensor of a port with its final shape and strides (in elements). Raises lamina.Error for an id that is no port.
        """

    @property
    def inplace_ports(self) -> list[tuple[int, int]]:
        """(input id, output id) of pairs that may be given the same memory."""

    def info_json(self) -> str:
        """
        JSON: "backend", "kernels" (names), "schedules", "required_bytes" (inputs and outputs, each once),
        "moved_bytes" (read and written in main memory), "workspace_bytes", "compile_ms", "from_cache".
        """

class Executable:
    """Compiled partitions that run one after the other in one call."""

    def __init__(self, steps: list, inputs: list, outputs: Sequence[LogicalTensor], inner: Sequence[LogicalTensor], constants: list) -> None:
        """
        steps: (CompiledPartition, slots of its inputs, slots of its outputs); a slot counts the inputs, then the outputs, the inner
        tensors and the constants. inputs: (tensor that is read, tensor that is given, bytes from the one's beginning to the other's).
        outputs, inner: tensors that leave, and those that pass between steps, in memory of its own. constants: (scalar, its bytes).
        Raises lamina.Error for a slot that does not exist.
        """

    def __call__(self, inputs: object, outputs: object) -> None:
        """
        Runs it. inputs, outputs: sequences of objects that share their memory, in order; outputs are written to.

        Other Python threads run meanwhile. Raises lamina.Error naming the object that does not fit and what is allowed.
        """

    @property
    def inner_bytes(self) -> int:
        """Bytes of what passes between steps, for one call at a time."""

    @property
    def step_count(self) -> int:
        """How many compiled partitions a call executes."""

def explain(partitions: Sequence[Partition], compiled: Sequence[CompiledPartition | None], compile: bool, format: str, title: str = '', report: str | None = None) -> str:
    """
    What there is to tell of partitions of one graph, as a text.

    partitions: in an order in which they can run. compiled: [], or a CompiledPartition or None for each: for its shapes, else
    for those that the graph knows, each is compiled to tell kernels, schedules and tiles, unless `compile` is false.
    format: json, html (a page that needs nothing else) or dot. report: text of a `lamina replay --report`, whose times are told.
    Raises lamina.Error for no partitions, those of two graphs, a report of others.
    """

def set_verbose(level: int, write: object | None = None) -> None:
    """
    Has `write` called with a line per compilation and execution (level 1), per pass too (2), or nothing (0); -1: what
    LAMINA_VERBOSE says. write: any thread calls it, one at a time; None: lines go to stdout. Raises lamina.Error for another level.
    """

def op_kinds() -> list[str]:
    """The names of all operations."""

def op_schema_json(kind: str) -> str:
    """
    JSON: "kind", "class", "formula", "inputs", "outputs", "attributes", "types". Raises lamina.Error for a kind that
    does not exist.
    """

def version() -> str:
    """The version of the library, as "major.minor.patch"."""

def describe(object: object) -> tuple:
    """
    (type, shape, strides in elements) of an object that shares its memory: numpy's, torch's, DLPack's, the buffer
    protocol's. Raises lamina.Error for an object that shares none, or not on the CPU.
    """

def signature(arrays: object) -> bytes:
    """
    Type, shape and strides of each array of a sequence, None for none, as bytes: what compiled code is kept by.
    Raises lamina.Error as describe().
    """
