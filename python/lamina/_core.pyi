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

    def __init__(self, id: int, kind: str, inputs: Sequence[LogicalTensor], attributes: dict, name: str = '') -> None: ...

    def infer_outputs(self) -> list[LogicalTensor]:
        """
        The outputs as types and shapes follow from the schema; their id says that they have none yet.
        """

    def add_output(self, tensor: LogicalTensor) -> None: ...

    def leave_out_output(self) -> None: ...

class Graph:
    """
    A graph of operations; two ports with the same tensor id are connected.
    """

    def __init__(self, fpmath_mode: str = 'strict') -> None: ...

    @staticmethod
    def from_json(text: str, name: str = 'graph') -> Graph: ...

    def to_json(self) -> str: ...

    def add_op(self, op: Op) -> None: ...

    def set_constant(self, tensor_id: int, value: float) -> None: ...

    def finalize(self) -> None: ...

    @property
    def is_finalized(self) -> bool: ...

    def tensor(self, tensor_id: int) -> LogicalTensor: ...

    def border(self) -> tuple[list[LogicalTensor], list[LogicalTensor]]: ...

    def partitions(self, policy: str = 'fusion') -> list[Partition]: ...

class Partition:
    """Ops of a graph that are compiled and executed as one."""

    @property
    def id(self) -> int: ...

    @property
    def op_ids(self) -> list[int]: ...

    @property
    def is_supported(self) -> bool: ...

    @property
    def inputs(self) -> list[LogicalTensor]: ...

    @property
    def outputs(self) -> list[LogicalTensor]: ...

    def compile(self, inputs: Sequence[LogicalTensor], outputs: Sequence[LogicalTensor]) -> CompiledPartition: ...

    def reasons_json(self) -> str: ...

class CompiledPartition:
    """Code for one partition with every shape and stride known."""

    def tensor(self, tensor_id: int) -> LogicalTensor: ...

    @property
    def inplace_ports(self) -> list[tuple[int, int]]: ...

    def info_json(self) -> str: ...

class Executable:
    """Compiled partitions that run one after the other in one call."""

    def __init__(self, steps: list, inputs: list, outputs: Sequence[LogicalTensor], inner: Sequence[LogicalTensor], constants: list) -> None: ...

    def __call__(self, inputs: object, outputs: object) -> None: ...

    @property
    def inner_bytes(self) -> int: ...

    @property
    def step_count(self) -> int: ...

def op_kinds() -> list[str]: ...

def op_schema_json(kind: str) -> str: ...

def version() -> str: ...

def describe(object: object) -> tuple:
    """
    (type, shape, strides in elements) of an object that shares its memory.
    """
