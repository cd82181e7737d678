"""A scripted model on the loopback address, in the four forms that agent programs speak.

It answers a request with the next step of a script: a tool call, or words. Which step is next follows from the request
itself (how many results of tools it tells of), so a program may repeat a request without harm.
"""
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHELLS = ["Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell", "developer__shell", "run_commands"]
AGENTS = ["Agent", "agent", "task", "spawn_agent", "invoke_agent", "delegate"]
WRITERS = ["Write", "write", "write_file", "developer__write", "developer__text_editor", "text_editor", "editor"]


class Call:
    """A tool that the model wants: by what it does, not by what the host calls it."""

    def __init__(self, kind, **args):
        self.kind, self.args = kind, args


def mcp(tool, **args):
    return Call("mcp", tool=tool, args=args)


def shell(line):
    return Call("shell", line=line)


def write(path, text):
    return Call("write", path=path, text=text)


def agent(task):
    """A subagent of the host that shall do this."""
    return Call("agent", task=task)


def tool(name, **args):
    """A tool by the host's own name."""
    return Call("tool", name=name, args=args)


def results_in(value):
    """How many results of tools a conversation tells of, in whichever form."""
    if isinstance(value, list):
        return sum(map(results_in, value))
    if not isinstance(value, dict):
        return 0
    told = (value.get("role") == "tool" or "functionResponse" in value
            or value.get("type") in ("tool_result", "function_call_output", "custom_tool_call_output"))
    return 1 if told else sum(map(results_in, value.values()))


def tools_of(body):
    found = []

    def add(tool, space=""):
        if tool.get("type") == "namespace":
            for inner in tool.get("tools", []):
                add(inner, tool.get("name", ""))
            return
        for one in tool.get("functionDeclarations") or [tool.get("function") or tool]:
            schema = next((one[k] for k in ("parameters", "input_schema", "parametersJsonSchema") if k in one), None)
            if one.get("name") and (schema is not None or one.get("type") == "custom"):
                found.append((one["name"], schema, space))

    for tool in body.get("tools") or []:
        add(tool)
    return found


def first(schema, names):
    return next((n for n in names if n in (schema or {}).get("properties", {})), None)


def plan(tools, call):
    """Name, arguments and namespace of an offered tool that does what is wanted, or none."""
    def named(names):
        return next((t for n in names for t in tools if t[0] == n and "quipu" not in t[2]), None)

    if call.kind == "mcp":
        want = call.args["tool"]
        tool = next((t for t in tools if "quipu" in (t[0] + t[2]) and t[0].replace("quipu", "").strip("_-.").endswith(want)), None)
        if tool:
            return tool[0], dict(call.args["args"]), tool[2]
        # Some hosts keep the tools of servers back, and offer one tool that calls them by name.
        bridge = named(["tool_call"])
        return bridge and (bridge[0], {"name": f"mcp__quipu__{want}", "arguments": call.args["args"]}, "")
    if call.kind == "tool":
        tool = named([call.args["name"]])
        return tool and (tool[0], dict(call.args["args"]), tool[2])
    if call.kind == "agent":
        tool = named(AGENTS)
        if not tool:
            return None
        # Each host has an agent for any work, under another name.
        kind = "generalist" if tool[0] == "invoke_agent" else "general" if first(tool[1], ["task_id"]) else "general-purpose"
        wanted = {"prompt": call.args["task"], "task": call.args["task"], "message": call.args["task"], "instructions": call.args["task"], "description": "Look at knots",
                  "subagent_type": kind, "agent_type": kind, "agent_name": kind, "name": "knots", "run_in_background": False}
        return filled(tool, {key: value for key, value in wanted.items() if first(tool[1], [key])})
    if call.kind == "write":
        tool = named(WRITERS)
        if tool:
            place = first(tool[1], ["file_path", "filePath", "path", "absolute_path"])
            body = first(tool[1], ["content", "contents", "file_text", "new_text"])
            return filled(tool, {place: call.args["path"], body: call.args["text"]})
        tool = named(["apply_patch"])
        if tool and tool[1] is None:
            lines = "".join(f"+{line}\n" for line in call.args["text"].splitlines())
            return tool[0], f"*** Begin Patch\n*** Delete File: {call.args['path']}\n*** Add File: {call.args['path']}\n{lines}*** End Patch", tool[2]
        call = shell(f"echo '{call.args['text'].strip()}' > {call.args['path']}")
    tool = named(SHELLS)
    if not tool:
        return None
    key = first(tool[1], ["command", "cmd", "commands"])
    line = call.args["line"]
    if key == "commands":
        return filled(tool, {key: [line]})
    listed = tool[1]["properties"][key].get("type") == "array"
    return filled(tool, {key: ["/bin/sh", "-c", line] if listed else line})


