#!/usr/bin/env python3
"""Proves the doors with real agent programs: `quipu integrate HOST`, then the host itself against a scripted model.

    scripts/test-hosts                 installs the programs and calls this
    prove.py QUIPU FOLDER [HOST …]     QUIPU: the program; FOLDER: where the agent programs are

For each host, in a fresh project: the cold start and the skill reach the model; an append over MCP lands; a write to a sealed file is
denied and the model hears why; a write that the hook cannot see is reported to the model right after it, and `status` flags it. The request, the changed file and the last message
are recorded; `quipu start` in the middle goes on with the session; a second conversation is a second session and is told what the first
left. The stop gate holds after a change, lets go after two refusals and the journal says so, does not hold a question, and holds again
after a finish. Two conversations at once do not end one another; a subagent is told its name and ends nothing; after a compaction the model has the
start text; `--remove` gives every file back (`conversations.py`). Then two hosts at once append to one file. What a host cannot do (its table says so) is printed.

Cursor's agent talks to its vendor's servers in a language of its own, for which nothing is scripted here. Of it is shown what comes
before: it reads the rules and the skill, starts the MCP server, and calls the hooks of a session's start and of a stop.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from conversations import conversations  # noqa: E402
from model import mcp, shell, write  # noqa: E402
from running import (BIN, CALLS, DEADLINE, FOLDER, GATE, HELD, HOSTS, QUIPU, ROOT, SECRET, SKILL, SKILL_NAME, SPEECHLESS, TASK, Running, begun,  # noqa: E402
                     captured, names, project, put, quipu)


def sessions(host):
    """A question, a conversation that is left unfinished, another one after it, and one that finishes and goes on."""
    folder = project(host)
    asked = Running(host, folder, lambda *_: "It is four.")
    quiet = captured(folder)
    checks = [
        ("a question is not held", HELD not in quipu(folder, "log", "-n", "500").stdout and not asked.model.heard(GATE)),
        ("request recorded", [[r["text"].strip('"') for r in one["requests"]] for one in quiet] == [[TASK]]),
        ("last message recorded", [one["last_message"] for one in quiet] == ["It is four."]),
    ]
    call = names(host)
    steps = [write(os.path.join(folder, "left.txt"), "half\n"), shell(f"{QUIPU} start {call}")]
    run = Running(host, folder, lambda done, _: steps[done] if done < len(steps) else "Half of it is done.")
    left = captured(folder)[-1:]
    # A host that shows no start text at first gets all of it from this call.
    is_first = "cold start" in HOSTS[host][1]
    checks += [
        ("start goes on with the session", run.model.heard(SECRET if is_first else ") continues.") and begun(folder) == 2),
        ("changed file recorded", [one["changed"] for one in left] == [["left.txt"]]),
    ]
    # The next one is told, ends what was left, and goes on: the gate holds it again.
    steps = [*([shell(f"{QUIPU} start {call}")] if is_first else []), write(os.path.join(folder, "one.txt"), "1\n"),
             shell(f"{QUIPU} finish {call} --did 'one' --next 'two' --none decisions > finished.txt 2>&1"),
             write(os.path.join(folder, "two.txt"), "2\n")]
    next_run = Running(host, folder, lambda done, _: steps[done] if done < len(steps) else "Two as well.")
    text = next_run.model.heard
    finished = open(os.path.join(folder, "finished.txt")).read() if os.path.exists(os.path.join(folder, "finished.txt")) else ""
    journal = quipu(folder, "log", "-n", "500").stdout.split("finish: one")[0]
    checks += [
        ("the next is told what was left", text("left.txt") and text("never finished")
         and (text("Half of it is done.") or "last message recorded" in HOSTS[host][1])),
        ("finish closes what was left", "also closed session" in finished),
        ("held again after a finish", HELD in journal and [one["changed"] for one in captured(folder)[-1:]] == [["two.txt"]]),
        ("purged", quipu(folder, "capture", "purge").returncode == 0 and quipu(folder, "verify", fine=False).returncode == 0
         and not any(one["requests"] for one in captured(folder))),
    ]
    lacks = HOSTS[host][1]
    failed = [name for name, good in checks if not good and name not in lacks]
    if failed:
        put(folder, "../said.txt", f"{asked.out}\n---\n{run.out}\n---\n{next_run.out}")
        put(folder, "../heard.json", json.dumps([r.model.requests for r in (asked, run, next_run)], indent=1, ensure_ascii=False))
        print(f"  {host}: exits {asked.exit} {run.exit} {next_run.exit}; see {os.path.dirname(folder)}", file=sys.stderr)
    else:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    words = {True: "yes", False: "no place for it"}
    return [(name, "NO" if name in failed else words[good]) for name, good in checks], failed


def alone(host):
    """Everything that one host has to show; what failed, and what it has no place for."""
    folder = project(host)
    charter = os.path.join(folder, "charter.md")
    steps = [
        mcp("append", path="decisions.md", text=f"- kept by {host}"),
        write(charter, "Rewritten.\n"),
        # No hook can know what this writes: the command is made by another.
        shell("echo ZWNobyBieXBhc3NlZCA+IGNoYXJ0ZXIubWQ= | base64 -d | sh"),
    ]
    seen = {}

    def script(done, _):
        if done == 2 and "before the bypass" not in seen:
            seen["before the bypass"] = open(charter).read()
        return steps[done] if done < len(steps) else "I am done."

    run = Running(host, folder, script)
    journal = quipu(folder, "log", "--json").stdout
    status = quipu(folder, "status", fine=False)
    verify = quipu(folder, "verify", fine=False)
    heard = run.model.heard
    checks = [
        ("cold start", heard(SECRET)),
        ("skill", heard(SKILL_NAME if host == "cline" else SKILL)),
        ("append", f"- kept by {host}" in open(os.path.join(folder, "decisions.md")).read()),
        ("denial", seen.get("before the bypass") == "We agreed on this.\n" and heard("is sealed")),
        ("bypass found", open(charter).read() == "bypassed\n" and "charter.md" in status.stdout and status.returncode == 1
         and "charter.md" in verify.stdout + verify.stderr and verify.returncode == 1),
        # The charter is not among the files that the role reads: it is counted, not named.
        ("bypass reported", heard("1 files that your role may not read break the contract")),
        ("held", HELD in journal),
        ("stop gate", heard(GATE)),
        ("let go after two refusals", journal.count(HELD) == 2 and journal.count("stopped without a finish") == 1),
        ("restored", quipu(folder, "restore", "charter.md").returncode == 0 and open(charter).read() == "We agreed on this.\n"),
        ("removed", quipu(folder, "integrate", host, "--remove").returncode == 0),
    ]
    lacks = HOSTS[host][1]
    failed = [name for name, good in checks if not good and name not in lacks]
    surprises = [name for name, good in checks if good and name in lacks]
    if failed:
        put(folder, "../said.txt", run.out)
        put(folder, "../heard.json", json.dumps(run.model.requests, indent=1, ensure_ascii=False))
        print(f"  {host}: exit {run.exit}; tools missing {run.model.missing}; see {os.path.dirname(folder)}", file=sys.stderr)
    else:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    return [(name, "no place for it" if name in lacks and not good else "yes" if good else "NO") for name, good in checks], failed + [f"{s}: it can" for s in surprises]


def speechless():
    """What Cursor's own agent does in an integrated project before it needs its vendor."""
    folder = project("cursor")
    # A `quipu` that tells what it was called with, before the real one.
    calls = os.path.join(folder, "../calls.txt")
    put(folder, "../bin/quipu", f'#!/bin/sh\necho "$@" >> {calls}\nexec {QUIPU} "$@"\n')
    os.chmod(os.path.join(folder, "../bin/quipu"), 0o755)
    ask = [line for line in open(os.path.join(ROOT, "docs/guide/hosts/cursor.md")).read().splitlines() if line.startswith("node -e ")]
    run = Running("cursor", folder, lambda *_: "ok", ["bash", "-c", f"PATH={folder}/../bin:$PATH; {ask[0]}"])
    called = open(calls).read().splitlines() if os.path.exists(calls) else []
    journal = quipu(folder, "log", "--json").stdout
    checks = [
        ("rules and skill read", "ruleCount: 1, skillCount: 1" in run.out),
        ("MCP server started", "mcp --as main --agent cursor" in called),
        ("session begun by its hook", "begins" in journal),
        ("stop heard", "capture: last message" in journal),
        ("removed", quipu(folder, "integrate", "cursor", "--remove").returncode == 0 and not os.path.exists(os.path.join(folder, ".cursor"))),
    ]
    failed = [name for name, good in checks if not good]
    if failed:
        put(folder, "../said.txt", run.out)
        print(f"  cursor: exit {run.exit}; called {called}; see {os.path.dirname(folder)}", file=sys.stderr)
    else:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    return [(name, "yes" if good else "NO") for name, good in checks], failed


