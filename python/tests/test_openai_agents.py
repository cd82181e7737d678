"""The OpenAI Agents SDK's session over a file."""

import asyncio
from pathlib import Path
from typing import Any, cast

from agents import Agent, Runner, set_tracing_disabled
from agents.memory import SessionSettings
from agents.items import ModelResponse
from agents.models.interface import Model
from agents.usage import Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from quipu_memory import Project
from quipu_memory.openai_agents import QuipuSession

set_tracing_disabled(True)


def item(text: str) -> Any:
    return {"role": "user", "content": text}


async def test_items_are_lines_of_a_file(project: Project) -> None:
    session = QuipuSession("ada-1", project)
    assert await session.get_items() == [] and await session.pop_item() is None
    await session.clear_session()
    await session.add_items([item("one"), item("zwei\n三")])
    await session.add_items([])
    await session.add_items([item("three")])
    assert await session.get_items() == [item("one"), item("zwei\n三"), item("three")]
    assert await session.get_items(2) == [item("zwei\n三"), item("three")]
    assert await session.get_items(0) == []
    lines = (project.folder / "conversations/ada-1.jsonl").read_text().splitlines()
    assert len(lines) == 3

    assert await session.pop_item() == item("three")
    assert await session.get_items() == [item("one"), item("zwei\n三")]
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items([item("again")])
    assert await QuipuSession("ada-1", project).get_items() == [item("again")]


async def test_sessions_are_apart_and_any_id_is_a_name(project: Project) -> None:
    ids = ["a", "b", "../../etc/passwd", "A/b", "中", "x.jsonl"]
    for id in ids:
        await QuipuSession(id, project).add_items([item(id)])
    for id in ids:
        assert await QuipuSession(id, project).get_items() == [item(id)]
    assert all(path.startswith("conversations/") for path in project.status().free)


async def test_the_limit_of_the_settings_counts(project: Project) -> None:
    session = QuipuSession("s", project, session_settings=SessionSettings(limit=1))
    await session.add_items([item("one"), item("two")])
    assert await session.get_items() == [item("two")]


async def test_writers_at_the_same_time_lose_nothing(folder: Path) -> None:
    Project.create(folder, agent="ada").close()
    projects = [Project.open(folder, agent=f"a{n}") for n in range(3)]
    sessions = [QuipuSession("shared", project) for project in projects]
    await asyncio.gather(
        *(session.add_items([item(f"{n}.{line}")]) for n, session in enumerate(sessions) for line in range(4))
    )
    popped = await asyncio.gather(*(session.pop_item() for session in sessions))
    left = await sessions[0].get_items()
    texts = {entry["content"] for entry in [*left, *cast(Any, popped)]}
    assert texts == {f"{n}.{line}" for n in range(3) for line in range(4)}
    assert len(left) == 9
    for project in projects:
        project.close()


class Echo(Model):
    """A model that says how many items it was given."""

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> ModelResponse:
        text = ResponseOutputText(text=f"{len(input)} items", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


async def test_a_runner_continues_the_conversation(project: Project) -> None:
    agent = Agent(name="echo", model=Echo())
    for expected in ("1 items", "3 items"):
        session = QuipuSession("talk", project)
        result = await Runner.run(agent, "hello", session=session)
        assert result.final_output == expected
