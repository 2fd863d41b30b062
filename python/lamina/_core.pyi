from collections.abc import Sequence


class LogicalTensor:
    """
    What is known about a tensor before it has memory: id, element type, shape, strides.
    """

    def __init__(self, id: int, dtype: str, shape: Sequence[int | None] | None = None, strides: Sequence[int] | None = None, property: str = 'undef') -> None:
        """
        Creates a logical tensor.

        id: ports with the same id are connected. dtype: a name of lamina.data_types(), such as "f32".
        shape: extents, with None for an unknown extent; None if the rank is unknown.
        strides: in elements, one per extent, 0 broadcasts; None: dense row-major. property: undef, variable,
        constant (equal at every execution), host_scalar.
        Raises lamina.Error for a name that does not exist, or a negative extent or stride.
        """

    @property
    def id(self) -> int:
        """The id: ports with the same id are connected."""

    @property
    def dtype(self) -> str:
        """The name of the element type."""

    @property
    def shape(self) -> object:
        """
        The extents, with None for an unknown extent; None if the rank is unknown.
        """

    @property
    def strides(self) -> object:
        """The strides in elements; None if they are unknown."""

    @property
    def nbytes(self) -> int:
        """The size in bytes from the first element to past the last one."""

    def with_id(self, id: int) -> LogicalTensor:
        """Returns a copy with another id."""

    def __repr__(self) -> str: ...

class Op:
    """
    An operation: its kind, its attributes, and the tensors at its ports in the order of its schema.
    """

    def __init__(self, id: int, kind: str, inputs: Sequence[LogicalTensor], attributes: dict, name: str = '') -> None:
        """
        Creates an operation without outputs.

        id: unique among the ops of a graph. kind: a name of lamina.op_kinds(). inputs: in the order of the
        schema's ports. attributes: by name; attributes with a default may be absent. name: used in messages,
        default KIND_ID.
        Raises lamina.Error for a kind or attribute that does not exist, or a value of another type.
        """

    def infer_outputs(self) -> list[LogicalTensor]:
        """
        Returns the outputs with the types and shapes that follow from the schema. They have no ids yet.

        Raises lamina.Error if the schema rejects the op; the message has the port or attribute, the given and
        the allowed value.
        """

    def add_output(self, tensor: LogicalTensor) -> None:
        """
        Adds the tensor of the next output port. Graph.add_op checks whether it matches the schema.
        """

    def leave_out_output(self) -> None:
        """Omits the next output port: it is not computed."""

class Graph:
    """
    A graph of operations; two ports with the same tensor id are connected.
    """

    def __init__(self, fpmath_mode: str = 'strict') -> None:
        """
        Creates an empty graph for the CPU.

        fpmath_mode: strict, or bf16, f16, tf32 or any: the types in which products of f32 may be computed.
        """

    @staticmethod
    def from_json(text: str, name: str = 'graph') -> Graph:
        """
        Creates a graph from a dump, not finalized. name: prefixes error messages.

        Raises lamina.Error with line and column if the text is not a dump, or with the op that is rejected.
        """

    def to_json(self) -> str:
        """The graph as a dump, which `lamina replay` runs."""

    def add_op(self, op: Op) -> None:
        """
        Checks the op against its schema and adds a copy of it.

        Raises lamina.Error with the op, the port or attribute, the given and the allowed value; the graph is
        then unchanged.
        """

    def set_constant(self, tensor_id: int, value: float) -> None:
        """
        Declares that every element of an input is `value` at every execution, rounded to the tensor's type.

        Raises lamina.Error for a tensor that no op reads, that an op produces, or that already has another
        value.
        """

    def finalize(self) -> None:
        """
        Ends building: orders the ops and infers shapes.

        Raises lamina.Error for a cycle, a tensor with two producers, or contradicting shapes.
        """

    @property
    def is_finalized(self) -> bool:
        """Whether finalize() has been called."""

    def tensor(self, tensor_id: int) -> LogicalTensor:
        """
        Returns what the graph knows about a tensor, including the inferred shape once the graph is finalized.
        Raises lamina.Error for a tensor of no op.
        """

    def border(self) -> tuple[list[LogicalTensor], list[LogicalTensor]]:
        """
        Returns (inputs, outputs): the tensors that ops read and no op produces, in order of first use; and the
        tensors that no op reads, or that an End op marks.
        """

    def partitions(self, policy: str = 'fusion') -> list[Partition]:
        """
        Returns the partitions of a finalized graph, in an order in which they can run. policy: fusion, or debug
        for one op each.

        Raises lamina.Error if the graph is not finalized.
        """

