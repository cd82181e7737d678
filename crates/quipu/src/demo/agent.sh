#!/bin/sh
# Plays a coding agent: calls Quipu's hooks as an agent host does, with the same messages.
hook() {
  printf '%s' "$2" | "$QUIPU_PROGRAM" hook "$1" --as main --agent scripted
}
hook session-start '{"session_id": "monday", "source": "startup"}' > start-text
hook prompt '{"session_id": "monday", "prompt": "Accept time zones such as +02:00 in log lines. Add a test for each."}'
"$QUIPU_PROGRAM" todo start zones --as main --agent scripted
hook pre-tool '{"session_id": "monday", "tool_name": "Write", "tool_input": {"file_path": "src/parse.rs", "content": "// half done"}}'
echo '// half done' > src/parse.rs
hook post-tool '{"session_id": "monday", "tool_name": "Write", "tool_input": {"file_path": "src/parse.rs", "content": "// half done"}}'
rm start-text
echo ready
# The agent is at work until it is killed.
read -r never
