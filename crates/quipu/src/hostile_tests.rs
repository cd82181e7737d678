//! Fuzzes the program's parsers of untrusted input: messages of MCP clients, and the input of
//! hooks.

use proptest::prelude::*;
use quipu_testkit::{Playground, mutated};

use crate::hook::{Event, HookArguments, hear};
use crate::mcp::{Answers, Door};
use crate::session::{Names, Session};

const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"x","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"append","arguments":{"path":"meta/glossary.md","text":"x"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"pointer":"outline.md#one"}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"quipu:///meta/%E4%B8%AD.md"}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"writer"},"argument":{"name":"unit","value":"c"}}}"#,
];

const CALLS: &[&str] = &[
    r#"{"hook_event_name":"PreToolUse","cwd":"/","tool_name":"Write","tool_input":{"file_path":"meta/glossary.md","content":"gone"}}"#,
    r#"{"tool_name":"Edit","tool_input":{"file_path":"outline.md","old_string":"a","new_string":"b","replace_all":true}}"#,
    r#"{"tool_name":"Bash","tool_input":{"command":"cd meta && cat > glossary.md <<'EOF'\nx\nEOF\nrm -rf \"$HOME\" | sed -i s/a/b/ 状态.json"}}"#,
    r#"{"tool_name":"apply_patch","tool_input":{"input":"*** Begin Patch\n*** Update File: meta/glossary.md\n@@\n-a\n+b\n*** End Patch"}}"#,
    r#"{"hook_event_name":"Stop","stop_hook_active":false,"session_id":"s","last_assistant_message":"x","transcript_path":"outline.md"}"#,
    r#"{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"the key is sk-ant-a1B2c3D4e5F6g7H8i9J0k1L2"}"#,
];

/// Lines of a host's transcript.
const TRANSCRIPTS: &[&str] = &[
    "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n{\"type\":\"assistant\",\"message\":{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"## Now\\nDone.\"}]}}\n",
    "{\"type\":\"response_item\",\"payload\":{\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"key = sk-ant-a1B2c3D4e5F6g7H8i9J0k1L2\"}]}}\n",
];

/// Shell commands that cover much of the shell's grammar.
const COMMANDS: &[&str] = &[
    "cd meta && F=glossary.md; for f in *.md $F {a,b}.md; do sed -i \"s/a/$(date)/\" \"$f\"; done 2>&1 | tee -a log",
    "bash <<'E'\npython3 -c \"open('outline.md','w')\"\nE\nfind . -name '*.md' -exec rm {} + ; git stash push -- meta",
    "echo `ls [a-z]*` $'\\x61' ${F:-x} $((1+2)) <<< y >| out.txt; xargs -I{} sh -c 'rm {}' < list; eval \"rm $x\"",
];

fn session(play: &Playground) -> Session {
    let agent = Names {
        agent: Some("ada".into()),
        ..Names::default()
    };
    Session::new(play.root().to_owned(), agent, Names::default()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_mutated_message_gets_one_answer_that_is_a_message(line in mutated(MESSAGES)) {
        let play = Playground::local();
        let session = session(&play);
        if let Some(answer) = Door::new(&session).answer(&line) {
            prop_assert_eq!(&answer["jsonrpc"], "2.0");
            prop_assert!(answer.get("result").is_some() != answer.get("error").is_some(), "{}", answer);
        }
    }

    #[test]
    fn a_mutated_shell_command_is_judged(command in mutated(COMMANDS)) {
        let play = Playground::local();
        play.edit("meta/glossary.md", "- lease\n");
        let call = serde_json::json!({"tool_name": "Bash", "cwd": play.root(), "tool_input": {"command": command}}).to_string();
        let asked = HookArguments { budget: 1_000, in_fields: false, is_unheard: false };
        let judged = |text: String| hear(Event::PreTool, Ok(text), asked, &session(&play)).exit;
        prop_assert!(judged(call) != 1, "not judged");
        // A plain write must be detected regardless of the text after it.
        let plain = serde_json::json!({"tool_name": "Bash", "cwd": play.root(), "tool_input": {"command": format!("rm meta/glossary.md\n{command}")}});
        prop_assert_eq!(judged(plain.to_string()), 2);
    }

    #[test]
    fn a_mutated_transcript_is_recorded_without_its_credentials(lines in mutated(TRANSCRIPTS)) {
        let play = Playground::local();
        let file = play.root().join("transcript.jsonl");
        std::fs::write(&file, &lines).unwrap();
        let call = serde_json::json!({"session_id": "s", "cwd": play.root(), "transcript_path": file}).to_string();
        let asked = HookArguments { budget: 1_000, in_fields: false, is_unheard: false };
        let prompt = serde_json::json!({"session_id": "s", "cwd": play.root(), "prompt": lines}).to_string();
        prop_assert!(hear(Event::Prompt, Ok(prompt), asked, &session(&play)).exit <= 2);
        prop_assert!(hear(Event::Stop, Ok(call), asked, &session(&play)).exit <= 2);
        let journal = std::fs::read_to_string(play.root().join(".quipu/journal/00000001.jsonl")).unwrap();
        // Directly after a letter it is no key: `task-ant-colony` is none either.
        const KEY: &str = "sk-ant-a1B2c3D4e5F6g7H8i9J0k1L2";
        let is_glued = |at: usize| lines[..at].ends_with(|c: char| c.is_ascii_alphabetic());
        let glued = lines.match_indices(KEY).any(|(at, _)| is_glued(at));
        prop_assert!(glued || !journal.contains(KEY));
    }

    #[test]
    fn a_mutated_hook_call_ends_with_a_code_that_hosts_know(text in mutated(CALLS), in_fields in any::<bool>()) {
        let play = Playground::local();
        let session = session(&play);
        for event in [Event::PreTool, Event::PreCompact, Event::Stop, Event::SessionStart, Event::Prompt] {
            let asked = HookArguments { budget: 1_000, in_fields, is_unheard: false };
            let answer = hear(event, Ok(text.clone()), asked, &session);
            prop_assert!(answer.exit <= 2, "{:?} ended with {}", event, answer.exit);
        }
    }
}
