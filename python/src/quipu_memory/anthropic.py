"""Anthropic's memory tool over a folder of a project.

Every command is carried out by Quipu, so each change is a commit and the contract holds. The texts of
answers and errors are those of the `anthropic` package.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from anthropic.lib.tools import (
    BetaAbstractMemoryTool,
    BetaAsyncAbstractMemoryTool,
    BetaFunctionToolResultType,
    ToolError,
)
from anthropic.types.beta import (
    BetaCacheControlEphemeralParam,
    BetaMemoryTool20250818CreateCommand,
    BetaMemoryTool20250818DeleteCommand,
    BetaMemoryTool20250818InsertCommand,
    BetaMemoryTool20250818RenameCommand,
    BetaMemoryTool20250818StrReplaceCommand,
    BetaMemoryTool20250818ViewCommand,
)
from anyio import Path as AsyncPath
from pydantic import BaseModel

from ._project import Project
from ._values import Remove

__all__ = ["AsyncQuipuMemoryTool", "QuipuMemoryTool"]


class _Memory:
    """The folder of a project that the model sees as `/memories`."""

    def __init__(self, project: Project, under: str) -> None:
        self.project = project
        self.under = under.strip("/")
        self.memory_root = project.folder / self.under
        self.base_path = self.memory_root.parent

    def ensure_root(self) -> None:
        _make_private(self.memory_root)

    def perform(self, command: BaseModel | dict[str, Any]) -> str:
        if isinstance(command, BaseModel):
            fields = command.model_dump(exclude_none=True)
        else:
            fields = dict(command)
        answer = self.project.command(
            "memory-tool", f"--under={self.under}", stdin=json.dumps(fields)
        )
        content = str(answer.data["content"])
        if answer.data["is_error"]:
            raise ToolError(content)
        return content

    def clear(self) -> str:
        """Removes all files in one commit."""
        within = f"{self.under}/"
        status = self.project.status()
        paths = [*(file.path for file in status.files), *status.free]
        removals = [Remove(path) for path in paths if path.startswith(within)]
        if removals:
            self.project.commit(removals, why="the memory was cleared")
        return "All memory cleared"


def _make_private(folder: Path) -> None:
    """Creates a folder, and those above it, for this user alone, whatever the umask."""
    if not folder.is_dir():
        _make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)


class QuipuMemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `client.beta.messages.run_tools` (or `tool_runner`)."""

    def __init__(
        self,
        project: Project,
        *,
        under: str = "memories",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._memory = _Memory(project, under)
        self._memory.ensure_root()

    @property
    def memory_root(self) -> Path:
        return self._memory.memory_root

    @property
    def base_path(self) -> Path:
        return self._memory.base_path

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def str_replace(
        self, command: BetaMemoryTool20250818StrReplaceCommand
    ) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> BetaFunctionToolResultType:
        return self._memory.perform(command)

    def clear_all_memory(self) -> BetaFunctionToolResultType:
        return self._memory.clear()


class AsyncQuipuMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`."""

    def __init__(
        self,
        project: Project,
        *,
        under: str = "memories",
        cache_control: BetaCacheControlEphemeralParam | None = None,
    ) -> None:
        super().__init__(cache_control=cache_control)
        self._memory = _Memory(project, under)

    @property
    def memory_root(self) -> AsyncPath:
        return AsyncPath(self._memory.memory_root)

    @property
    def base_path(self) -> AsyncPath:
        return AsyncPath(self._memory.base_path)

    async def _ensure_memory_root(self) -> None:
        await asyncio.to_thread(self._memory.ensure_root)

    async def _perform(self, command: BaseModel | dict[str, Any]) -> str:
        await self._ensure_memory_root()
        return await asyncio.to_thread(self._memory.perform, command)

    async def view(self, command: BetaMemoryTool20250818ViewCommand) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def create(
        self, command: BetaMemoryTool20250818CreateCommand
    ) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def str_replace(
        self, command: BetaMemoryTool20250818StrReplaceCommand
    ) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def insert(
        self, command: BetaMemoryTool20250818InsertCommand
    ) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def delete(
        self, command: BetaMemoryTool20250818DeleteCommand
    ) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def rename(
        self, command: BetaMemoryTool20250818RenameCommand
    ) -> BetaFunctionToolResultType:
        return await self._perform(command)

    async def clear_all_memory(self) -> BetaFunctionToolResultType:
        return await asyncio.to_thread(self._memory.clear)
