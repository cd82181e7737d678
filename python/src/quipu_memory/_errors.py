"""The errors of Quipu, one class for each exit code.

What happened, the rule behind it and the command that repairs it are attributes, so that a program
can act on them and a model can be shown them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping


@dataclass(frozen=True)
class Rule:
    """The rule of the contract that refused something."""

    place: str
    """File and line, such as `quipu.toml:12`."""
    text: str


class QuipuError(Exception):
    """A command that did nothing, and why."""

    def __init__(self, what: str, *, rule: Rule | None = None, repair: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.rule = rule
        self.repair = repair
        """The command that does it right, if there is one."""

    def __str__(self) -> str:
        lines = [self.what]
        if self.rule is not None:
            lines.append(f"  rule  {self.rule.place}  {self.rule.text}")
        if self.repair is not None:
            lines.append(f"  help  {self.repair}")
        return "\n".join(lines)


class UsageError(QuipuError):
    """The call or the contract is faulty."""


class Refused(QuipuError):
    """The contract forbids it."""


class Unfinished(Refused):
    """The session stays open: its finish lacks something. `lines` are what to add to the text."""

    def __init__(self, what: str, lines: tuple[str, ...]) -> None:
        super().__init__(what)
        self.lines = lines


class Stale(QuipuError):
    """The file is no longer at the expected version, or a lease was lost."""


class NotFound(QuipuError):
    """A file, a section, a todo or a project does not exist."""


class AgentFailed(QuipuError):
    """An agent of a flow failed, and a person has to look."""


class StoreFailed(QuipuError):
    """I/O failed, a lock is busy, or the journal is damaged."""


class Disconnected(QuipuError):
    """The program ended during a call. A write of the call is complete or absent.

    Send it again with the same `key`: a change that was saved is not saved twice.
    """


class ProgramNotFound(QuipuError):
    """There is no program `quipu` beside this Python or on the PATH."""


_CLASSES: Mapping[int, type[QuipuError]] = {
    2: UsageError,
    3: Refused,
    4: Stale,
    5: NotFound,
    6: AgentFailed,
    7: StoreFailed,
}


def error_of(failure: Mapping[str, Any], exit_code: int) -> QuipuError:
    """Builds the error that a failed command reported as JSON."""
    rule = failure.get("rule")
    return _CLASSES.get(exit_code, QuipuError)(
        str(failure.get("error", "the command failed")),
        rule=Rule(str(rule["place"]), str(rule["rule"])) if rule else None,
        repair=failure.get("do"),
    )
