#!/usr/bin/env python3
"""Proves the plugin of Codex and the extension of Gemini CLI: each is installed into an empty home, and then the host works on
a project against a scripted model. The start text reaches the model, an append over MCP lands, and a write to a sealed file is
denied.

    prove_packages.py QUIPU PACKAGES     QUIPU: the program; PACKAGES: what scripts/package-hosts built; the hosts are on the PATH
"""
import os
import shlex
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import Model, mcp, write  # noqa: E402

QUIPU, PACKAGES = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
DEADLINE = 240
SECRET = "The lighthouse keeper is called Ottoline."
CODEX = """model = "mock-model"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""
GEMINI = '{"general": {"enableAutoUpdate": false}, "security": {"auth": {"selectedType": "gemini-api-key"}}}'

# For each host its settings, its environment, and the commands that install and call it.
HOSTS = {
    "codex": (
        ".codex/config.toml",
        CODEX,
        {"OPENAI_API_KEY": "dummy"},
        f"codex plugin marketplace add {shlex.quote(PACKAGES)}/codex && codex plugin add quipu@quipu && "
        "codex exec --json --skip-git-repo-check --dangerously-bypass-hook-trust --dangerously-bypass-approvals-and-sandbox 'Follow the plan.'",
    ),
    "gemini": (
        ".gemini/settings.json",
        GEMINI,
        {"GEMINI_API_KEY": "dummy", "GEMINI_MODEL": "gemini-2.5-flash", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        f"gemini extensions install {shlex.quote(PACKAGES)}/gemini --consent --skip-settings && "
        "gemini -p 'Follow the plan.' -o stream-json --approval-mode yolo",
    ),
}


def project():
    """A relay with one more rule: the charter is sealed."""
    folder = os.path.join(tempfile.mkdtemp(prefix="quipu-packages-"), "project")
    os.makedirs(folder)

    def quipu(*words):
        subprocess.run([QUIPU, "-C", folder, *words], check=True, capture_output=True)

    quipu("init", "--profile", "relay", "--no-integrate")
    with open(os.path.join(folder, "quipu.toml"), "a") as file:
        file.write('\n[[files]]\npath = "charter.md"\nclass = "sealed"\n')
    with open(os.path.join(folder, "PROJECT.md"), "w") as file:
        file.write(f"# Project\n\n{SECRET}\n")
    quipu("status")
    quipu("write", "charter.md", "--text", "We agreed on this.")
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def prove(host):
    settings, text, own, line = HOSTS[host]
    folder, home = project(), tempfile.mkdtemp(prefix=f"quipu-{host}-")
    charter, decisions = (os.path.join(folder, name) for name in ("charter.md", "decisions.md"))
    steps = [mcp("append", path="decisions.md", text="- kept by the package"), write(charter, "Rewritten.\n")]
    model = Model(lambda done, _: steps[done] if done < len(steps) else "I am done.")
    place = os.path.join(home, settings)
    os.makedirs(os.path.dirname(place))
    with open(place, "w") as file:
        file.write(text.replace("{base}", model.base))
    # `quipu` is called by that name: hooks and server find it on the PATH.
    programs = tempfile.mkdtemp(prefix="quipu-bin-")
    os.symlink(QUIPU, os.path.join(programs, "quipu"))
    env = {
        "PATH": os.pathsep.join([programs, os.environ["PATH"]]),
        "HOME": home,
        "NO_PROXY": "127.0.0.1",
        "GOOGLE_GEMINI_BASE_URL": model.base,
        **own,
    }
    process = subprocess.Popen(["sh", "-c", line], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said = process.communicate(timeout=DEADLINE)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said = process.communicate()[0]
    model.close()
    checks = {
        "start text": model.heard(SECRET),
        "append": "- kept by the package" in open(decisions).read(),
        "denial": model.heard("is sealed") and open(charter).read() == "We agreed on this.\n",
    }
    print(f"{host} with its package: " + ", ".join(f"{name}: {'yes' if fine else 'NO'}" for name, fine in checks.items()))
    if not all(checks.values()):
        print(f"tools missing {model.missing}\n{said}", file=sys.stderr)
    return all(checks.values())


sys.exit(0 if all([prove(host) for host in HOSTS]) else 1)