class Partition:
    """A group of ops of a graph that is compiled and executed as one unit."""

    @property
    def id(self) -> int:
        """The id, unique in the process."""

    @property
    def op_ids(self) -> list[int]:
        """
        Ids of the graph's ops in the partition, including ops that a pass has merged into others.
        """

    @property
    def is_supported(self) -> bool:
        """False if no kernel can run the partition; reasons_json has the reason."""

    @property
    def inputs(self) -> list[LogicalTensor]:
        """
        The tensors that the partition reads, in order of first use, with the shapes that the graph knows.
        """

    @property
    def outputs(self) -> list[LogicalTensor]:
        """
        The tensors that the partition produces for others, in the order of its ops.
        """

    def compile(self, inputs: Sequence[LogicalTensor], outputs: Sequence[LogicalTensor], progress: object | None = None) -> CompiledPartition:
        """
        Compiles the partition for these tensors, which are matched to ports by id, in any order.

        inputs: with known shapes; tensors that match no port are ignored. outputs: shapes and strides may be
        unknown; lamina infers them, and the layout is then dense. progress: called as progress(done, total,
        name) before each of `total` steps and at the end; a true result cancels the compilation. It is not
        called if the code is in the cache. The GIL is released meanwhile.
        Raises lamina.Error for a port without its tensor, a tensor that contradicts the graph, contradicting
        shapes, an op that cannot run, or a cancelled compilation; and any exception that progress raises.
        """

    def reasons_json(self) -> str:
        """
        Returns JSON: "supported", "unsupported_reason" if it is not supported, and "ops" with "id", "kind",
        "name" and "reasons" (a stable "code", which scripts may use, and "text").
        """

class CompiledPartition:
    """The code of one partition, with all shapes and strides known."""

    def tensor(self, tensor_id: int) -> LogicalTensor:
        """
        Returns the tensor of a port with its final shape and strides (in elements). Raises lamina.Error for an
        id that is not a port.
        """

    @property
    def inplace_ports(self) -> list[tuple[int, int]]:
        """
        Pairs (input id, output id) that may share memory, each port once at most.
        """

    def may_share(self, input_id: int, output_id: int) -> bool:
        """
        Returns whether this input and this output may share memory. Raises lamina.Error for an id that is not a
        port.
        """

    def info_json(self) -> str:
        """
        Returns JSON: "backend", "kernels" (names), "schedules", "required_bytes" (inputs and outputs, each
        once), "moved_bytes" (read from and written to main memory), "workspace_bytes", "constant_bytes"
        (kept of constant inputs), "compile_ms", "from_cache".
        """

class Executable:
    """Compiled partitions that run in sequence in one call."""

    def __init__(self, steps: list, inputs: list, outputs: Sequence[LogicalTensor], inner: Sequence[LogicalTensor], constants: list) -> None:
        """
        Creates an executable.

        steps: (CompiledPartition, slots of its inputs, slots of its outputs). Slots number the inputs, then the
        outputs, the inner tensors and the constants. inputs: (tensor that the steps read, tensor that the
        caller passes, offset in bytes of the first in the second). outputs: tensors that are returned. inner:
        tensors between steps, in memory that the executable allocates. constants: (scalar, its bytes).
        Raises lamina.Error for a slot that does not exist.
        """

    def __call__(self, inputs: object, outputs: object) -> None:
        """
        Runs the steps. inputs, outputs: sequences of objects that share their memory, in order; outputs are
        written to.

        The GIL is released meanwhile. Raises lamina.Error with the object that does not match and what is
        allowed.
        """

    def keep(self, input: int, object: object) -> None:
        """
        Makes this object the input of that number, and keeps it: calls pass the other inputs only. Its memory must
        stay where it is. Raises lamina.Error for an object that does not match, an input that does not exist, and
        one that is kept already.
        """

    @property
    def inner_bytes(self) -> int:
        """
        The size in bytes of the tensors between steps, for one call at a time.
        """

    @property
    def step_count(self) -> int:
        """The number of compiled partitions that a call executes."""

def explain(partitions: Sequence[Partition], compiled: Sequence[CompiledPartition | None], compile: bool, format: str, title: str = '', report: str | None = None) -> str:
    """
    Explains partitions of one graph as a text.

    compiled: [], or a CompiledPartition or None for each. report: its text. lamina.Explanation describes the
    other arguments.
    Raises lamina.Error for no partitions, partitions of two graphs, or a report of other partitions.
    """

