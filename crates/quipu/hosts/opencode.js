// Written by `quipu integrate`. Tells where things stand, asks before a tool acts, and holds a session that is not finished.
import { spawnSync } from "node:child_process"

export const Quipu = async ({ client, directory }) => {
  const hook = (event, said) => {
    const input = JSON.stringify({ cwd: directory, ...said })
    return spawnSync("quipu", ["hook", event, {as-words}"--agent", "{host}"], { input, encoding: "utf8", cwd: directory })
  }
  // What each session was told first: the same text with every request, so that it stays at hand. A session that
  // another one started works for that one, and is told nothing.
  const told = new Map()
  const start = async (id) => {
    const session = await client.session.get({ path: { id } }).catch(() => undefined)
    return session?.data?.parentID ? "" : hook("session-start", { source: "startup" }).stdout
  }
  return {
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID) return
      if (!told.has(input.sessionID)) told.set(input.sessionID, start(input.sessionID))
      const text = await told.get(input.sessionID)
      if (text) output.system.push(text)
    },
    // A denial reaches the model as the tool's error.
    "tool.execute.before": async (input, output) => {
      const verdict = hook("pre-tool", { tool: input.tool, args: output.args })
      if (verdict.status === 2) throw new Error(verdict.stderr)
    },
    "experimental.session.compacting": async (input) => {
      hook("pre-compact", { trigger: "compact" })
      if (await told.get(input.sessionID)) told.set(input.sessionID, hook("session-start", { source: "compact" }).stdout)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle" || !(await told.get(event.properties.sessionID))) return
      const verdict = hook("stop", {})
      if (verdict.status !== 2) return
      const body = { parts: [{ type: "text", text: verdict.stderr }] }
      await client.session.promptAsync({ path: { id: event.properties.sessionID }, body })
    },
  }
}
