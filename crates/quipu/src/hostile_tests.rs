//! The program's own parsers of hostile input: messages of MCP clients, and what agent hosts hand to hooks.

use proptest::prelude::*;
use quipu_testkit::{Playground, mutated};

use crate::hook::{Asked, Event, hear};
use crate::mcp::Door;
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

fn session(play: &Playground) -> Session {
    let agent = Names { agent: Some("ada".into()), ..Names::default() };
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
    fn a_mutated_hook_call_ends_with_a_code_that_hosts_know(text in mutated(CALLS), in_fields in any::<bool>()) {
        let play = Playground::local();
        let session = session(&play);
        for event in [Event::PreTool, Event::PreCompact, Event::Stop, Event::SessionStart, Event::Prompt] {
            let asked = Asked { budget: 1_000, in_fields, is_unheard: false };
            let answer = hear(event, Ok(text.clone()), asked, &session);
            prop_assert!(answer.exit <= 2, "{:?} ended with {}", event, answer.exit);
        }
    }
}
