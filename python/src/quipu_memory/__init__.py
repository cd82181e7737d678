"""Memory for AI agents in plain files, with rules that are enforced.

`Project.open` is the entry. `quipu_memory.anthropic`, `quipu_memory.langgraph` and
`quipu_memory.openai_agents` connect it to these libraries, and `quipu_memory.tools` makes plain
functions for any other.
"""

from ._connection import Answer
from ._errors import (
    AgentFailed,
    Disconnected,
    NotFound,
    ProgramNotFound,
    QuipuError,
    Refused,
    Rule,
    Stale,
    StoreFailed,
    Unfinished,
    UsageError,
)
from ._project import Project, Todos
from ._values import (
    Append,
    Create,
    Decision,
    File,
    FileState,
    Finish,
    Hit,
    LogEntry,
    Merge,
    Operation,
    Receipt,
    Remove,
    Start,
    Status,
    Todo,
    Write,
)

__all__ = [
    "AgentFailed",
    "Answer",
    "Append",
    "Create",
    "Decision",
    "Disconnected",
    "File",
    "FileState",
    "Finish",
    "Hit",
    "LogEntry",
    "Merge",
    "NotFound",
    "Operation",
    "ProgramNotFound",
    "Project",
    "QuipuError",
    "Receipt",
    "Refused",
    "Remove",
    "Rule",
    "Stale",
    "Start",
    "Status",
    "StoreFailed",
    "Todo",
    "Todos",
    "Unfinished",
    "UsageError",
    "Write",
]