def plugin(folder_of_plugins):
    """The plugin of the release instead of `integrate`: Claude Code's own validator, then a cold start and a denial."""
    path = os.pathsep.join([BIN, os.environ["PATH"]])
    program = shutil.which("claude", path=path)
    home = tempfile.mkdtemp(prefix="quipu-plugin-")
    env = {"PATH": path, "HOME": home, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
    good = True
    for part in (folder_of_plugins, os.path.join(folder_of_plugins, "quipu")):
        done = subprocess.run([program, "plugin", "validate", part], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=DEADLINE)
        print(f"claude plugin validate {os.path.relpath(part)}: {'valid' if done.returncode == 0 else 'FAILED'}")
        if done.returncode:
            print(done.stdout + done.stderr, file=sys.stderr)
            good = False
    folder = project()
    charter = os.path.join(folder, "charter.md")
    steps = [mcp("append", path="decisions.md", text="- kept by the plugin"), write(charter, "Rewritten.\n")]
    words = ["claude", "-p", TASK, "--plugin-dir", os.path.join(folder_of_plugins, "quipu"), "--allowedTools", "mcp__plugin_quipu_quipu,Write"]
    run = Running("claude", folder, lambda done, _: steps[done] if done < len(steps) else "I am done.", words)
    checks = {"cold start": run.model.heard(SECRET), "append": "- kept by the plugin" in open(os.path.join(folder, "decisions.md")).read(),
              "denial": run.model.heard("is sealed") and open(charter).read() == "We agreed on this.\n"}
    print("claude with the plugin: " + ", ".join(f"{name}: {'yes' if fine else 'NO'}" for name, fine in checks.items()))
    if not all(checks.values()):
        put(folder, "../said.txt", run.out)
        print(f"  tools missing {run.model.missing}; see {os.path.dirname(folder)}", file=sys.stderr)
    return good and all(checks.values())


def followed(host):
    """The commands of the host's page, word for word, in a fresh project that nothing was integrated into."""
    page = os.path.join(ROOT, f"docs/guide/hosts/{host}.md")
    blocks = open(page).read().split("```sh\n")[1:]
    lines = [line for block in blocks for line in block.split("```")[0].splitlines()]
    folder = project()
    commands = "set -e\n" + "\n".join(lines)
    steps = [mcp("append", path="decisions.md", text="- seen")]
    run = Running(host, folder, lambda done, _: steps[done] if done < len(steps) else "I am done.", ["bash", "-c", commands])
    lacks = HOSTS[host][1] if host in HOSTS else {"cold start"}
    # What a host keeps in the project for itself is its own affair.
    ours = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", "QWEN.md", ".mcp.json", ".claude/settings.json", ".codex/config.toml", ".codex/hooks.json",
            ".gemini/settings.json", ".qwen/settings.json", "opencode.json", ".opencode/plugin/quipu.js", ".cursor/mcp.json", ".cursor/hooks.json",
            ".claude/skills/quipu/SKILL.md", ".agents/skills/quipu/SKILL.md", ".agents/plugins/quipu/hooks/hooks.json",
            ".github/hooks/quipu.json", ".github/mcp.json", ".vscode/mcp.json", ".cline/plugins/quipu.js", ".clinerules/hooks/PreToolUse"]
    there = [os.path.join(folder, path) for path in ours]
    left = [path for path in there if os.path.exists(path) and "quipu" in open(path).read()]
    began = f"{host}  session" in run.out or "begins" in run.out
    good = run.exit == 0 and began and (host == "cursor" or "cold start" in lacks or run.model.heard(SECRET)) and not left
    if host in HOSTS:
        good = good and "- seen" in open(os.path.join(folder, "decisions.md")).read()
    if good:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    else:
        put(folder, "../said.txt", run.out)
        print(f"  {host}'s page: exit {run.exit}; left {left}; see {os.path.dirname(folder)}", file=sys.stderr)
    return good


