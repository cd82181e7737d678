//! External agents through `quipu run`: their usage and cost, faults sent back, the MCP server
//! passed to them, and every kind of failure.

use serde_json::{Value, json};

use crate::rehearsal::Desk;
use crate::server::{Reply, Server};

/// A contract with one step: read `in.md`, write `out.md`.
const ONE_STEP: &str = r#"
quipu = 1

[[files]]
path = "in.md"
class = "sealed"

[[files]]
path = "out.md"
class = "overwrite"
marker = "DONE"

[roles.writer]
title = "Writer"
duty = "writing"

[[roles.writer.read]]
path = "in.md"
why = "what is asked"

[[roles.writer.write]]
path = "out.md"
marker = "DONE"

[[steps]]
name = "write"
role = "writer"
retries = 1
deadline = "60s"
"#;

const GOOD: &str = "# Knots\n\nA knot stays.\n\n<!-- DONE -->\n";

fn desk(more: &str) -> Desk {
    let desk = Desk::lay(&["profile", "list"]);
    desk.put("quipu.toml", &format!("{ONE_STEP}{more}"));
    desk.put("in.md", "# Task\n\nWrite about knots.\n");
    desk.fine(&["trust", "--yes"]);
    desk
}

/// A model's answer over either API: text, or a call of the write tool. 120 tokens in, 30 out.
fn answer(api: &str, text: &str, write: Option<&str>, end: &str) -> Reply {
    let input = write.map(|text| json!({"path": "out.md", "content": text}).to_string());
    let mut events = Vec::new();
    if api == "openai" {
        let delta = |delta: Value| json!({"choices": [{"delta": delta}]}).to_string();
        events.push(delta(json!({"content": text})));
        if let Some(input) = input {
            events.push(delta(json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "write_file", "arguments": input}}]})));
        }
        events.push(json!({"choices": [{"delta": {}, "finish_reason": end}]}).to_string());
        events.push(
            json!({"choices": [], "usage": {"prompt_tokens": 120, "completion_tokens": 30}})
                .to_string(),
        );
        events.push("[DONE]".to_owned());
    } else {
        let usage = json!({"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 1});
        events.push(json!({"type": "message_start", "message": {"usage": usage}}).to_string());
        let start = |index: u32, block: Value| {
            json!({"type": "content_block_start", "index": index, "content_block": block})
                .to_string()
        };
        let delta = |index: u32, delta: Value| {
            json!({"type": "content_block_delta", "index": index, "delta": delta}).to_string()
        };
        events.push(start(0, json!({"type": "text", "text": ""})));
        events.push(delta(0, json!({"type": "text_delta", "text": text})));
        events.push(json!({"type": "content_block_stop", "index": 0}).to_string());
        if let Some(input) = input {
            events.push(start(
                1,
                json!({"type": "tool_use", "id": "c", "name": "write_file", "input": {}}),
            ));
            events.push(delta(
                1,
                json!({"type": "input_json_delta", "partial_json": input}),
            ));
            events.push(json!({"type": "content_block_stop", "index": 1}).to_string());
        }
        let end = match end {
            "length" => "max_tokens",
            "tool_calls" => "tool_use",
            _ => "end_turn",
        };
        events.push(json!({"type": "message_delta", "delta": {"stop_reason": end}, "usage": {"output_tokens": 30}}).to_string());
        events.push(json!({"type": "message_stop"}).to_string());
    }
    Reply::Events(events)
}

fn writes(api: &str, text: &str) -> Reply {
    answer(api, "", Some(text), "tool_calls")
}

fn says(api: &str, text: &str) -> Reply {
    answer(api, text, None, "stop")
}

/// The table of an HTTP agent called `model`.
fn model(api: &str, base: &str) -> String {
    let base = if api == "openai" {
        format!("{base}/v1")
    } else {
        base.to_owned()
    };
    format!(
        "\n[agents.model]\nvia = \"http\"\napi = \"{api}\"\nbase = \"{base}\"\nmodel = \"mock\"\nretries = 0\n"
    )
}

const PRICES: &str = "\n[prices.model]\ninput = 1000.0\noutput = 2000.0\n";

/// Returns the output of a command with `--json`.
fn data(desk: &Desk, arguments: &[&str]) -> Value {
    let said = desk.fine(arguments);
    serde_json::Deserializer::from_str(&said)
        .into_iter()
        .next()
        .unwrap()
        .unwrap_or_else(|e| panic!("{e}\n{said}"))
}

/// Parses the printed lines of `--json`.
fn events(said: &str) -> Vec<Value> {
    said.lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[test]
fn tokens_and_their_cost_are_told_and_kept() {
    for api in ["openai", "anthropic"] {
        let server = Server::scripted(vec![
            writes(api, GOOD),
            says(api, "done"),
            writes(api, GOOD),
            says(api, "done"),
        ]);
        let desk = desk(&(model(api, &server.base) + PRICES));
        // The estimate covers the view, the brief, and the usual length of a report.
        let plan: Value = data(&desk, &["run", "--by", "model", "--dry-run", "--json"]);
        let (input, output) = (
            plan["jobs"][0]["input"].as_f64().unwrap(),
            plan["jobs"][0]["output"].as_f64().unwrap(),
        );
        assert!(input > 20.0 && output > 0.0, "{plan}");
        let estimated = plan["cost"].as_f64().unwrap();
        assert!(
            (estimated - (input * 1000.0 + output * 2000.0) / 1e6).abs() < 1e-9,
            "{plan}"
        );
        assert!(
            desk.fine(&["run", "--by", "model", "--dry-run"])
                .contains("writes  costs")
        );

        // Two answers: twice 120 tokens in and 30 out, 0.24 and 0.12.
        let said = desk.fine(&["run", "--by", "model", "--json"]);
        let events = events(&said);
        let accepted = events
            .iter()
            .find(|e| e["event"] == "accepted")
            .unwrap_or_else(|| panic!("{said}"));
        assert_eq!(
            (&accepted["usage"]["input"], &accepted["usage"]["output"]),
            (&json!(240), &json!(60)),
            "{api}"
        );
        assert!(
            (accepted["usage"]["cost"].as_f64().unwrap() - 0.36).abs() < 1e-9,
            "{accepted}"
        );
        let ended = events.iter().find(|e| e["event"] == "ended").unwrap();
        assert_eq!(ended["summary"]["usage"], accepted["usage"]);
        let step = &ended["steps"][0];
        assert_eq!(
            (&step["step"], &step["jobs"], &step["used"]),
            (&json!("write"), &json!(1), &accepted["usage"])
        );
        let estimate = |key: &str| {
            (step["estimated"][key].as_f64().unwrap() - plan["jobs"][0][key].as_f64().unwrap())
                .abs()
                < 1e-9
        };
        assert!(
            ["input", "output", "cost"].into_iter().all(estimate),
            "{step} {plan}"
        );
        let replayed = desk.fine(&["replay", "write"]);
        assert!(
            replayed.contains("240 tokens read, 60 written, 0.36 by the contract's prices"),
            "{replayed}"
        );
        let noted: Value = data(&desk, &["replay", "write", "--json"]);
        assert_eq!(noted["fact"]["note"]["usage"], accepted["usage"]);
        let attempt = noted["fact"]["note"]["attempt"].as_str().unwrap();
        let verdict: Value =
            serde_json::from_str(&desk.text(&format!(".quipu/attempts/{attempt}/verdict.json")))
                .unwrap();
        assert_eq!(verdict["usage"], accepted["usage"]);
        let said = desk.fine(&["run", "--by", "model", "--step", "write", "--again"]);
        assert!(
            said.contains("accepted   write: out.md  (240 tokens read, 60 written, 0.36 by"),
            "{said}"
        );
        assert!(
            said.contains("\n240 tokens read, 60 written, 0.36 by the contract's prices"),
            "{said}"
        );
        assert!(said.contains("\nstep   jobs  read  estimated  written  estimated  cost  estimated\nwrite  1     240"), "{said}");
    }
}

#[test]
fn what_failed_cost_tokens_too() {
    let server = Server::scripted(vec![says("openai", "I will not.")]);
    let desk = desk(&(model("openai", &server.base) + PRICES));
    let (code, said) = desk.call(&["run", "--by", "model", "--json"]);
    assert_eq!(code, 6, "{said}");
    let events = events(&said);
    let failed = events.iter().find(|e| e["event"] == "failed").unwrap();
    // Asked once, and again with the fault.
    assert_eq!(
        (&failed["usage"]["input"], &failed["usage"]["output"]),
        (&json!(240), &json!(60)),
        "{said}"
    );
    assert_eq!(events.last().unwrap()["summary"]["usage"], failed["usage"]);
    assert!(desk.fine(&["replay", "write"]).contains("240 tokens read"));
}

#[test]
fn what_the_contract_refuses_goes_back_once_with_its_rule() {
    let key = format!("AKIA{}", "ABCDEFGHIJKLMNOP");
    let leaks = GOOD.replace("A knot stays.", &format!("The key is {key}."));
    let server = Server::scripted(vec![
        writes("openai", &leaks),
        says("openai", "done"),
        writes("openai", GOOD),
        says("openai", "fixed"),
    ]);
    let desk = desk(&model("openai", &server.base));
    let said = desk.fine(&["run", "--by", "model"]);
    let told = said
        .lines()
        .find(|line| line.starts_with("sent back"))
        .unwrap_or_else(|| panic!("{said}"));
    assert!(
        told.contains("`out.md`, line 3 of the new text") && told.contains("class = \"overwrite\""),
        "{told}"
    );
    assert_eq!(desk.text("out.md"), GOOD);
    let asked = server.requests()[2].body.to_string();
    assert!(
        asked.contains("credentials do not belong in memory") && !asked.contains("--force"),
        "{asked}"
    );

    // The second time it is a failure, and none of its output is in the project.
    let server = Server::scripted(vec![
        writes("openai", &leaks),
        says("openai", "done"),
        writes("openai", &leaks),
        says("openai", "done"),
    ]);
    let desk = self::desk(&model("openai", &server.base));
    let (code, said) = desk.call(&["run", "--by", "model"]);
    assert_eq!(code, 6, "{said}");
    assert!(
        said.contains("failed     write (1 of 1): `out.md`, line 3"),
        "{said}"
    );
    assert!(!desk.root.join("out.md").exists());
    assert!(!desk.fine(&["log"]).contains(&key));
}

#[test]
fn no_agent_works_for_what_cannot_be_written() {
    let server = Server::scripted(vec![says("openai", "")]);
    let more = "\n[[files]]\npath = \"log.md\"\nclass = \"append\"\n\n[[roles.writer.write]]\npath = \"log.md\"\n";
    let desk = desk(&(model("openai", &server.base) + more));
    desk.fine(&["append", "log.md", "--text", "one"]);
    desk.put("log.md", "two\n");
    let (code, said) = desk.call(&["run", "--by", "model"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("stuck      write: `log.md`") && said.contains("quipu restore log.md"),
        "{said}"
    );
    assert!(server.requests().is_empty(), "no token was spent");
}

/// A shell program that speaks MCP with the server it was given.
const CLIENT: &str = r##"
set -e
ask() { printf '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n%s\n' "$1" | $SERVER | tail -1; }
call() { ask "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"$1\",\"arguments\":$2}}"; }
call list_files '{}'
call read_file '{"path":"in.md"}' | grep -q 'Write about knots'
call read_file '{"path":"../../../../quipu.toml"}' | grep -q '"isError":true'
call write_file '{"path":"in.md","content":"mine"}' | grep -q '"isError":true'
# The door to the project itself opens on nothing here: the kernel keeps the server where it keeps the agent.
PROJECT=$(echo "$SERVER" | sed 's/ mcp .*//')
if "$PROJECT" -C "$ROOT" read in.md; then exit 9; fi
call write_file '{"path":"out.md","content":"# Knots\n\nA knot stays.\n\n<!-- DONE -->\n"}'
"##;

#[test]
fn a_host_that_asks_for_it_is_handed_a_server_over_its_folders() {
    let desk = desk("");
    let root = std::fs::canonicalize(&desk.root).unwrap();
    let table = format!(
        "\n[agents.mine]\nvia = \"command\"\nprogram = \"sh\"\nargs = [\"-c\", {}]\nwith_mcp = true\nset = {{ ROOT = {:?} }}\n\n\
         [agents.mine.mcp]\nset = {{ SERVER = \"{{{{mcp_line}}}}\" }}\n",
        toml_text(CLIENT),
        root.display().to_string()
    );
    desk.put("quipu.toml", &format!("{ONE_STEP}{table}"));
    desk.fine(&["trust", "--yes"]);
    let (code, said) = desk.call(&["run", "--by", "mine"]);
    assert_eq!(code, 0, "{said}\n{}", transcript(&desk));
    assert_eq!(desk.text("out.md"), GOOD);
    assert!(transcript(&desk).contains("in.md"), "{}", transcript(&desk));

    // Without the setting, no server is passed.
    desk.put(
        "quipu.toml",
        &format!("{ONE_STEP}{}", table.replace("with_mcp = true\n", "")),
    );
    desk.fine(&["trust", "--yes"]);
    let (code, said) = desk.call(&["run", "--by", "mine", "--step", "write", "--again"]);
    assert_eq!(code, 6, "{said}");
    // A host that cannot use an MCP server is refused before anything starts.
    desk.put(
        "quipu.toml",
        &format!("{ONE_STEP}\n[agents.mine]\nlike = \"aider\"\nwith_mcp = true\n"),
    );
    let (code, said) = desk.call(&["run", "--by", "mine"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("`with_mcp` needs `mcp`"), "{said}");
}

fn toml_text(text: &str) -> String {
    serde_json::to_string(text).unwrap()
}

/// Returns the transcript of the newest attempt.
fn transcript(desk: &Desk) -> String {
    let runs = std::fs::read_dir(desk.root.join(".quipu/attempts")).unwrap();
    let newest = runs.map(|entry| entry.unwrap().path()).max().unwrap();
    std::fs::read_to_string(newest.join("transcript.jsonl")).unwrap_or_default()
}

/// A shell program that speaks ACP. On a prompt it runs WORK.
const ACP_HOST: &str = r##"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  answer() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  ended() { answer '"result":{"stopReason":"end_turn","usage":{"inputTokens":120,"outputTokens":30}}'; }
  case "$line" in
    *'"method":"initialize"'*) answer '"result":{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"method":"session/new"'*) SESSION=$line; answer '"result":{"sessionId":"s"}' ;;
    *'"method":"session/prompt"'*) eval "$WORK" ;;
  esac
done
"##;

fn acp(work: &str, more: &str) -> String {
    let set = format!("set = {{ WORK = {} }}", toml_text(work));
    format!(
        "\n[agents.model]\nvia = \"acp\"\nprogram = \"sh\"\nargs = [\"-c\", {}]\n{set}\n{more}",
        toml_text(ACP_HOST)
    )
}

#[test]
fn over_acp_a_server_is_handed_over_with_the_session() {
    let work = format!(
        "case \"$SESSION\" in *mcpServers*--view*--output*out.md*) printf '{}' > \"$QUIPU_OUT/out.md\" ;; esac; ended",
        GOOD.replace('\n', "\\n")
    );
    let desk = desk(&(acp(&work, "with_mcp = true\n") + PRICES));
    let (code, said) = desk.call(&["run", "--by", "model"]);
    assert_eq!(code, 0, "{said}\n{}", transcript(&desk));
    assert_eq!(desk.text("out.md"), GOOD);
    assert!(
        said.contains("120 tokens read, 30 written, 0.18 by"),
        "{said}"
    );
}

/// One way to fail: its name, the agent's table, and the expected message.
struct Failing {
    name: String,
    table: String,
    told: &'static str,
    deadline: &'static str,
}

fn failures() -> (Vec<Failing>, Vec<Server>) {
    let (mut all, mut servers) = (Vec::new(), Vec::new());
    let mut add = |name: String, table: String, told: &'static str| {
        let deadline = if name.ends_with("hang") { "1s" } else { "60s" };
        all.push(Failing {
            name,
            table,
            told,
            deadline,
        });
    };
    for api in ["openai", "anthropic"] {
        let error = |text: &str| json!({"error": {"message": text}}).to_string();
        let cases = [
            (
                "401",
                vec![Reply::Status(401, "", error("bad key"))],
                "refused with status 401: bad key",
            ),
            (
                "500",
                vec![Reply::Status(500, "", error("oops"))],
                "refused with status 500: oops",
            ),
            ("hang", vec![Reply::Hang], "it was stopped after 1 seconds"),
            ("garbage", vec![Reply::Garbage], "stopped early"),
            (
                "no output",
                vec![says(api, "All done!")],
                "`out.md` was not written",
            ),
            (
                "no marker",
                vec![
                    writes(api, "# Knots\n"),
                    says(api, "done"),
                    writes(api, "# Knots, again\n"),
                    says(api, "done"),
                ],
                "does not end with <!-- DONE -->",
            ),
            (
                "too long",
                vec![answer(api, "half a", None, "length")],
                "too long",
            ),
        ];
        for (name, replies, told) in cases {
            let server = Server::scripted(replies);
            add(format!("{api} {name}"), model(api, &server.base), told);
            servers.push(server);
        }
        let dead = std::net::TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        add(
            format!("{api} dead port"),
            model(api, &format!("http://{dead}")),
            "refused",
        );
    }
    let big = "head -c 5000000 /dev/zero | tr '\\0' x > \"$QUIPU_OUT/out.md\"";
    let unmarked = "echo '# Knots' > \"$QUIPU_OUT/out.md\"";
    let command = |script: &str| {
        format!(
            "\n[agents.model]\nvia = \"command\"\nprogram = \"sh\"\nargs = [\"-c\", {}]\n",
            toml_text(script)
        )
    };
    for (name, script, told) in [
        (
            "401",
            "echo 'API error: 401 Unauthorized' >&2; exit 1",
            "exit code 1: API error: 401 Unauthorized",
        ),
        (
            "500",
            "echo 'API error: 500' >&2; exit 1",
            "exit code 1: API error: 500",
        ),
        (
            "dead port",
            "echo 'connect ECONNREFUSED' >&2; exit 1",
            "exit code 1: connect ECONNREFUSED",
        ),
        ("hang", "sleep 300", "it was stopped after 1 seconds"),
        (
            "garbage",
            "head -c 100000 /dev/urandom",
            "`out.md` was not written",
        ),
        ("no output", "exit 0", "`out.md` was not written"),
        ("no marker", unmarked, "does not end with <!-- DONE -->"),
        ("too long", big, "at most 4194304 are accepted"),
    ] {
        add(format!("command {name}"), command(script), told);
    }
    for (name, work, told) in [
        (
            "401",
            "answer '\"error\":{\"code\":-32000,\"message\":\"Authentication required: 401\"}'",
            "401",
        ),
        (
            "500",
            "answer '\"error\":{\"code\":-32603,\"message\":\"Internal error: 500\"}'",
            "Internal error: 500",
        ),
        (
            "dead port",
            "echo 'connect ECONNREFUSED' >&2; exit 1",
            "connect ECONNREFUSED",
        ),
        ("hang", "sleep 300", "it was stopped after 1 seconds"),
        (
            "garbage",
            "head -c 100000 /dev/urandom; exit 0",
            "stopped early",
        ),
        ("no output", "ended", "`out.md` was not written"),
        (
            "no marker",
            "echo '# Knots' > \"$QUIPU_OUT/out.md\"; ended",
            "does not end with <!-- DONE -->",
        ),
        (
            "too long",
            "answer '\"result\":{\"stopReason\":\"max_tokens\"}'",
            "too long",
        ),
    ] {
        add(format!("acp {name}"), acp(work, ""), told);
    }
    (all, servers)
}

