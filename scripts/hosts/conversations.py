"""What only a whole conversation shows: subagents, two windows, a compaction, and files that are given back byte for byte.

Each proof returns rows: what it is about, and whether it holds.
"""
import json
import os
import re
import shutil
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor

from model import AGENTS, agent, shell, tool, tools_of, write
from running import CALLS, FULL, HOSTS, QUIPU, ROOT, SECRET, TASK, Running, captured, names, project, put, quipu

CHILD = "Look into the knots of the other rope."
SUMMARY = "They counted the knots up to forty-two."


def kept(host, folder, failed, **runs):
    """Leaves what was said where something failed, and nothing where all went well."""
    if not failed:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        return
    for name, run in runs.items():
        put(folder, f"../{name}-said.txt", run.out)
        put(folder, f"../{name}-heard.json", json.dumps(run.model.requests, indent=1, ensure_ascii=False))
        print(f"  {host}: {name}: exit {run.exit}; tools missing {run.model.missing}; see {os.path.dirname(folder)}")


def subagents(host):
    """A subagent is told its name and works under it, is denied what is forbidden, and does not end its parent's session."""
    folder = project(host)
    charter, call, children = os.path.join(folder, "charter.md"), names(host), []

    def child(done, body):
        children.append(body)
        own = re.search(r"(--as \w+ )?--agent [\w]+-[\w-]+", body)
        own = own[0] if own else call
        steps = [shell(f"{QUIPU} decide 'Found by the child' --why 'asked' {own}"),
                 shell(f"{QUIPU} finish {own} --did 'all' --next 'rest' --none decisions"), write(charter, "Rewritten.\n")]
        return steps[done] if done < len(steps) else "The child is done."

    def script(done, body):
        # Some hosts show a subagent the start text, which says what the user asked for.
        offered = {name for name, *_ in tools_of(json.loads(body))}
        if CHILD in body and (TASK not in body or "complete_task" in offered or not offered & {*AGENTS}):
            return child(done, body)
        steps = [write(os.path.join(folder, "left.txt"), "half\n"), agent(CHILD)]
        # Codex goes on without its agent, unless it waits for it; Copilot may, too.
        waits = re.findall(r'agent_id\W+([\w-]+)', body)
        if host == "codex" and waits:
            steps.append(tool("wait_agent", targets=[waits[-1]], timeout_ms=60_000))
        return steps[done] if done < len(steps) else "Half of it is done."

    run = Running(host, folder, script)
    log = quipu(folder, "log", "-n", "500").stdout
    found = [line for line in log.splitlines() if "Found by the child" in line]
    rows = [
        ("a subagent was started", bool(children)),
        ("a subagent is told what it may do", any("You are a subagent" in body for body in children)),
        ("it is blamed under its own name", any(f"({host}-" in line or f"  {host}-" in line for line in found)),
        ("its forbidden write is denied", bool(children) and open(charter).read() == "We agreed on this.\n"),
        ("it does not end its parent's session", any("left.txt" in one["changed"] for one in captured(folder))),
    ]
    return rows, (folder, {"subagents": run})


def windows(host):
    """Two conversations at once in one project: the finish of one ends its own session alone."""
    folder = project(host)
    call, done_file, out = names(host), os.path.join(folder, "../done"), os.path.join(folder, "../finished.txt")
    # Gemini CLI runs no command with a substitution.
    wait = "timeout 100 sh -c 'until [ -e %s ]; do sleep 0.1; done'"
    one = [write(os.path.join(folder, "one.txt"), "1\n"), shell("touch ../one; " + wait % done_file)]
    two = [shell(wait % "../one"), write(os.path.join(folder, "two.txt"), "2\n"),
           shell(f"{QUIPU} finish {call} --did 'two' --next 'three' --none decisions > {out} 2>&1; {QUIPU} capture show --json > ../open.json; touch {done_file}")]
    with ThreadPoolExecutor(2) as pool:
        # goose is told the address by its environment, and numbers conversations in its home.
        homes = ("", "") if host == "goose" else ("-one", "-two")
        ran = list(pool.map(lambda steps, home: Running(host, folder, lambda done, _: steps[done] if done < len(steps) else "I am done.",
                                                        home=home), (one, two), homes))
    finished = open(out).read() if os.path.exists(out) else ""
    path = os.path.join(folder, "../open.json")
    left = json.loads(open(path).read() or "{}").get("sessions", []) if os.path.exists(path) else []
    rows = [("a finish in one window ends no other's session",
             "ended" in finished and "also closed" not in finished and [one["captured"]["changed"] for one in left] == [["one.txt"]])]
    return rows, (folder, {"one": ran[0], "two": ran[1]})


