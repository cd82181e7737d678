"""A session of the OpenAI Agents SDK, kept as one JSON object a line in a file of a project.

New items are appended, so runs that write to one session at the same time lose nothing.
"""

from __future__ import annotations

import asyncio
import json
from typing import Callable, TypeVar, cast
from urllib.parse import quote

from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings

from ._errors import NotFound, Stale
from ._project import Project
from ._values import File

__all__ = ["QuipuSession"]

_T = TypeVar("_T")
_MOST_ATTEMPTS = 20


class QuipuSession(SessionABC):
    """The history of one conversation, in `conversations/SESSION_ID.jsonl`."""

    def __init__(
        self,
        session_id: str,
        project: Project,
        *,
        under: str = "conversations",
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self.project = project
        # Any text may be an id, and an encoded one cannot leave the folder.
        name = quote(session_id, safe=" ").replace(".", "%2E")
        self.path = f"{under.strip('/')}/{name}.jsonl"

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if limit is None:
            limit = self.session_settings.limit if self.session_settings else None
        items = [_parse(line) for line in _lines(await asyncio.to_thread(self._read))]
        if limit is None:
            return items
        return items[-limit:] if limit > 0 else []

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        if items:
            text = "".join(_render(item) for item in items)
            await asyncio.to_thread(self.project.append, self.path, text)

    async def pop_item(self) -> TResponseInputItem | None:
        return await asyncio.to_thread(self._retried, self._pop)

    async def clear_session(self) -> None:
        await asyncio.to_thread(self._retried, self._clear)

    def _read(self) -> File | None:
        try:
            return self.project.read(self.path)
        except NotFound:
            return None

    def _pop(self) -> TResponseInputItem | None:
        file = self._read()
        lines = _lines(file)
        if file is None or not lines:
            return None
        text = "".join(f"{line}\n" for line in lines[:-1])
        self.project.write(self.path, text, expect=file.version, force=True)
        return _parse(lines[-1])

    def _clear(self) -> None:
        file = self._read()
        if file is not None:
            self.project.remove(self.path, expect=file.version)

    def _retried(self, change: Callable[[], _T]) -> _T:
        """Repeats a change that another process came before."""
        for _ in range(_MOST_ATTEMPTS - 1):
            try:
                return change()
            except Stale:
                continue
        return change()


def _lines(file: File | None) -> list[str]:
    return [] if file is None else [line for line in file.text.split("\n") if line]


def _render(item: TResponseInputItem) -> str:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":")) + "\n"


def _parse(line: str) -> TResponseInputItem:
    return cast(TResponseInputItem, json.loads(line))
