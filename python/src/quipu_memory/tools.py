"""Plain functions that a model can call, for libraries that take functions as tools.

A refusal is returned as text, because the model has to read the rule and what to do instead.
Annotations are evaluated here: libraries build the schema of a tool from them.
"""

import functools
from typing import Callable, Literal, ParamSpec

from ._errors import QuipuError
from ._project import Project

__all__ = ["tools"]

_A = ParamSpec("_A")


def tools(project: Project) -> list[Callable[..., str]]:
    """The functions `recall`, `read`, `append`, `write`, `todo` and `decide` of a project."""

    def recall(question: str) -> str:
        """Find the sections of the project's memory that answer a question, with file and line.

        Args:
            question: The question, or words that the answer contains.
        """
        hits = project.recall(question)
        if not hits:
            return "Nothing in memory matches."
        shown = (f"{hit.path}:{hit.line} {' > '.join(hit.headings)}\n{hit.snippet}" for hit in hits)
        return "\n\n".join(shown)

    def read(path: str) -> str:
        """Read a file of the project's memory.

        Args:
            path: The file, one section of it as PATH#SECTION, or a line as PATH:LINE.
        """
        file = project.read(path)
        return f"{file.text}\n(version {file.version})"

    def append(path: str, text: str) -> str:
        """Add text at the end of a file. An append-only file can be changed in no other way.

        Args:
            path: The file, relative to the root of the project.
            text: The text.
        """
        project.append(path, text)
        return f"Saved {path}."

    def write(path: str, text: str, version: str | None = None) -> str:
        """Create a file or replace its whole text.

        Args:
            path: The file, relative to the root of the project.
            text: The text.
            version: The version that `read` showed, so that no newer text is replaced.
        """
        receipt = project.write(path, text, expect=version)
        return f"Saved {path} (version {receipt.version})."

    def todo(action: Literal["add", "start", "done", "list"], what: str = "") -> str:
        """Track work in todos, which last across sessions.

        Args:
            action: What to do.
            what: For `add` the title; for `start` and `done` the id.
        """
        if action == "add":
            return f"Added {project.todos.add(what)}."
        if action == "start":
            project.todos.start(what)
        elif action == "done":
            project.todos.done(what)
        todos = project.todos.list()
        lines = [f"{todo.id} [{todo.priority}, {todo.status}] {todo.title}" for todo in todos]
        return "\n".join(lines) or "No open todos."

    def decide(title: str, why: str) -> str:
        """Record a decision, so that it need not be made again.

        Args:
            title: The decision in one line.
            why: The reason for it.
        """
        return f"Recorded {project.decide(title, why=why)}."

    return [_told(tool) for tool in (recall, read, append, write, todo, decide)]


def _told(function: Callable[_A, str]) -> Callable[_A, str]:
    @functools.wraps(function)
    def told(*args: _A.args, **kwargs: _A.kwargs) -> str:
        try:
            return function(*args, **kwargs)
        except QuipuError as error:
            return f"error: {error}"

    return told
