"""The client: every call, and each kind of error."""

import json
import multiprocessing
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from quipu_memory import (
    Append,
    Create,
    Disconnected,
    Merge,
    NotFound,
    ProgramNotFound,
    Project,
    Refused,
    Remove,
    Stale,
    StoreFailed,
    Unfinished,
    UsageError,
    Write,
)
from quipu_memory._connection import find_program

FINISH = """## Done
- the parser
## Decisions
- none
## Next
- test it on real files
"""


def test_a_session_leaves_its_state_to_the_next(folder: Path) -> None:
    with Project.create(folder, agent="ada", role="main") as project:
        assert project.start().session
        todo = project.todos.add("write the lexer", priority="high", tags=["core"])
        project.todos.start(todo)
        with pytest.raises(Unfinished) as missing:
            project.finish("## Done\n- the parser\n")
        assert "## Next" in missing.value.lines
        finished = project.finish(FINISH + f"## Todos\n- leave {todo}\n")
        assert finished.receipt is not None
    with Project.open(folder, agent="bob", role="main") as project:
        text = project.start().text
        assert "test it on real files" in text and "write the lexer" in text


def test_files_are_read_and_changed_under_the_contract(project: Project) -> None:
    saved = project.append("decisions.md", "- SQLite, since there is no server", why="agreed")
    assert saved.seq > 0 and not saved.unchanged
    assert project.read("decisions.md").text.endswith("- SQLite, since there is no server\n")
    assert project.log("decisions.md", limit=1)[0].why == "agreed"

    with pytest.raises(Refused) as refused:
        project.write("decisions.md", "gone")
    assert refused.value.rule is not None
    assert refused.value.rule.place.startswith("profiles/relay/profile.toml:")
    assert refused.value.repair is not None
    assert refused.value.repair.startswith("quipu append decisions.md")
    assert "append-only" in str(refused.value)

    notes = project.write("notes.md", "one\n").version
    project.write("notes.md", "two\n", expect=notes)
    with pytest.raises(Stale):
        project.write("notes.md", "three\n", expect=notes)
    assert project.read("notes.md", at="~1").text == "one\n"
    project.remove("notes.md")
    with pytest.raises(NotFound):
        project.read("notes.md")
    project.restore("notes.md", at="~1")
    assert project.read("notes.md").text == "two\n"


def test_a_key_saves_once(project: Project) -> None:
    first = project.append("decisions.md", "- once", key="k1")
    second = project.append("decisions.md", "- once", key="k1")
    assert second.repeated and second.seq == first.seq
    assert project.read("decisions.md").text.count("- once") == 1


def test_a_commit_is_whole_or_absent(project: Project) -> None:
    project.commit(
        [
            Create("a.md", "one\n"),
            Append("a.md", "two\n"),
            Write("b.json", "{}\n"),
            Merge("b.json", {"x": 1}),
        ],
        why="both",
        key="both",
    )
    assert project.read("a.md").text == "one\ntwo\n"
    assert json.loads(project.read("b.json").text) == {"x": 1}
    with pytest.raises(Refused):
        project.commit([Remove("a.md"), Write("decisions.md", "gone")])
    assert project.read("a.md").text == "one\ntwo\n"


@pytest.mark.parametrize("text", ["- a\n", "--json", "-", "", "“引号” 'x' \"y\" \\ $HOME\r\n", "a\0b"])
def test_any_text_arrives_as_it_is(project: Project, text: str) -> None:
    project.write("any.md", text, force=True)
    assert (project.folder / "any.md").read_bytes() == text.encode()
    if text.strip() and "\0" not in text and "\n" not in text:
        todo = project.todos.add(text)
        assert [t.title for t in project.todos.list() if t.id == todo] == [text]


def test_records_are_typed(project: Project) -> None:
    old = project.decide("SQLite", why="no server", alternatives="PostgreSQL")
    new = project.decide("PostgreSQL", why="two machines", supersedes=[old])
    first, second = project.decisions()
    assert (first.id, first.why, first.superseded_by) == (old, "no server", new)
    assert second.supersedes == (old,)

    todo = project.todos.add("ship", priority="critical", description="to all", due="2027-01-01")
    project.todos.block(todo, "waits for the audit")
    (blocked,) = project.todos.list(status="blocked")
    assert (blocked.id, blocked.priority, blocked.description) == (todo, "critical", "to all")
    project.todos.unblock(todo)
    project.todos.edit(todo, title="ship it", note="nearly")
    project.todos.done(todo)
    assert project.todos.list() == []
    (done,) = project.todos.list(all=True)
    assert (done.title, done.status) == ("ship it", "completed")
    cancelled = project.todos.add("never")
    project.todos.cancel(cancelled, reason="not needed")

    project.note("ask Mira about the licence")
    project.fact("the audit is on Friday")
    assert "Mira" in project.start(full=True).text


