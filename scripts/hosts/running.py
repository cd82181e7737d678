"""Agent programs at work on a project, against the scripted model: what every proof needs."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from model import Model  # noqa: E402

QUIPU, FOLDER = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
BIN = os.path.join(FOLDER, "node_modules/.bin")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEADLINE = 240
# A conversation that is said to be this long is compacted, where a host can be told how much fits.
FULL = 100_000
TASK = "Follow the plan."
# Stands in PROJECT.md: whoever was told where things stand has heard it.
SECRET = "The lighthouse keeper is called Ottoline."
# Of the skill's description, which hosts show their models.
SKILL = "Use when starting or ending work in a project with a quipu.toml"
# Cline shows its model the names of skills alone.
SKILL_NAME = "Available skills: quipu"


def claude(base, home):
    return {"ANTHROPIC_BASE_URL": base, "ANTHROPIC_API_KEY": "dummy", "ANTHROPIC_MODEL": "mock-model", "ENABLE_TOOL_SEARCH": "false",
            "IS_SANDBOX": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}


def codex(base, home):
    put(home, ".codex/config.toml", f'''model = "mock-model"
model_auto_compact_token_limit = {FULL // 2}
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
''')
    return {"OPENAI_API_KEY": "dummy"}


def gemini(base, home):
    put(home, ".gemini/settings.json", {"general": {"enableAutoUpdate": False}, "security": {"auth": {"selectedType": "gemini-api-key"}}})
    return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": base, "GEMINI_MODEL": "gemini-2.5-flash"}


def qwen(base, home):
    put(home, ".qwen/settings.json", {"security": {"auth": {"selectedType": "openai"}}, "general": {"enableAutoUpdate": False}})
    return {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": f"{base}/v1", "OPENAI_MODEL": "mock-model"}


def opencode(base, home):
    provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{base}/v1", "apiKey": "dummy"},
                "models": {"mock-model": {"name": "mock", "tool_call": True, "limit": {"context": FULL, "output": 1000}}}}
    put(home, "opencode.json", {"provider": {"mock": provider}, "model": "mock/mock-model", "small_model": "mock/mock-model",
                                "permission": {"external_directory": "allow"}})
    return {"OPENCODE_CONFIG": os.path.join(home, "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def goose(base, home):
    return {"GOOSE_DISABLE_KEYRING": "1", "GOOSE_MODE": "auto", "GOOSE_PROVIDER": "openai", "GOOSE_MODEL": "mock-model",
            "OPENAI_HOST": base, "OPENAI_API_KEY": "dummy", "GOOSE_CONTEXT_LIMIT": str(FULL)}


def copilot(base, home):
    # It runs hooks and servers of trusted folders alone.
    put(home, ".copilot/config.json", {"trusted_folders": [tempfile.gettempdir()]})
    return {"COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{base}/v1", "COPILOT_MODEL": "mock-model",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": str(FULL)}


def cline(base, home):
    # It takes models and servers from its own settings alone.
    settings = {"provider": "openai-compatible", "apiKey": "dummy", "model": "mock-model", "baseUrl": f"{base}/v1"}
    put(home, ".cline/data/settings/providers.json", {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}, "providers": {
        "openai-compatible": {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}}})
    put(home, ".cline/data/settings/cline_mcp_settings.json",
        {"mcpServers": {"quipu": {"command": "quipu", "args": ["mcp", "--as", "main", "--agent", "cline"]}}})
    return {"CLINE_NO_INTERACTIVE": "1"}


def cursor(base, home):
    # It runs hooks with the PATH of a login shell.
    put(home, ".profile", f"PATH={os.path.dirname(QUIPU)}:$PATH\n")
    return {"CURSOR_API_KEY": "dummy", "CURSOR_BACKEND_URL": base, "NODE_PATH": os.path.join(FOLDER, "node_modules")}


# How each is called where nobody sits before it.
CALLS = {
    "claude": ["claude", "-p", TASK, "--output-format", "stream-json", "--verbose", "--mcp-config", ".mcp.json",
               "--allowedTools", "mcp__quipu,Write,Edit,Bash"],
    "codex": ["codex", "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust",
              "--dangerously-bypass-approvals-and-sandbox", TASK],
    "gemini": ["env", "GEMINI_CLI_TRUST_WORKSPACE=true", "gemini", "-p", TASK, "-o", "stream-json", "--approval-mode", "yolo"],
    "qwen": ["qwen", TASK, "-o", "stream-json", "--yolo"],
    "opencode": ["opencode", "run", "--format", "json", TASK],
    "goose": ["goose", "run", "-q", "--output-format", "stream-json", "--with-builtin", "developer",
              "--with-extension", "quipu:quipu mcp --as main --agent goose", "-t", TASK],
    "copilot": ["copilot", "-p", TASK, "--allow-all-tools"],
    "cline": ["cline", "--json", TASK],
}

TOLD, OWN_NAME, DENIED_CHILD, NO_END = ("a subagent is told what it may do", "it is blamed under its own name", "its forbidden write is denied",
                                        "it does not end its parent's session")
NOTED, TOLD_AGAIN = ("the compaction is in the journal", "after a compaction the model has the start text")

# What a host has no place for: told, not tested. If it turns out to have one, that is told too, as a failure of this table.
# Copilot writes the last message into its transcript after it has called the hook.
# goose shows its model nothing of what a hook prints at a session's start or after a tool, and calls none for its delegates nor when
# it compacts.
# `opencode run` ends before a plugin can go on. Gemini CLI has no hook for a subagent; Qwen Code does not show one what its hook says.
HOSTS = {"claude": (claude, set()), "codex": (codex, set()), "gemini": (gemini, {TOLD, OWN_NAME}),
         "qwen": (qwen, {TOLD, OWN_NAME}),
         "opencode": (opencode, {"stop gate", "let go after two refusals"}),
         "goose": (goose, {"cold start", "bypass reported", TOLD, OWN_NAME, DENIED_CHILD, NO_END, NOTED, TOLD_AGAIN}),
         "copilot": (copilot, {"last message recorded"}),
         "cline": (cline, {"stop gate", "let go after two refusals"})}
# Prepared like the others, but without a model to talk to.
SPEECHLESS = {"cursor": cursor}


def put(folder, path, value):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(value if isinstance(value, str) else json.dumps(value))


def quipu(folder, *words, fine=True):
    done = subprocess.run([QUIPU, "-C", folder, *words], capture_output=True, text=True)
    if fine and done.returncode:
        raise SystemExit(f"quipu {' '.join(words)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def project(*hosts):
    """A relay with one more rule: the charter is sealed."""
    folder = os.path.join(tempfile.mkdtemp(prefix="quipu-hosts-"), "project")
    os.makedirs(folder)
    quipu(folder, "init", "--profile", "relay")
    with open(os.path.join(folder, "quipu.toml"), "a") as file:
        file.write('\n[[files]]\npath = "charter.md"\nclass = "sealed"\n')
    put(folder, "PROJECT.md", f"# Project\n\n{SECRET}\n")
    quipu(folder, "status")
    quipu(folder, "write", "charter.md", "--text", "We agreed on this.")
    subprocess.run(["git", "init", "-q", folder], check=True)
    for host in hosts:
        quipu(folder, "integrate", host)
    return folder


class Running:
    """A host at work on a project: by its words, or by other words of a shell."""

    def __init__(self, host, folder, script, words=None, home=""):
        self.model = Model(script)
        # One home for all conversations of a proof: a host numbers its conversations there. Two at once need two, where the address of
        # the model is in a file.
        home = os.path.join(os.path.dirname(folder), f"home-{host}{home}")
        os.makedirs(home, exist_ok=True)
        path = os.pathsep.join([os.path.dirname(QUIPU), BIN, os.environ["PATH"]])
        keep = {k: v for k, v in os.environ.items() if k in ("LANG", "TMPDIR", "TERM")}
        prepare = SPEECHLESS.get(host) or HOSTS.get(host, [None])[0]
        own = prepare(self.model.base, home) if prepare else {}
        env = {**keep, "PATH": path, "HOME": home, "XDG_CONFIG_HOME": f"{home}/.config", "NO_PROXY": "127.0.0.1", **own}
        words = words or CALLS[host]
        # A group of its own, so that nothing of it is left behind.
        process = subprocess.Popen([shutil.which(words[0], path=path), *words[1:]], cwd=folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        try:
            self.out, self.exit = process.communicate(timeout=DEADLINE)[0], process.returncode
        except subprocess.TimeoutExpired:
            self.exit = None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        end_all_of(home)
        if self.exit is None:
            self.out = process.communicate()[0]
        self.model.close()


def end_all_of(home):
    """Ends what a host left running in the background: with the home of its proof, and without a parent."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/stat") as stat:
                is_orphan = stat.read().rsplit(") ", 1)[1].split()[1] == "1"
                if is_orphan and f"HOME={home}".encode() in environ.read().split(b"\0"):
                    os.kill(int(pid), signal.SIGKILL)
        except (OSError, ProcessLookupError):
            pass


GATE = "changed files and is not finished"
HELD = "blocked at the stop gate"


def names(host):
    """The flags that an agent of this host names itself with, as `integrate` writes them into its settings."""
    folder = project()
    told = quipu(folder, "integrate", host, "--dry-run").stdout
    shutil.rmtree(os.path.dirname(folder))
    role = re.search(r"--as[\", ]+(\w+)", told)
    return f"--as {role[1]} --agent {host}" if role else f"--agent {host}"


def begun(folder):
    return quipu(folder, "log", "-n", "500").stdout.count(" begins")


def captured(folder):
    """What is recorded of the sessions that are open, oldest first."""
    return [one["captured"] for one in json.loads(quipu(folder, "capture", "show", "--json").stdout)["sessions"]]
