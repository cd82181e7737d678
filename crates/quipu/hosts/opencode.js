// Written by `quipu integrate`. Tells where things stand, records what is asked, changed and said last, asks before a tool acts,
// reports what breaks the contract after it, and holds a session that changed something and is not finished.
import { spawnSync } from "node:child_process"

export const Quipu = async ({ client, directory }) => {
  const hook = (event, said) => {
    const input = JSON.stringify({ cwd: directory, ...said })
    return spawnSync("quipu", ["hook", event, {as-words}"--agent", "{host}"], { input, encoding: "utf8", cwd: directory })
  }
  // A session that another one started works for that one: it gets a short text, and what it changes is the other's.
  const parents = new Map()
  const parent = async (id) => {
    if (!parents.has(id)) {
      const session = await client.session.get({ path: { id } }).catch(() => undefined)
      parents.set(id, session?.data?.parentID)
    }
    return parents.get(id)
  }
  const top = async (id) => {
    for (let above = await parent(id); above; above = await parent(id)) id = above
    return id
  }
  // A session that another one started is a subagent of it.
  const who = async (id) => {
    const parent = await top(id)
    return parent === id ? { session_id: id } : { session_id: parent, agent_id: id }
  }
  // What each session was told first: the same text with every request, so that it stays at hand. It is no part of the conversation
  // that opencode keeps, so a resumed one is told everything again.
  const told = new Map()
  const start = async (id) => {
    const event = (await parent(id)) ? "subagent-start" : "session-start"
    return hook(event, { ...(await who(id)), source: "compact" }).stdout
  }
  const tell = (id) => {
    if (!told.has(id)) told.set(id, start(id))
    return told.get(id)
  }
  const said = (parts) => (parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
  const lastMessage = async (id) => {
    const messages = await client.session.messages({ path: { id } }).catch(() => undefined)
    const texts = (messages?.data ?? []).filter((message) => message.info.role === "assistant").map((message) => said(message.parts))
    return texts.filter((text) => text.trim()).at(-1)
  }
  // Sessions that were asked to go on. opencode can report a session idle again before it begins with that.
  const asked = new Set()
  return {
    "chat.message": async (input, output) => {
      asked.delete(input.sessionID)
      if (!input.sessionID || (await parent(input.sessionID))) return
      await tell(input.sessionID)
      hook("prompt", { session_id: input.sessionID, prompt: said(output.parts) })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const text = input.sessionID && (await tell(input.sessionID))
      if (text) output.system.push(text)
    },
    // A denial reaches the model as the tool's error.
    "tool.execute.before": async (input, output) => {
      const verdict = hook("pre-tool", { ...(await who(input.sessionID)), tool: input.tool, args: output.args })
      if (verdict.status === 2) throw new Error(verdict.stderr)
    },
    // Files that break the contract now: the model reads it behind the tool's output.
    "tool.execute.after": async (input, output) => {
      const report = hook("post-tool", { ...(await who(input.sessionID)), tool: input.tool, args: input.args }).stdout
      if (report && typeof output?.output === "string") output.output += `\n\n${report}`
    },
    "experimental.session.compacting": async (input) => {
      const id = input.sessionID
      hook("pre-compact", { session_id: id, trigger: "compact" })
      if (await told.get(id)) told.set(id, hook("session-start", { session_id: id, source: "compact" }).stdout)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle" || (await parent(event.properties.sessionID)) || !(await told.get(event.properties.sessionID))) return
      const id = event.properties.sessionID
      const last = await lastMessage(id)
      if (asked.has(id)) return
      const verdict = hook("stop", { session_id: id, last_assistant_message: last })
      if (verdict.status !== 2) return
      asked.add(id)
      const parts = [{ type: "text", text: verdict.stderr }]
      await client.session.promptAsync({ path: { id }, body: { parts } }).catch(() => asked.delete(id))
    },
  }
}
