"""A pytest plugin: Anthropic's own tests of the memory tool, run against Quipu's.

The tests come from the source distribution of the `anthropic` package. They construct
`BetaLocalFilesystemMemoryTool(base_path=…)`, which is replaced here before they are imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import Type, TypeVar

from anthropic.lib.tools import _beta_builtin_memory_tool as theirs

from quipu_memory import Project
from quipu_memory.anthropic import AsyncQuipuMemoryTool, QuipuMemoryTool

_T = TypeVar("_T", QuipuMemoryTool, AsyncQuipuMemoryTool)


def _made(kind: Type[_T], base_path: str) -> _T:
    """A tool whose memory is in a project; its base folder has nothing but the memory."""
    base = Path(base_path)
    if base.exists():
        root, under = base / "project", "held/memories"
    else:
        root = next(folder for folder in base.parents if folder.exists())
        under = str(base.relative_to(root) / "memories")
    return kind(Project.create(root, agent="suite"), under=under)


def sync_tool(base_path: str = "./memory") -> QuipuMemoryTool:
    return _made(QuipuMemoryTool, base_path)


def async_tool(base_path: str = "./memory") -> AsyncQuipuMemoryTool:
    return _made(AsyncQuipuMemoryTool, base_path)


setattr(theirs, "BetaLocalFilesystemMemoryTool", sync_tool)
setattr(theirs, "BetaAsyncLocalFilesystemMemoryTool", async_tool)