def together(one, other, entries=8):
    """Two hosts at once on one append file: every entry is there once, and none was torn."""
    folder = project(one, other)

    def work(host):
        steps = [mcp("append", path="decisions.md", text=f"- entry {number} of {host}") for number in range(entries)]
        return Running(host, folder, lambda done, _: steps[done] if done < entries else "I am done.")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (one, other)))
    lines = open(os.path.join(folder, "decisions.md")).read().splitlines()
    wanted = [f"- entry {number} of {host}" for host in (one, other) for number in range(entries)]
    lost = [line for line in wanted if lines.count(line) != 1]
    whole = quipu(folder, "verify", fine=False).returncode == 0
    if lost or not whole:
        print(f"  {one} and {other}: lost or doubled {lost}; verify {'fine' if whole else 'failed'}; see {folder}", file=sys.stderr)
        return False
    shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
    return True


def main():
    named = sys.argv[3:] or [*HOSTS, *SPEECHLESS]
    path = os.pathsep.join([BIN, os.environ["PATH"]])
    there = [host for host in named if host in HOSTS and shutil.which(host, path=path)]
    has_cursor = "cursor" in named and os.path.isdir(os.path.join(FOLDER, "node_modules/@cursor/sdk"))
    for host in named:
        if host not in there and not (host == "cursor" and has_cursor):
            print(f"SKIPPED {host}: the program is not in {BIN} nor on PATH")
    failed = []
    for host in there:
        parts = [alone(host), sessions(host), conversations(host, HOSTS[host][1])]
        rows, wrong = (sum(lists, []) for lists in zip(*parts))
        print(f"{host:<9} " + ", ".join(f"{name}: {word}" for name, word in rows), flush=True)
        failed += [f"{host}: {what}" for what in wrong]
    if has_cursor:
        rows, wrong = speechless()
        print("cursor    " + ", ".join(f"{name}: {word}" for name, word in rows), flush=True)
        failed += [f"cursor: {what}" for what in wrong]
    for host in [*there, *(["cursor"] if has_cursor else []), *([] if sys.argv[3:] else ["agents-md"])]:
        fine = followed(host)
        print(f"{host:<9} its page, followed word for word: {'yes' if fine else 'NO'}", flush=True)
        failed += [] if fine else [f"{host}: its page"]
    if len(there) > 1:
        fine = together(there[0], there[1])
        print(f"{there[0]} and {there[1]} at once on one append file: {'nothing lost' if fine else 'FAILED'}")
        failed += [] if fine else ["two at once"]
    if "claude" in there:
        failed += [] if plugin(os.path.join(ROOT, "plugins")) else ["the plugin"]
    if len(there) < 3 and not sys.argv[3:]:
        print(f"only {len(there)} of the agent programs are here; at least three are wanted", file=sys.stderr)
        sys.exit(1)
    for what in failed:
        print(f"FAILED {what}", file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
