"""What lamina raises."""


class Error(RuntimeError):
    """Something was refused. The message is one sentence that names the op, the port or attribute, what was given and what is
    allowed, as in the C interface; `status` is the C interface's code by its name, for example "invalid_shape"."""

    def __init__(self, message: str, status: str = "invalid_arguments") -> None:
        super().__init__(message)
        self.status = status
