"""Every situation flaot reports to a person, one class each, with its exit code.

A message is one line: where it happened, what was found, what is allowed, where the limit comes from, the way out.
Internal failures derive from :class:`InternalError` and say that they are a bug in flaot.
"""

from __future__ import annotations

MAX_NAME = 80


def printable(text: object, limit: int = MAX_NAME) -> str:
    """User-supplied text made safe for a one-line message: control and direction characters escaped, length cut."""
    raw = str(text)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in raw[: limit + 1])
    return shown if len(raw) <= limit else shown[:limit] + "..."


class FlaotError(Exception):
    """Base of all reported errors.

    Args:
        what: what was found and what was expected, in one sentence without a final stop.
        where: file, ``file:line:column``, ``file:@offset`` or ``node 'name' (Op)``; shown first.
        origin: where the violated limit is written (``npu_v3.hcd:41``).
        hint: the way out.
    """

    exit_code = 70

    def __init__(self, what: str, *, where: str = "", origin: str = "", hint: str = "") -> None:
        self.what, self.where, self.origin, self.hint = what, where, origin, hint
        super().__init__(what)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        if self.origin:
            text += f" ({self.origin})"
        return f"{text}; {self.hint}" if self.hint else text

    def at(self, where: str) -> FlaotError:
        """The same error with a location put in front of the one it has."""
        self.where = f"{where}: {self.where}" if self.where else where
        return self

    def to_json(self) -> dict[str, object]:
        """Fields of the error as a JSON-ready mapping."""
        return {
            "error": type(self).__name__,
            "message": str(self),
            "where": self.where,
            "origin": self.origin,
            "hint": self.hint,
            "exit_code": self.exit_code,
        }


class CheckFailed(FlaotError):
    """A verification, budget or self-test did not hold."""

    exit_code = 1


class UsageError(FlaotError):
    """The command line or an API call is not well formed."""

    exit_code = 2


class ModelError(FlaotError):
    """The ONNX model is malformed or contradicts itself."""

    exit_code = 3


class HcdError(FlaotError):
    """The hardware descriptor is malformed or contradicts itself."""

    exit_code = 4


class UnsupportedError(FlaotError):
    """The model is valid but not supported on this chip under this policy."""

    exit_code = 5


class DoesNotFitError(UnsupportedError):
    """Steps that need more on-chip memory at once than there is, however they are cut. ``needs`` holds the chip and a sentence for every
    model node of them; ``origin`` is the option that limits that memory, "" where it is the chip's."""

    def __init__(self, what: str, needs: dict[str, tuple[str, str]], where: str = "", origin: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, origin=origin, hint=hint)
        self.needs = needs


class PlanError(FlaotError):
    """The plan is damaged, or incompatible with this runtime or chip."""

    exit_code = 6


class RunInputError(FlaotError):
    """An input given to a run has the wrong name, shape, dtype or value."""

    exit_code = 7


class FileSystemError(FlaotError):
    """A file or another resource of the system could not be used."""

    exit_code = 8


class DependencyError(FlaotError):
    """A library this command needs is missing or does not work."""

    exit_code = 8


class DeviceError(FlaotError):
    """A chip, its adapter or its SDK failed."""

    exit_code = 8


class LimitError(FlaotError):
    """A limit on time, memory or size is exceeded."""

    exit_code = 9


class OffChipError(LimitError):
    """Plans that take more of a device's off-chip memory than there is. ``needs`` holds, as that of DoesNotFitError, the nodes of a chip
    whose tensors are the largest."""

    def __init__(self, what: str, needs: dict[str, tuple[str, str]], where: str = "", origin: str = "", hint: str = "") -> None:
        super().__init__(what, where=where, origin=origin, hint=hint)
        self.needs = needs


class InternalError(FlaotError):
    """A bug in flaot; names the stage and the rule or kernel."""

    exit_code = 70

    def __str__(self) -> str:
        return f"bug in flaot: {super().__str__()}"


class ProblemList(FlaotError):
    """Several independent problems of one kind, reported together, one line each."""

    def __init__(self, problems: list[FlaotError]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = problems
        self.exit_code = problems[0].exit_code

    def __str__(self) -> str:
        return "\n".join(str(p) for p in self.problems)

    def to_json(self) -> dict[str, object]:
        return {"error": "ProblemList", "exit_code": self.exit_code, "problems": [p.to_json() for p in self.problems]}


def located(e: FlaotError, model: str) -> FlaotError:
    """The error with the model's name in front of a node's: stages after reading do not know the file."""
    for p in e.problems if isinstance(e, ProblemList) else [e]:
        if p.where.startswith("node "):
            p.at(model)
    return e