def test_recall_finds_sections(project: Project) -> None:
    project.decide("Keep the index in SQLite", why="there is no server on the machine")
    hit = project.recall("where is the index kept?")[0]
    assert hit.path == "decisions.md" and "SQLite" in hit.headings[-1]
    assert project.read(f"{hit.path}:{hit.line}").section is not None
    assert project.recall("zebra quagga okapi") == [] or all(
        hit.weak for hit in project.recall("zebra quagga okapi")
    )
    assert project.recall("") == []


def test_an_edit_outside_is_flagged(project: Project) -> None:
    assert project.status().ok
    (project.folder / "decisions.md").write_text("rewritten\n")
    status = project.status()
    (flagged,) = [file for file in status.files if file.flag]
    assert not status.ok and flagged.path == "decisions.md" and flagged.class_name == "append"


def test_any_command_can_be_called(project: Project) -> None:
    answer = project.command("contract", "show")
    assert any(file["path"] == "decisions.md" for file in answer.data["files"])
    for words in [("mcp",), ("serve",), ("no-such",), ("status", "--agent=eve")]:
        with pytest.raises(UsageError):
            project.command(*words)


def test_what_is_for_people_is_refused(project: Project) -> None:
    with pytest.raises(Refused):
        project.command("eject", "--yes")
    with pytest.raises(Refused):
        project.write("quipu.toml", "quipu = 1\n")


def test_a_role_reads_only_what_it_may(folder: Path) -> None:
    Project.create(folder, agent="ada").close()
    with Project.open(folder, agent="eve", role="main") as project:
        with pytest.raises(Refused):
            project.write("PROJECT.md", "# Mine\n")
    with pytest.raises(Refused):
        Project.open(folder, agent="eve", role="no-such-role")


def test_a_folder_without_a_project_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Project.open(tmp_path, agent="ada")
    with pytest.raises(NotFound):
        Project.open(tmp_path / "missing", agent="ada")
    with pytest.raises(UsageError):
        Project.open(tmp_path, agent="a b")


def test_a_program_that_is_missing_or_no_quipu_is_named(folder: Path) -> None:
    with pytest.raises(ProgramNotFound):
        Project.open(folder, agent="ada", program="/no/such/program")
    with pytest.raises(Disconnected):
        Project.open(folder, agent="ada", program="/bin/true")


def test_threads_share_a_project(project: Project) -> None:
    def write(thread: int) -> None:
        for line in range(5):
            project.append("decisions.md", f"- {thread}.{line}")

    threads = [threading.Thread(target=write, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    text = project.read("decisions.md").text
    assert all(f"- {n}.{line}\n" in text for n in range(4) for line in range(5))


def _append_in_child(project: Project) -> None:
    project.append("decisions.md", "- from the child")


def test_a_forked_process_uses_a_server_of_its_own(project: Project) -> None:
    project.append("decisions.md", "- from the parent")
    child = multiprocessing.get_context("fork").Process(target=_append_in_child, args=(project,))
    child.start()
    child.join()
    assert child.exitcode == 0
    project.append("decisions.md", "- from the parent again")
    text = project.read("decisions.md").text
    assert "from the child" in text and "parent again" in text


def test_a_server_that_was_killed_is_reported_and_replaced(project: Project) -> None:
    server = project._connection._server
    assert server is not None
    os.kill(server._process.pid, signal.SIGSTOP)
    threading.Timer(0.2, os.kill, (server._process.pid, signal.SIGKILL)).start()
    with pytest.raises(Disconnected):
        project.append("decisions.md", "- lost?", key="lost")
    project.append("decisions.md", "- lost?", key="lost")
    assert project.read("decisions.md").text.count("- lost?") == 1


def test_an_interrupted_call_does_not_mix_up_answers(project: Project) -> None:
    server = project._connection._server
    assert server is not None
    os.kill(server._process.pid, signal.SIGSTOP)
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            project.todos.list()
    finally:
        signal.signal(signal.SIGALRM, previous)
        os.kill(server._process.pid, signal.SIGCONT)
    assert project.read("decisions.md").path == "decisions.md"


def test_closing_ends_the_server(folder: Path) -> None:
    project = Project.create(folder, agent="ada")
    server = project._connection._server
    assert server is not None
    project.close()
    assert server._process.returncode == 0
    assert project.read("decisions.md").version
    project.close()


def test_the_version_is_that_of_the_program() -> None:
    said = subprocess.check_output([find_program(), "--version"], text=True).split()[-1]
    pyproject = (Path(__file__).parent.parent / "pyproject.toml").read_text()
    assert f'version = "{said}"' in pyproject


def test_errors_have_a_class_for_each_exit_code() -> None:
    from quipu_memory._errors import error_of

    assert isinstance(error_of({"error": "busy", "rule": None, "do": None}, 7), StoreFailed)