def filled(tool, args):
    """With a value for whatever else the schema asks."""
    name, schema, space = tool
    for required in schema.get("required", []):
        kind = schema["properties"].get(required, {}).get("type")
        args.setdefault(required, False if kind == "boolean" else "x")
    return name, args, space


class Model:
    """`script(body)` says what the model wants: a Call, or a text. Every request is kept. `used` says how many tokens a request took, and
    `aside` what the model answers where it is offered no tools."""

    def __init__(self, script):
        self.script, self.requests, self.missing = script, [], []
        self.used, self.aside = getattr(script, "used", lambda body: 50), getattr(script, "aside", "ok")
        self.lock, self.count = threading.Lock(), 0
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                self.send(json.dumps({"data": [], "models": [], "items": [{"id": "composer-2", "displayName": "Composer"}]}))

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(text)
                except ValueError:
                    body = {}
                kind, answer = model.answer(self.path, body)
                self.send(answer, kind)

            def send(self, text, kind="application/json"):
                data = text.encode()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, path, body):
        talk = [body.get(k) for k in ("messages", "contents", "input")]
        tools = tools_of(body)
        with self.lock:
            self.count += 1
            number = self.count
            # A request without tools is small talk: titles, summaries, probes.
            want = self.script(results_in(talk), json.dumps(body, ensure_ascii=False)) if tools else self.aside
            if tools:
                self.requests.append(body)
        call = plan(tools, want) if isinstance(want, Call) else None
        if isinstance(want, Call) and call is None:
            self.missing.append((want.kind, want.args, [t[0] for t in tools]))
        text = want if isinstance(want, str) else "no such tool"
        used = self.used(body)
        if "/messages" in path and "count_tokens" not in path:
            return anthropic(number, text, call, body.get("stream"), used)
        if "/chat/completions" in path:
            return openai(number, text, call, body.get("stream"), used)
        if "/responses" in path:
            return responses(number, text, call, used)
        if "enerateContent" in path:
            return google(path, text, call, used)
        return "application/json", json.dumps({"data": [], "input_tokens": 1, "totalTokens": 1})

    def heard(self, text):
        """Whether any request of the conversation says this."""
        return any(text in json.dumps(body, ensure_ascii=False) or text in json.dumps(body) for body in self.requests)


def events(items, named=False):
    lines = []
    for item in items:
        if named:
            lines.append(f"event: {item['type']}\n")
        lines.append(f"data: {item if isinstance(item, str) else json.dumps(item)}\n\n")
    return "text/event-stream", "".join(lines)


def anthropic(number, text, call, stream, used):
    usage = {"input_tokens": used, "output_tokens": 5}
    whole = {"type": "tool_use", "id": f"toolu_{number}", "name": call[0], "input": call[1]} if call else {"type": "text", "text": text}
    reason = "tool_use" if call else "end_turn"
    message = {"id": f"m{number}", "type": "message", "role": "assistant", "model": "mock-model", "content": [],
               "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not stream:
        return "application/json", json.dumps({**message, "content": [whole], "stop_reason": reason})
    empty = {**whole, "input": {}} if call else {**whole, "text": ""}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])} if call else {"type": "text_delta", "text": text}
    return events([
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ], named=True)


def openai(number, text, call, stream, used):
    usage = {"prompt_tokens": used, "completion_tokens": 5, "total_tokens": used + 5}
    said, reason = {"role": "assistant", "content": text}, "stop"
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        said, reason = {"role": "assistant", "content": None, "tool_calls": [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]}, "tool_calls"
    shared = {"id": f"c{number}", "created": 1, "model": "mock-model"}
    if not stream:
        return "application/json", json.dumps({**shared, "object": "chat.completion", "usage": usage,
                                               "choices": [{"index": 0, "message": said, "finish_reason": reason}]})
    chunk = lambda delta, reason: {**shared, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    return events([chunk(said, None), {**chunk({}, reason), "usage": usage}, "[DONE]"])


def responses(number, text, call, used):
    if call and isinstance(call[1], str):
        item = {"type": "custom_tool_call", "id": f"fc{number}", "call_id": f"call_{number}", "name": call[0], "input": call[1]}
    elif call:
        item = {"type": "function_call", "id": f"fc{number}", "call_id": f"call_{number}", "name": call[0], "arguments": json.dumps(call[1])}
        if call[2]:
            item["namespace"] = call[2]
    else:
        item = {"type": "message", "id": f"m{number}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": text, "annotations": []}]}
    usage = {"input_tokens": used, "output_tokens": 5, "total_tokens": used + 5,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return events([
        {"type": "response.created", "response": {"id": f"r{number}"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": f"r{number}", "usage": usage}},
    ], named=True)


def google(path, text, call, used):
    part = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": text}
    answer = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
              "usageMetadata": {"promptTokenCount": used, "candidatesTokenCount": 5, "totalTokenCount": used + 5}}
    return events([answer]) if "stream" in path else ("application/json", json.dumps(answer))
