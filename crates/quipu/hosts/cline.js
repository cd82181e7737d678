// Written by `quipu integrate`. Tells where things stand, records what is asked, changed and said last, asks before a tool acts, and
// reports what breaks the contract after it. Cline loads one copy for each session.
import { spawnSync } from "node:child_process"

let folder = process.cwd()
let session
let compacted = 0

const hook = (event, snapshot, said) => {
  const who = snapshot.parentAgentId ? { agent_id: snapshot.agentId } : {}
  const input = JSON.stringify({ cwd: folder, session_id: session ?? snapshot.conversationId, ...who, ...said })
  // Plugins run in a process of their own; the agent's shell runs in its parent.
  const env = { ...process.env, QUIPU_HOST_PID: String(process.ppid) }
  return spawnSync("quipu", ["hook", event, {as-words}"--agent", "{host}"], { input, encoding: "utf8", cwd: folder, env })
}
const words = (message) => (message?.content ?? []).filter((part) => part.type === "text").map((part) => part.text).join("\n")
// Cline wraps a request: <user_input mode="act">…</user_input>.
const asked = (messages) => words(messages?.findLast((message) => message.role === "user")).replace(/^<user_input[^>]*>|<\/user_input>$/g, "")
const context = (text) => (text ? { appendContext: text } : undefined)

export default {
  name: "quipu",
  manifest: { capabilities: ["hooks"] },
  setup: (_, around) => {
    folder = around?.workspaceInfo?.rootPath ?? folder
    session = around?.session?.sessionId
  },
  hooks: {
    beforeRun: ({ snapshot }) => {
      if (snapshot.parentAgentId) return context(hook("subagent-start", snapshot).stdout)
      const start = hook("session-start", snapshot).stdout
      hook("prompt", snapshot, { prompt: asked(snapshot.messages) })
      return context(start)
    },
    // A compaction has no hook; its summary is seen with the next request. The start text comes again after the next tool.
    beforeModel: ({ snapshot, request }) => {
      const at = Math.max(0, ...request.messages.map((message) => message.metadata?.kind === "compaction_summary" ? message.metadata.generatedAt : 0))
      if (at > compacted) hook("pre-compact", snapshot, { trigger: "compact" })
      compacted = Math.max(at, compacted)
      return undefined
    },
    // A denial reaches the model as the tool's error.
    beforeTool: ({ snapshot, toolCall, input }) => {
      const verdict = hook("pre-tool", snapshot, { tool: toolCall.toolName, args: input })
      return verdict.status === 2 ? { skip: true, reason: verdict.stderr } : undefined
    },
    // Files that break the contract now: the model reads it behind the tool's output.
    afterTool: ({ snapshot, toolCall, input }) => context(hook("post-tool", snapshot, { tool: toolCall.toolName, args: input }).stdout),
    // Cline cannot be kept from stopping; the journal says that it did.
    afterRun: ({ snapshot, result }) => {
      if (result.status === "completed") hook("stop", snapshot, { last_assistant_message: result.outputText })
    },
  },
}