/// For each adapter: 401, 500, a dead port, a hang, garbage, no output, output without its marker,
/// output too long.
#[test]
fn whatever_way_an_agent_fails_it_counts_as_a_failure_and_leaves_nothing() {
    let (all, _servers) = failures();
    assert_eq!(all.len(), 32, "eight failures of four adapters");
    for Failing {
        name,
        table,
        told,
        deadline,
    } in all
    {
        let desk = desk("");
        desk.put(
            "quipu.toml",
            &format!(
                "{}{table}",
                ONE_STEP.replace("\"60s\"", &format!("\"{deadline}\""))
            ),
        );
        desk.fine(&["trust", "--yes"]);
        let (code, said) = desk.call(&["run", "--by", "model"]);
        assert_eq!(code, 6, "{name}\n{said}");
        let failed = said
            .split("failed     write (1 of 1): ")
            .nth(1)
            .unwrap_or_else(|| panic!("{name}\n{said}"));
        assert!(failed.contains(told), "{name}\n{said}");
        assert_eq!(
            said.matches("sent back").count(),
            usize::from(deadline != "1s"),
            "{name}: a fault goes back once\n{said}"
        );
        assert!(!desk.root.join("out.md").exists(), "{name}");
        assert_eq!(
            data(&desk, &["lease", "list", "--json"]),
            json!([]),
            "{name}"
        );
        assert!(
            desk.fine(&["replay", "write"])
                .contains("write failed by model"),
            "{name}"
        );
    }
}

