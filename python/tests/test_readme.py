"""The examples of README.md, in order and in one process, against a scripted model."""

import json
import re
import threading
from contextlib import redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

README = Path(__file__).parent.parent / "README.md"
CALLS = {
    "memory": {"command": "create", "path": "/memories/user.md", "file_text": "drinks tea"},
    "decide": {"title": "Keep logs for a week", "why": "the user said so"},
}


class Model(BaseHTTPRequestHandler):
    """Calls the tool that it is given, and repeats what the tool returned."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = message(request) if self.path.endswith("/messages") else response()
        stream = bool(request.get("stream"))
        body = events(answer) if stream else json.dumps(answer)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
        self.send_header("Content-Length", str(len(body.encode())))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


def message(request: dict[str, Any]) -> dict[str, Any]:
    """An answer of Anthropic's API."""
    last: Any = request["messages"][-1]["content"]
    results = [part for part in last if isinstance(part, dict) and part["type"] == "tool_result"]
    if results:
        told = results[0]["content"]
        text = told if isinstance(told, str) else told[0]["text"]
        content: dict[str, Any] = {"type": "text", "text": text}
    else:
        name = next(tool["name"] for tool in request["tools"] if tool["name"] in CALLS)
        content = {"type": "tool_use", "id": "toolu_1", "name": name, "input": CALLS[name]}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": [content],
        "stop_reason": "end_turn" if results else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def events(answer: dict[str, Any]) -> str:
    """The same answer as a stream."""
    (content,) = answer["content"]
    if content["type"] == "text":
        empty: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": content["text"]}
    else:
        empty = {**content, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(content["input"])}
    end = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    steps: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**answer, "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {step['type']}\ndata: {json.dumps(step)}\n\n" for step in steps)


def response() -> dict[str, Any]:
    """An answer of OpenAI's API."""
    text: dict[str, Any] = {"type": "output_text", "text": "Tea.", "annotations": []}
    said: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": "gpt-5",
        "output": [said],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
    }


def llama_message(messages: Sequence[ChatMessage], **_: Any) -> ChatMessage:
    """An answer of LlamaIndex's own mock model."""
    if messages[-1].role == MessageRole.TOOL:
        return ChatMessage(role=MessageRole.ASSISTANT, content="Done.")
    call = ToolCallBlock(tool_call_id="1", tool_name="decide", tool_kwargs=CALLS["decide"])
    return ChatMessage(role=MessageRole.ASSISTANT, blocks=[call])


@pytest.fixture
def model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def examples() -> list[tuple[str, str]]:
    """Each Python block with the output that follows it."""
    blocks = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", README.read_text(), re.DOTALL)
    assert len(blocks) >= 8
    return [(code, told) for code, told in blocks]


def test_the_examples_print_what_they_say(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in [
        ("ANTHROPIC_BASE_URL", model),
        ("ANTHROPIC_API_KEY", "none"),
        ("OPENAI_BASE_URL", f"{model}/v1"),
        ("OPENAI_API_KEY", "none"),
        ("OPENAI_AGENTS_DISABLE_TRACING", "1"),
    ]:
        monkeypatch.setenv(name, value)
    names: dict[str, Any] = {"llm": MockFunctionCallingLLM(response_generator=llama_message)}
    for code, told in examples():
        said = StringIO()
        with redirect_stdout(said):
            exec(compile(code, "README.md", "exec"), names)
        assert said.getvalue() == told, code
