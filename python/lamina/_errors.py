"""The exception that lamina raises."""


class Error(RuntimeError):
    """Raised for invalid input and for failures. The message is one sentence with the op, the port or attribute, the given
    and the allowed value, as in the C interface. `status` is the name of the C interface's code, for example "invalid_shape".
    """

    def __init__(self, message: str, status: str = "invalid_arguments") -> None:
        super().__init__(message)
        self.status = status
