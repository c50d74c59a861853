import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";
import { temporaryDirectory } from "./cleanup.ts";
import { UsageError } from "./command-line.ts";

/** A request, which may have a gap that values fill in turn. */
export interface RequestPart {
  readonly prefix: string;
  readonly suffix: string;
  readonly values?: readonly string[];
  /** The share of requests of this kind, relative to the other parts. */
  readonly share: number;
}

interface WrkOptions {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  readonly parts: readonly RequestPart[];
  /** The position in the values at which to begin. */
  readonly offset?: number;
  /** The mean pause of a connection between two requests. Without it, the next request follows the response. */
  readonly delayMs?: number;
  readonly core?: string | undefined;
}

/** The figures that wrk.lua prints. Latencies are in microseconds. */
export interface WrkFigures {
  readonly requests: number;
  readonly micros: number;
  readonly bytes: number;
  readonly p50: number;
  readonly p99: number;
  /** The number of responses with a status of 400 or more. */
  readonly rejected: number;
  /** The number of connections that failed, broke or timed out. */
  readonly failed: number;
  /** The share of a core that wrk itself used. */
  readonly loadCpu: number;
}

export function requireWrk(): void {
  if (process.platform !== "linux") throw new UsageError("benchmarks read /proc and need Linux");
  if (Bun.which("wrk") === null)
    throw new UsageError("wrk is missing; install it (Debian, Ubuntu: apt-get install wrk)");
}

const SCRIPT = join(import.meta.dir, "wrk.lua");
const GRACE_MS = 15_000;
let directory: string | undefined;
let plans = 0;

export async function runWrk(options: WrkOptions): Promise<WrkFigures> {
  const { port, connections, seconds, core } = options;
  directory ??= temporaryDirectory("wrk");
  const plan = join(directory, `plan-${plans++}.lua`);
  writeFileSync(plan, planOf(options, directory));
  const flags = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", "10s", "-s", SCRIPT];
  const timeout = seconds * 1_000 + GRACE_MS;
  const wrk = new Child(["wrk", ...flags, `http://127.0.0.1:${port}`, "--", plan], { core, timeout });
  await wrk.ended;
  const line = /^FIGURES (.+)$/m.exec(wrk.output)?.[1];
  if (line === undefined) throw new Error(`wrk failed: ${wrk.output.trim()}`);
  const figures: Omit<WrkFigures, "loadCpu"> = JSON.parse(line);
  return { ...figures, loadCpu: wrk.cpuMicros / figures.micros };
}

/** Writes the plan in Lua. The JSON escapes of ASCII text are valid in Lua, too. */
function planOf({ parts, offset = 0, delayMs = 0 }: WrkOptions, directory: string): string {
  const tables = parts.map(({ prefix, suffix, values }) => {
    const source = values && `, values = ${JSON.stringify(fileOf(values, directory))}`;
    return `{ prefix = ${JSON.stringify(prefix)}, suffix = ${JSON.stringify(suffix)}${source ?? ""} }`;
  });
  const pattern = patternOf(parts.map(({ share }) => share)).map((part) => part + 1);
  return `return { parts = { ${tables.join(", ")} }, pattern = { ${pattern.join(", ")} }, offset = ${offset}, delayMs = ${delayMs} }\n`;
}

const files = new Map<readonly string[], string>();

function fileOf(values: readonly string[], directory: string): string {
  const path = files.get(values) ?? join(directory, `values-${files.size}.txt`);
  if (!files.has(values)) writeFileSync(path, `${values.join("\n")}\n`);
  files.set(values, path);
  return path;
}

/** The part of each request. The requests of each part are spread evenly. */
function patternOf(shares: readonly number[]): number[] {
  const total = shares.reduce((sum, share) => sum + share, 0);
  const owed = shares.map(() => 0);
  return Array.from({ length: total }, () => {
    for (const [part, share] of shares.entries()) owed[part] = (owed[part] ?? 0) + share;
    const next = owed.indexOf(Math.max(...owed));
    owed[next] = (owed[next] ?? 0) - total;
    return next;
  });
}
