"""One running `quipu mcp`, and the commands that are sent to it.

The server answers one message after another, so a lock holds the pipe for a whole call and threads
take turns. A process that was forked gets a server of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
import tempfile
import threading
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Sequence

from ._errors import Disconnected, ProgramNotFound, QuipuError, UsageError, error_of

PROGRAM_VARIABLE = "QUIPU_BIN"
_REVISION = "2025-11-25"
_ENDS_WITHIN_SECONDS = 10


@dataclass(frozen=True)
class Answer:
    """The result of a command."""

    data: Any
    """The data that `--json` prints."""
    text: str
    """The text that the command prints."""
    notes: tuple[str, ...]
    """Messages beside the data."""
    exit: int
    """0, or 1 if the answer is no."""


def find_program() -> str:
    """The program that `QUIPU_BIN` names, or the one of this Python's wheel, or the one on the PATH."""
    named = os.environ.get(PROGRAM_VARIABLE)
    if named:
        return named
    beside = Path(sysconfig.get_path("scripts")) / "quipu"
    if os.access(beside, os.X_OK):
        return str(beside)
    found = shutil.which("quipu")
    if found is None:
        raise ProgramNotFound(
            "the program `quipu` is neither beside this Python nor on the PATH",
            repair=f"install a wheel that has it, or set {PROGRAM_VARIABLE} to its path",
        )
    return found


class Connection:
    """Sends commands to a server, which starts with the first of them."""

    def __init__(self, program: str, arguments: Sequence[str]) -> None:
        self._line = [program, *arguments]
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def command(self, words: Sequence[str], stdin: str | None = None) -> Answer:
        """Runs one command; raises the error that it reports."""
        with self._lock:
            if self._server is None or not self._server.is_usable():
                self._server = _Server(self._line)
            result = self._server.request(
                "quipu/command", {"words": list(words), "input": stdin}
            )
        failure = result.get("failure")
        if failure is not None:
            raise error_of(failure, int(result["exit"]))
        return Answer(
            data=result.get("data"),
            text=str(result.get("text", "")),
            notes=tuple(result.get("notes", ())),
            exit=int(result["exit"]),
        )

    def close(self) -> None:
        """Ends the server. The next command would start another."""
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None


class _Server:
    """The process, and the messages on its pipes."""

    def __init__(self, line: Sequence[str]) -> None:
        self._owner = os.getpid()
        self._last_id = 0
        # A file, since nobody reads a pipe of messages while waiting for an answer.
        self._stderr = tempfile.TemporaryFile()
        try:
            # A group of its own: Ctrl-C is for the Python program, which then closes the pipe.
            self._process: subprocess.Popen[bytes] = subprocess.Popen(
                line,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
            )
        except OSError as error:
            raise ProgramNotFound(f"`{line[0]}` cannot be started: {error}") from error
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin: IO[bytes] = self._process.stdin
        self._stdout: IO[bytes] = self._process.stdout
        self._finalizer = weakref.finalize(self, _end, self._process, self._owner)
        client = {"name": "quipu-memory", "version": "0.1.0"}
        self.request(
            "initialize",
            {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": client},
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def is_usable(self) -> bool:
        return self._owner == os.getpid() and self._process.poll() is None

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._send(message)
        while True:
            line = self._stdout.readline()
            if not line:
                raise self._ended()
            answer: dict[str, Any] = json.loads(line)
            # A call that was interrupted while it waited left its answer in the pipe.
            if answer.get("id") == self._last_id:
                break
        error = answer.get("error")
        if error is not None:
            repair = None
            if method == "quipu/command" and error.get("code") == -32601:
                repair = "update `quipu`: this program is older than the Python package"
            raise UsageError(str(error.get("message")), repair=repair)
        result: dict[str, Any] = answer["result"]
        return result

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        try:
            self._stdin.write(line)
            self._stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def _ended(self) -> QuipuError:
        self.close()
        self._stderr.seek(0)
        said = self._stderr.read().decode("utf-8", "replace").strip()
        if self._last_id == 1 and self._process.returncode and said:
            # It refused to start: a folder that does not exist, a name that is none.
            return error_of({"error": said.removeprefix("error: ")}, self._process.returncode)
        return Disconnected(f"`quipu mcp` ended during the call: {said or 'it said nothing'}")

    def close(self) -> None:
        self._finalizer()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """Closes the pipe, which ends the server; a forked child only closes its copies."""
    for pipe in (process.stdin, process.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass
    if owner == os.getpid():
        try:
            process.wait(_ENDS_WITHIN_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
