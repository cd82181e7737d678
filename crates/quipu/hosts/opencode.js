// Written by `quipu integrate`. Asks Quipu before a tool acts; a denial reaches the model as the tool's error.
import { spawnSync } from "node:child_process"

export const Quipu = async ({ directory }) => ({
  "tool.execute.before": async (input, output) => {
    const asked = JSON.stringify({ cwd: directory, tool: input.tool, args: output.args })
    const verdict = spawnSync("quipu", ["hook", "pre-tool", "--agent", "{host}"], { input: asked, encoding: "utf8", cwd: directory })
    if (verdict.status === 2) throw new Error(verdict.stderr)
  },
})
