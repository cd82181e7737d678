"""A project and what can be done in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Iterable, List, Mapping, Sequence, Type, TypeVar

from ._connection import Answer, Connection, find_program
from ._errors import Unfinished, error_of
from ._values import (
    Decision,
    File,
    FileState,
    Finish,
    Hit,
    LogEntry,
    Operation,
    Receipt,
    Start,
    Status,
    Todo,
    parse_decision,
    parse_hit,
    parse_receipt,
    parse_todo,
    render_operation,
)

_P = TypeVar("_P", bound="Project")


class Project:
    """A project, opened by one agent. Threads may share it.

    Calls go to one `quipu mcp`, which starts with the first call and ends with `close` or the `with`
    block. The agent is bound by the contract as in any other interface. If the environment names an
    agent or a role (`QUIPU_AGENT`, `QUIPU_ROLE`), that name takes precedence.
    """

    def __init__(self, folder: Path, connection: Connection) -> None:
        self.folder = folder
        self._connection = connection
        self.todos = Todos(self)

    @classmethod
    def open(
        cls: Type[_P],
        folder: str | os.PathLike[str] = ".",
        *,
        agent: str,
        role: str | None = None,
        unit: str | None = None,
        program: str | None = None,
    ) -> _P:
        """Opens the project that `folder` belongs to.

        `agent` is the name in the journal. `role` limits it to the files of a role of the contract,
        and `unit` to one unit, such as a chapter.
        """
        root = Path(folder).resolve()
        arguments = ["-C", str(root), "mcp", f"--agent={agent}"]
        arguments += _flag("as", role) + _flag("unit", unit)
        project = cls(root, Connection(program or find_program(), arguments))
        try:
            project.status()
        except BaseException:
            project.close()
            raise
        return project

    @classmethod
    def create(
        cls: Type[_P],
        folder: str | os.PathLike[str],
        *,
        agent: str,
        profile: str = "relay",
        role: str | None = None,
        language: str | None = None,
        variables: Mapping[str, str] | None = None,
        program: str | None = None,
    ) -> _P:
        """Lays out a project in `folder`, as a person with `quipu init` would, and opens it."""
        program = program or find_program()
        root = Path(folder)
        root.mkdir(parents=True, exist_ok=True)
        line = [program, "-C", str(root), "--json", "init", f"--profile={profile}"]
        line += ["--no-integrate", *_flag("lang", language)]
        for name, value in (variables or {}).items():
            line.append(f"--var={name}={value}")
        done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            try:
                failure = json.loads(done.stdout)
            except ValueError:
                failure = {"error": done.stderr.strip()}
            raise error_of(failure, done.returncode)
        return cls.open(root, agent=agent, role=role, program=program)

    def close(self) -> None:
        """Ends the server. An open session stays open; `finish` ends it."""
        self._connection.close()

    def __enter__(self: _P) -> _P:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def command(self, *words: str, stdin: str | None = None) -> Answer:
        """Runs any command of `quipu`, for example `command("story", "timeline")`."""
        return self._connection.command(words, stdin)

    # Sessions

    def start(
        self, *, task: str | None = None, full: bool = False, budget: int | None = None
    ) -> Start:
        """Begins a session, or continues it, and returns the text that the model should see."""
        answer = self.command("start", *_flag("task", task), *_flag("budget", budget), *_on("full", full))
        session = answer.data.get("session") or {}
        return Start(
            text=answer.text,
            session=session.get("id"),
            continues=bool(answer.data.get("continues")),
            data=answer.data,
        )

    def finish(self, text: str) -> Finish:
        """Ends the session with one Markdown text: Done, Decisions, Todos, Next, Notes, Facts.

        Everything is saved in one commit. Raises `Unfinished` with the lines to add.
        """
        answer = self.command("finish", "--file=-", stdin=text)
        if answer.exit != 0:
            missing = answer.data["missing"]
            lines = tuple(line for entry in missing for line in entry["lines"])
            raise Unfinished("\n".join(["nothing was saved; add:", *lines]), lines)
        receipt = answer.data.get("receipt")
        return Finish(
            session=answer.data.get("session"),
            receipt=parse_receipt(receipt) if receipt else None,
            notes=answer.notes,
        )

    def recall(
        self,
        question: str,
        *,
        limit: int | None = None,
        within: str | None = None,
        tier: str | None = None,
    ) -> list[Hit]:
        """Finds the sections that answer a question; best first, and none if nothing matches.

        `within` is a pattern for the files, such as `docs/**`; `tier` is `index`, `memory` or
        `manuscript`.
        """
        words = [*_flag("in", within), *_flag("tier", tier)]
        words += [] if limit is None else ["-k", str(limit)]
        answer = self.command("recall", *words, "--", question)
        return [parse_hit(hit) for hit in answer.data["hits"]]

    # Files

    def read(self, path: str, *, at: str | None = None) -> File:
        """Reads a file, one section (`path#section`), or the section at a line (`path:12`).

        `at` is an older version: `a1b2c3`, `@12` (commit), `~1` (versions ago) or a time.
        """
        data = self.command("read", *_flag("at", at), "--", path).data
        return File(
            path=data["path"],
            text=data["text"],
            version=data["version"],
            line=data["line"],
            section=data["section"],
        )

    def append(
        self, path: str, text: str, *, why: str | None = None, key: str | None = None
    ) -> Receipt:
        """Adds text at the end of a file. A second call with the same `key` changes nothing."""
        words = [*_flag("why", why), *_flag("key", key), "--file=-", "--", path]
        if not text.endswith("\n"):
            text += "\n"
        return self._receipt("append", *words, stdin=text)

    def write(
        self,
        path: str,
        text: str,
        *,
        expect: str | None = None,
        force: bool = False,
        why: str | None = None,
        key: str | None = None,
    ) -> Receipt:
        """Creates a file or replaces its text. With `expect`, only if it is at that version.

        `force` permits a text that loses most of the file or looks like a placeholder.
        """
        words = [*_flag("expect", expect), *_on("force", force), *_flag("why", why)]
        words += [*_flag("key", key), "--file=-", "--", path]
        return self._receipt("write", *words, stdin=text)

    def remove(self, path: str, *, expect: str | None = None, why: str | None = None) -> Receipt:
        """Removes a file; `restore` brings it back."""
        return self._receipt("remove", *_flag("expect", expect), *_flag("why", why), "--", path)

    def restore(self, path: str, *, at: str | None = None, why: str | None = None) -> Receipt:
        """Brings back a version of a file; by default that of the newest commit."""
        return self._receipt("restore", *_flag("at", at), *_flag("why", why), "--", path)

    def commit(
        self,
        operations: Iterable[Operation],
        *,
        why: str | None = None,
        key: str | None = None,
        force: bool = False,
    ) -> Receipt:
        """Changes several files at once: all of them or none."""
        change: dict[str, Any] = {"ops": [render_operation(op) for op in operations]}
        change.update({name: value for name, value in (("why", why), ("key", key)) if value})
        stdin = json.dumps(change, ensure_ascii=False)
        return self._receipt("commit", *_on("force", force), stdin=stdin)

    def status(self) -> Status:
        """All files, and the external edits that break the contract."""
        answer = self.command("status", "--files")
        scan = answer.data["scan"]
        files = tuple(
            FileState(f["path"], f["class"], f.get("version"), f.get("flag")) for f in scan["files"]
        )
        return Status(files, tuple(scan["free"]), answer.exit == 0, answer.text)

    def log(self, path: str | None = None, *, limit: int | None = None) -> list[LogEntry]:
        """Commits, newest first."""
        words = [*_flag("most", limit)] + ([] if path is None else ["--", path])
        return [
            LogEntry(c["seq"], c["at"], c["who"], c["why"], tuple(c.get("paths") or [path]))
            for c in self.command("log", *words).data
        ]

    # Records

    def decide(
        self,
        title: str,
        *,
        context: str | None = None,
        decision: str | None = None,
        why: str | None = None,
        alternatives: str | None = None,
        consequences: str | None = None,
        supersedes: Sequence[str] = (),
    ) -> str:
        """Records a decision and returns its id."""
        words = [*_flag("context", context), *_flag("decision", decision), *_flag("why", why)]
        words += [*_flag("alternatives", alternatives), *_flag("consequences", consequences)]
        words += [f"--supersedes={old}" for old in supersedes]
        return str(self.command("decide", *words, "--", title).data["id"])

    def decisions(self) -> list[Decision]:
        """All decisions, oldest first."""
        return [parse_decision(d) for d in self.command("decisions").data["decisions"]]

    def note(self, text: str) -> None:
        """Keeps a note that every start shows until it is removed."""
        self.command("note", "--", text)

    def fact(self, text: str) -> None:
        """Keeps a fact about people, outside systems or dates."""
        self.command("fact", "--", text)

    def _receipt(self, *words: str, stdin: str | None = None) -> Receipt:
        answer = self.command(*words, stdin=stdin)
        return parse_receipt(answer.data, answer.notes)


class Todos:
    """The todos of a project, which last across sessions."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def add(
        self,
        title: str,
        *,
        priority: str | None = None,
        description: str | None = None,
        due: str | None = None,
        assignee: str | None = None,
        tags: Sequence[str] = (),
        after: Sequence[str] = (),
    ) -> str:
        """Adds a todo and returns its id."""
        words = [*_flag("priority", priority), *_flag("description", description)]
        words += [*_flag("due", due), *_flag("assignee", assignee)]
        words += [f"--tag={tag}" for tag in tags] + [f"--after={todo}" for todo in after]
        return str(self._call("add", *words, "--", title).data["id"])

    def list(self, *, all: bool = False, status: str | None = None) -> List[Todo]:
        """Open todos, most important first; with `all`, completed and cancelled ones too."""
        answer = self._call("list", *_on("all", all), *_flag("status", status))
        return [parse_todo(todo) for todo in answer.data["todos"]]

    def edit(
        self,
        id: str,
        *,
        title: str | None = None,
        description: str | None = None,
        priority: str | None = None,
        note: str | None = None,
    ) -> None:
        words = [*_flag("title", title), *_flag("description", description)]
        self._call("edit", *words, *_flag("priority", priority), *_flag("note", note), "--", id)

    def start(self, id: str) -> None:
        """Marks a todo as in progress, assigned to this agent."""
        self._call("start", "--", id)

    def done(self, id: str) -> None:
        self._call("done", "--", id)

    def block(self, id: str, reason: str) -> None:
        self._call("block", f"--reason={reason}", "--", id)

    def unblock(self, id: str) -> None:
        self._call("unblock", "--", id)

    def cancel(self, id: str, *, reason: str | None = None) -> None:
        self._call("cancel", *_flag("reason", reason), "--", id)

    def _call(self, *words: str) -> Answer:
        return self._project.command("todo", *words)


def _flag(name: str, value: str | int | None) -> list[str]:
    return [] if value is None else [f"--{name}={value}"]


def _on(name: str, is_set: bool) -> list[str]:
    return [f"--{name}"] if is_set else []