class Profile:
    """The times of the steps of all compiled code that a thread runs."""

    def __init__(self) -> None:
        """Creates a profile without times."""

    def start(self) -> None:
        """
        Measures what this thread runs from now on. Raises lamina.Error if it is being profiled already.
        """

    def stop(self) -> None:
        """
        Ends measuring. No effect if this thread is not being measured by this profile.
        """

    def text(self, format: str, title: str = '') -> str:
        """
        Returns the profile as a text. format: json, table or trace (Chrome's trace event format).
        """

def set_verbose(level: int, write: object | None = None) -> None:
    """
    Calls `write` with a line per compilation and execution (level 1), also per pass (2), or never (0);
    level -1 follows LAMINA_VERBOSE. write: may be called on any thread, one at a time; None: lines go to
    stdout. Raises lamina.Error for another level.
    """

def fingerprints(tensors: object, threads: int = 1) -> list[int]:
    """
    Returns a number for the bytes of each object of a sequence, from its first element to past its last one.

    Equal bytes have equal numbers. A change of one aligned word of 8 bytes always changes the number; other
    changes leave it as it is with a probability of about 2^-64. threads: the most that read at once. The GIL
    is released meanwhile. Raises lamina.Error for an object that shares no memory of the CPU.
    """

def draw_mask(state: object, mask: object, probability: float) -> None:
    """
    Fills `mask`, booleans without gaps, in the order of its memory: each is true with the given probability.

    The numbers are those that a torch.Generator of the CPU with this state (get_state()) draws for
    bernoulli_, where torch does not use MKL. `state` becomes the state after them. The GIL is held. Raises
    lamina.Error for other tensors, and for a probability that is not from 0 to 1.
    """

def export_graphs(graphs: Sequence[object], path: str, isas: Sequence[str], threads: int, packed: bool, weights: Sequence[tuple[int, object]], inputs: Sequence[tuple[int, str]], outputs: Sequence[tuple[int, str]]) -> None:
    """
    Writes a model with a variant for each of the finalized graphs.

    isas: names of instruction sets, [] for the best one of this machine. threads: 0 for the default.
    packed: whether packed weights are in the file, too. weights:
    (tensor id, array in the tensor's strides). inputs, outputs: (tensor id, name), [] for those of the graph.
    Raises lamina.Error with every op that cannot be exported.
    """

def with_shapes(graph: Graph, inputs: Sequence[LogicalTensor]) -> Graph:
    """
    Returns a copy of a finalized graph with these descriptions of its inputs; shapes that follow are inferred
    again.

    Raises lamina.Error for a tensor that is no input, or shapes that contradict each other.
    """

def address(object: object, writable: bool) -> int:
    """
    Returns the address of the memory that an object shares. Raises lamina.Error as describe(), and for read-only
    memory if `writable`.
    """

def library_path() -> str:
    """Returns the path of liblamina, "" if it is unknown."""

def type_numbers() -> dict[str, int]:
    """
    Returns the number of each element type in the C interfaces, by its name.
    """

def op_kinds() -> list[str]:
    """Returns the names of all operations."""

def data_types() -> list[str]:
    """Returns the names of all element types."""

def type_kinds() -> dict[str, str]:
    """
    Returns the kind of each element type by its name: real, small_float, signed_integer, unsigned_integer or
    boolean.
    """

def array_types() -> dict[str, tuple[str, str]]:
    """
    Returns, for each element type that arrays can have: (type string of numpy, name in torch). Types that
    numpy lacks are unsigned integers of the same size, which hold the raw bits.
    """

def op_schema_json(kind: str) -> str:
    """
    Returns the schema as JSON: "kind", "class", "formula", "inputs", "outputs", "attributes", "types".
    Raises lamina.Error for a kind that does not exist.
    """

def version() -> str:
    """Returns the version of the library as "major.minor.patch"."""

def describe(object: object) -> tuple:
    """
    Returns (type, shape, strides in elements) of an object that shares its memory: an array of numpy or
    torch, or an object with DLPack or the buffer protocol. Raises lamina.Error for an object that shares no
    memory of the CPU.
    """

def signature(arrays: object) -> bytes:
    """
    Returns type, shape and strides of each array of a sequence (whose entries may be None) as bytes: the
    key under which compiled code is cached. Raises lamina.Error as describe().
    """
