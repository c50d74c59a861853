import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Child, runProgram } from "./child.ts";
import { temporaryDirectory } from "./cleanup.ts";

/** The test runner sets this variable to the path of an executable, which starts in half the time of the source. */
export const EXECUTABLE_VARIABLE = "PETSTORE_TEST_EXECUTABLE";

/** The program as the test runner has built it, or as `npm start` runs it. */
export const PETSTORE = [process.env[EXECUTABLE_VARIABLE] ?? join(import.meta.dir, "../../petstore")];

export interface LogLine {
  /** The time in milliseconds since 1970. */
  readonly at: number;
  readonly level: string;
  readonly event: string;
  /** The whole line as JSON. */
  readonly text: string;
}

/** Whether the line says that a database was unavailable for a moment, as it may be on a busy machine. */
export const isOfOutage = ({ event, text }: LogLine): boolean =>
  event.endsWith(".unavailable") || text.includes('"name":"Unavailable"');

export type PetstoreServer = Awaited<ReturnType<typeof startPetstore>>;

/** The flags for a listener for operators on a free port, and the token of an admin. */
export function adminFlags(token: string): readonly string[] {
  const file = join(temporaryDirectory("token"), "token");
  writeFileSync(file, token, { mode: 0o600 });
  return ["--admin-address", "127.0.0.1:0", "--admin-token-file", file];
}

/** Starts a server. `under` is the prefix of its command, such as `nice`; `program` can be another release. */
export async function startPetstore(
  flags: readonly string[],
  under: readonly string[] = [],
  program: readonly string[] = PETSTORE,
) {
  const log: LogLine[] = [];
  // A server on PostgreSQL writes its first key to this directory.
  const data = flags.includes("--data") ? [] : ["--data", temporaryDirectory("data")];
  const child = new Child([...under, ...program, "serve", ...flags, ...data], {
    onLine(text) {
      if (!text.startsWith('{"time":')) return;
      const { time, level, event } = JSON.parse(text);
      log.push({ at: Date.parse(time), level, event, text });
    },
  });
  const [, url = ""] = await child.line(/^ .* (http\S+\/v1)$/);
  // A disk that is mounted for the server alone is visible through /proc.
  const root = under.length === 0 ? "" : `/proc/${child.pid}/root`;
  const [, adminUrl = ""] = /^ {2}Admin +(http\S+)/m.exec(child.output) ?? [];
  const [, keyFile] = /^ {2}(\/.*-first-key)$/m.exec(child.output) ?? [];
  return {
    /** The base address, including `/v1`. */
    url,
    /** The URL of the listener for operators; empty if it is off. */
    adminUrl,
    /** The first API key, if this server created it. The path of its file is printed together with the address. */
    key: keyFile && readFileSync(root + keyFile, "utf8").trim(),
    pid: child.pid,
    /** The lines of the log, which grows while the server is running. */
    log: log as readonly LogLine[],
    stop: (signal?: NodeJS.Signals) => child.stop(signal),
  };
}

export const runPetstore = (...args: string[]) => runProgram([...PETSTORE, ...args]);

/** Runs a command on keys, and returns its JSON output. `storage` are the flags that name the storage. */
export async function runKeysCommand(
  storage: readonly string[],
  ...args: string[]
): Promise<Record<string, unknown>> {
  const { code, out, err } = await runPetstore("keys", ...args, "--json", ...storage);
  if (code !== 0) throw new Error(`keys ${args[0]}: ${err}`);
  return JSON.parse(out);
}

/** Runs a command that has to succeed. */
export async function succeed(...argv: string[]): Promise<void> {
  const { code, err } = await runPetstore(...argv);
  if (code !== 0) throw new Error(`petstore ${argv[0]}: ${err}`);
}

export const UNLIMITED_PER_MINUTE = 1_000_000_000;
export const UNLIMITED = ["--per-minute", `${UNLIMITED_PER_MINUTE}`, "--per-day", `${UNLIMITED_PER_MINUTE}`];

/** The storage in which this process has made keys. */
const migrated = new Set<string>();

/** Creates a key, and the database where there is none. Without a plan, its limits are higher than any load. */
export async function createKey(
  storage: readonly string[],
  ...plan: string[]
): Promise<{ id: string; key: string }> {
  const chosen = plan.length > 0 ? plan : ["enterprise", ...UNLIMITED];
  if (!migrated.has(storage.join(" "))) await succeed("migrate", ...storage);
  migrated.add(storage.join(" "));
  const { id, key } = await runKeysCommand(storage, "create", "--name", "test", "--plan", ...chosen);
  return { id: String(id), key: String(key) };
}
