"""The one place that takes whatever is raised, but for the edge of the command line."""

from __future__ import annotations


class Caught:
    """Around code that may be broken in any way; what it raises goes no further."""

    error: Exception | None = None
    """What was raised."""

    def __enter__(self) -> Caught:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        self.error = error if isinstance(error, Exception) else None
        return self.error is not None
