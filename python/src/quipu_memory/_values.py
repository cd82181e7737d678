"""The values that calls take and return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Union


@dataclass(frozen=True)
class Receipt:
    """A saved change."""

    seq: int
    """The number of its record in the journal."""
    id: str
    at: str
    versions: Mapping[str, str]
    """The version of each changed file; `none` if it was removed."""
    repeated: bool
    """An earlier call with the same key has saved it."""
    unchanged: bool
    """There was nothing to change."""
    notes: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """The version of the only file that changed."""
        (version,) = self.versions.values()
        return version


@dataclass(frozen=True)
class File:
    """The text of a file, or of one section of it."""

    path: str
    text: str
    version: str
    line: int
    section: str | None


@dataclass(frozen=True)
class Hit:
    """A section that answers a question."""

    path: str
    line: int
    headings: tuple[str, ...]
    snippet: str
    score: float
    weak: bool
    """It matches only in part."""
    version: str


@dataclass(frozen=True)
class Todo:
    id: str
    title: str
    status: str
    """pending, in_progress, blocked, completed or cancelled."""
    priority: str
    description: str | None
    due: str | None
    assignee: str | None
    notes: str
    blocked_by: tuple[str, ...]
    tags: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    id: str
    title: str
    date: str
    status: str
    context: str | None
    decision: str | None
    why: str | None
    alternatives: str | None
    consequences: str | None
    by: str | None
    supersedes: tuple[str, ...]
    superseded_by: str | None


@dataclass(frozen=True)
class Start:
    """The state of the project at the start of a session."""

    text: str
    """The text to show to the model."""
    session: str | None
    continues: bool
    """The session was open already, so the text has only what is new."""
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Finish:
    """A session that has ended."""

    session: str | None
    receipt: Receipt | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class FileState:
    """A file under the contract."""

    path: str
    class_name: str
    version: str | None
    flag: Mapping[str, Any] | None
    """A rule that an external edit broke."""


@dataclass(frozen=True)
class Status:
    files: tuple[FileState, ...]
    free: tuple[str, ...]
    """Files that no rule names."""
    ok: bool
    text: str


@dataclass(frozen=True)
class LogEntry:
    """A commit."""

    seq: int
    at: str
    who: Mapping[str, Any]
    why: str | None
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Append:
    """Adds text at the end of a file."""

    path: str
    text: str


@dataclass(frozen=True)
class Write:
    """Replaces a file, or creates it. With `expect`, only if it is at that version."""

    path: str
    text: str
    expect: str | None = None


@dataclass(frozen=True)
class Create:
    """Creates a file that must not exist."""

    path: str
    text: str


@dataclass(frozen=True)
class Merge:
    """Merges a value into a JSON file, as RFC 7396 says."""

    path: str
    value: Any


@dataclass(frozen=True)
class Remove:
    path: str
    expect: str | None = None


Operation = Union[Append, Write, Create, Merge, Remove]


def render_operation(operation: Operation) -> dict[str, Any]:
    """One operation of a change file."""
    fields = {name: value for name, value in vars(operation).items() if name != "expect"}
    entry = {"op": type(operation).__name__.lower(), **fields}
    expect = getattr(operation, "expect", None)
    return entry if expect is None else {**entry, "expect": expect}


def parse_receipt(data: Mapping[str, Any], notes: tuple[str, ...] = ()) -> Receipt:
    return Receipt(
        seq=data["seq"],
        id=data["id"],
        at=data["at"],
        versions=dict(data["versions"]),
        repeated=data["repeated"],
        unchanged=data["unchanged"],
        notes=notes,
    )


def parse_hit(data: Mapping[str, Any]) -> Hit:
    return Hit(
        path=data["path"],
        line=data["line"],
        headings=tuple(data["heading_path"]),
        snippet=data["snippet"],
        score=data["score"],
        weak=data["weak"],
        version=data["version"],
    )


def parse_todo(data: Mapping[str, Any]) -> Todo:
    return Todo(
        id=data["id"],
        title=data["title"],
        status=data["status"],
        priority=data["priority"],
        description=data["description"],
        due=data["due"],
        assignee=data["assignee"],
        notes=data["notes"],
        blocked_by=tuple(data["blocked_by"]),
        tags=tuple(data["tags"]),
    )


def parse_decision(data: Mapping[str, Any]) -> Decision:
    names = (
        "id", "title", "date", "status", "context", "decision", "why", "alternatives",
        "consequences", "by", "superseded_by",
    )
    named = {name: data[name] for name in names}
    return Decision(**named, supersedes=tuple(data["supersedes"]))
