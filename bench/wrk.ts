import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Processes } from "./processes.ts";
import type { Template } from "./requests.ts";
import type { ValueList } from "./values.ts";

export interface Load {
  readonly origin: string;
  readonly connections: number;
  readonly seconds: number;
  /** Templates with their share of a hundred. */
  readonly parts: readonly { readonly template: Template; readonly share: number }[];
  readonly offset: number;
  /** Mean pause of a connection between two requests; 0 asks as fast as it is answered. */
  readonly delayMs: number;
}

/** As wrk.lua prints them. Latencies in microseconds. */
export interface Figures {
  readonly requests: number;
  readonly micros: number;
  readonly bytes: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Answers with a status of 400 or more. */
  readonly refused: number;
  /** Connections that failed, broke or timed out. */
  readonly failed: number;
  /** Share of its core that the load generator itself used. */
  readonly loadCpu: number;
}

export interface LoadTool {
  readonly processes: Processes;
  readonly core: string | undefined;
  readonly folder: string;
  readonly files: Readonly<Record<ValueList, string>>;
}

const SCRIPT = join(import.meta.dir, "wrk.lua");
const GRACE_MS = 15_000;

export async function runWrk(tool: LoadTool, load: Load): Promise<Figures> {
  const plan = join(tool.folder, "plan.lua");
  writeFileSync(plan, planOf(load, tool.files));
  const { connections, seconds, origin } = load;
  const flags = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "10s", "-s", SCRIPT];
  const running = tool.processes.start(["wrk", ...flags, origin, "--", plan], {
    name: "wrk",
    core: tool.core,
    stdout: "pipe",
  });
  const tooLong = setTimeout(() => running.child.kill("SIGKILL"), seconds * 1_000 + GRACE_MS);
  const { stdout } = running.child;
  const output = stdout instanceof ReadableStream ? await new Response(stdout).text() : "";
  await running.child.exited;
  clearTimeout(tooLong);
  const line = /^FIGURES (.+)$/m.exec(output)?.[1];
  if (line === undefined) throw new Error(`wrk failed: ${output.trim()} ${running.complaint()}`);
  const cpuMicros = Number(running.child.resourceUsage()?.cpuTime.total ?? 0);
  const figures = JSON.parse(line) as Omit<Figures, "loadCpu">;
  return { ...figures, loadCpu: cpuMicros / figures.micros };
}

/** JSON's escapes of plain ASCII are Lua's too. */
function planOf({ parts, offset, delayMs }: Load, files: LoadTool["files"]): string {
  const entries = parts.map(({ template: { prefix, suffix, values } }) => {
    const source = values === undefined ? "" : `, values = ${JSON.stringify(files[values])}`;
    return `{ prefix = ${JSON.stringify(prefix)}, suffix = ${JSON.stringify(suffix)}${source} }`;
  });
  const pattern = patternOf(parts.map(({ share }) => share)).map((part) => part + 1);
  return `return { parts = { ${entries.join(", ")} }, pattern = { ${pattern.join(", ")} }, offset = ${offset}, delayMs = ${delayMs} }\n`;
}

/** Which part comes when: each spread evenly over the cycle, not in one lump. */
export function patternOf(shares: readonly number[]): number[] {
  const total = shares.reduce((sum, share) => sum + share, 0);
  const owed = shares.map(() => 0);
  return Array.from({ length: total }, () => {
    for (const [part, share] of shares.entries()) owed[part] = (owed[part] ?? 0) + share;
    const next = owed.indexOf(Math.max(...owed));
    owed[next] = (owed[next] ?? 0) - total;
    return next;
  });
}