#[test]
fn folders_of_old_runs_are_removed_and_replay_says_so() {
    let desk = desk("\n[attempts]\nkeep = 1\ndays = 0\n");
    let script = format!(
        "command:sh -c 'printf \"{}\" > \"$QUIPU_OUT/out.md\"'",
        GOOD.replace('\n', "\\n")
            .replace("A knot", "$QUIPU_ATTEMPT: a knot")
    );
    desk.fine(&["run", "--by", &script]);
    let first: Value = data(&desk, &["replay", "write", "--json"]);
    let first = first["fact"]["note"]["attempt"]
        .as_str()
        .unwrap()
        .to_owned();
    desk.fine(&["run", "--by", &script, "--step", "write", "--again"]);
    assert!(
        desk.root.join(".quipu/attempts").join(&first).exists(),
        "a run removes only what is older than it found"
    );
    let said = desk.fine(&["doctor"]);
    assert!(said.contains("deleted 1 folder of old attempts"), "{said}");
    let replayed = desk.fine(&["replay", &first]);
    assert!(
        replayed.contains("its folder was deleted ([attempts] in quipu.toml)"),
        "{replayed}"
    );
    assert!(
        replayed.contains("in.md") && replayed.contains("wrote"),
        "{replayed}"
    );
    let (code, said) = desk.call(&["replay", &first, "--brief"]);
    assert!(code == 5 && said.contains("was deleted"), "{said}");
}