# What hosts ask a model for when they compact a conversation.
ASKS_FOR_SUMMARY = re.compile(r"detailed summary|checkpoint compaction|state_snapshot|summar\w* (of )?(the|this|our) conversation|"
                              r"continu\w+ (of )?(the|this|our) conversation|context summar|conversation summar", re.I)


def compaction(host):
    """After a compaction the model has the start text again, and the journal has a note of it."""
    folder = project(host)
    after, told = [], []
    # Texts of some length, since a host does not compact a few words, and two requests of the user: the gate makes the second.
    steps = [write(os.path.join(folder, "left.txt"), "half\n"), shell("seq 1 2000"), "Half of it is done.", shell("seq 2000 4000")]
    if host == "cline":
        # It takes a conversation for a quarter of what the model says, at least.
        steps[2:2] = [shell(f"seq {n}000 {n + 2}000") for n in range(2, 12)]
    if "stop gate" in HOSTS[host][1]:
        steps.remove("Half of it is done.")

    def script(_, text):
        body = json.loads(text)
        talk = next((body[key] for key in ("messages", "contents", "input") if body.get(key)), [])
        if SUMMARY in text:
            after.append(text)
            return shell("echo after") if len(after) == 1 else "I am done."
        if ASKS_FOR_SUMMARY.search(json.dumps(talk[-1:])):
            return SUMMARY
        told.append(text)
        return steps[len(told) - 1] if len(told) <= len(steps) else "I am done."

    def used(_):
        large = {"gemini": 900_000, "claude": 190_000, "qwen": 190_000, "cline": 190_000, "opencode": FULL - 500}.get(host, FULL - 5_000)
        return large if len(told) >= len(steps) and not after else 50

    script.used, script.aside = used, SUMMARY
    runs = [Running(host, folder, script)]
    if host == "claude" and not after:
        # It compacts on request, and goes on with the same conversation.
        for words in ("/compact", TASK):
            runs.append(Running(host, folder, script, ["claude", "-p", words, "--continue", *CALLS[host][3:]]))
    if host == "goose" and not after:
        # It compacts before it answers the next request.
        runs.append(Running(host, folder, script, ["goose", "run", "--resume", "-q", "--output-format", "stream-json", "-t", TASK]))
    journal = quipu(folder, "log", "-n", "500").stdout
    rows = [("a conversation was compacted", bool(after)), ("the compaction is in the journal", "compact" in journal),
            ("after a compaction the model has the start text", any(SECRET in text for text in after))]
    return rows, (folder, {f"compaction{n}": run for n, run in enumerate(runs)})


def returned(host):
    """`integrate --remove` gives back each file byte for byte, also after the host has worked with it."""
    table = tomllib.loads(open(os.path.join(ROOT, "crates/quipu/hosts/hosts.toml")).read())["hosts"]
    files = next(one["files"] for one in table if one["name"] == host)
    folder = os.path.join(tempfile.mkdtemp(prefix="quipu-hosts-"), "project")
    os.makedirs(folder)
    quipu(folder, "init", "--profile", "relay")
    before = {}
    for file in files:
        if file["kind"] == "whole":
            continue
        # No newline at the end, and an object that is empty: what an editor leaves, and what is hard to give back.
        text = "{}" if file["kind"] == "json" else "# mine" if file.get("mark") == "hash" else "# Mine\n\nMy own rule."
        if file["path"].endswith("plugin.json"):
            continue
        put(folder, file["path"], text)
        before[file["path"]] = text.encode()

    def there():
        found = {file["path"]: os.path.join(folder, file["path"]) for file in files}
        return {path: open(place, "rb").read() for path, place in found.items() if os.path.exists(place)}

    quipu(folder, "integrate", host)
    changed = all(there()[path] != text for path, text in before.items())
    quipu(folder, "integrate", host, "--remove")
    at_once = there() == before
    quipu(folder, "integrate", host)
    run = Running(host, folder, lambda *_: "I am done.")
    quipu(folder, "integrate", host, "--remove")
    # Some hosts write a version or the address of a schema into their settings.
    after = all(text == before.get(path) or path in before and b"quipu" not in text for path, text in there().items())
    rows = [("removed byte for byte", changed and at_once), ("removed after the host has worked", after and there().keys() == before.keys())]
    return rows, (folder, {"removal": run})


PROOFS = (subagents, windows, compaction, returned)


def conversations(host, lacks):
    """The rows of every proof, and what failed; a proof that fails leaves its folder."""
    rows, failed = [], []
    for proof in PROOFS:
        found, (folder, runs) = proof(host)
        bad = [name for name, good in found if not good and name not in lacks]
        kept(host, folder, bad, **runs)
        rows += [(name, "yes" if good else "no place for it" if name in lacks else "NO") for name, good in found]
        failed += bad + [f"{name}: it can" for name, good in found if good and name in lacks]
    return rows, failed
