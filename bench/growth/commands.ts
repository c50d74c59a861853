/* The commands of the growth benchmark, on the data of a running server. */

import { join } from "node:path";

/** What the commands of one database know of it. */
export interface CommandFacts {
  /** A number that is another at each run of a command. */
  readonly n: number;
  /** The flags that name the database. */
  readonly storage: readonly string[];
  /** A directory for files. */
  readonly directory: string;
  /** A file with pets, the same for all scales. */
  readonly petsFile: string;
  /** A backup that the run of `backup` made. */
  readonly backups: string;
  /** Makes a database without data beside the present one, and returns the flags that name it. */
  readonly newStorage: () => Promise<readonly string[]>;
  readonly secret: string;
  readonly adminUrl: string;
  readonly token: string;
}

export interface CommandRun {
  readonly args: (facts: CommandFacts) => readonly string[] | Promise<readonly string[]>;
  readonly input?: (facts: CommandFacts) => string;
  /** The variables of the environment. */
  readonly env?: (facts: CommandFacts) => Readonly<Record<string, string>>;
  /** The command that makes what this one needs. */
  readonly needs?: string;
}

const onData =
  (...args: readonly string[]) =>
  ({ storage }: CommandFacts) => [...args, ...storage];
const name = ({ n }: CommandFacts) => `command-${n}`;

/** The first key that commands change. The requests of operators change others. */
const KEY = "203";
const LAST = "500";

/** How each command is run, or why it is not. */
export const COMMAND_RUNS: Readonly<Record<string, CommandRun | string>> = {
  serve: "is what every other row is measured on",
  demo: "makes data of its own",
  migrate: { args: onData() },
  doctor: { args: onData() },
  health: { args: ({ storage }) => storage.slice(0, 2) },
  "servers list": { args: onData() },
  settings: { args: onData() },
  requests: { args: onData("--limit", "1000") },
  "keys create": { args: (facts) => ["--name", name(facts), "--plan", "free", ...facts.storage] },
  "keys list": { args: onData() },
  "keys show": { args: onData(KEY) },
  "keys find": { args: onData(), input: ({ secret }) => `${secret}\n` },
  "keys update": { args: (facts) => [KEY, "--owner", name(facts), ...facts.storage] },
  "keys rotate": { args: onData(KEY) },
  "keys disable": { args: onData(KEY) },
  "keys enable": { args: onData(KEY) },
  "keys unban": { args: onData(KEY) },
  "keys revoke": { args: ({ n, storage }) => [String(600 + n), "--yes", ...storage] },
  usage: { args: onData() },
  "plans list": { args: onData() },
  "plans update": { args: ({ n, storage }) => ["pro", "--per-minute", String(300 + (n % 2)), ...storage] },
  "ban-rules show": { args: onData() },
  "ban-rules update": { args: ({ n, storage }) => ["--strikes", String(10 + (n % 2)), ...storage] },
  "pets list": { args: onData("--limit", LAST) },
  "pets add": { args: onData("--name", "Rex", "--category", "1") },
  "pets show": { args: onData("1") },
  "pets update": { args: (facts) => ["50000", "--name", name(facts), ...facts.storage] },
  "pets delete": { args: ({ n, storage }) => [String(60_000 + n), "--yes", ...storage] },
  "orders list": { args: onData("--limit", LAST) },
  "orders show": { args: onData("100") },
  "orders update": { args: onData("100", "cancelled", "--yes") },
  login: "is one request for the session",
  logout: "reads and removes a file",
  whoami: {
    args: ({ adminUrl }) => ["--server", adminUrl],
    env: ({ token }) => ({ PETSTORE_TOKEN: token }),
  },
  "operators create": { args: (facts) => ["--name", name(facts), "--role", "viewer", ...facts.storage] },
  "operators list": { args: onData() },
  "operators update": {
    needs: "operators create",
    args: ({ n, storage }) => ["command-1", "--role", n % 2 === 0 ? "viewer" : "support", ...storage],
  },
  "operators rotate": { needs: "operators create", args: onData("command-1") },
  "operators revoke": { needs: "operators create", args: onData("command-1", "--yes") },
  "admin-url": { args: onData() },
  audit: { args: onData() },
  "webhook show": { args: onData() },
  "webhook test": { args: onData() },
  apply: {
    args: onData("-"),
    input: (facts) => `keys: [{ id: command, name: ${name(facts)}, plan: free }]\n`,
  },
  "export config": { args: onData() },
  import: { args: ({ petsFile, storage }) => [petsFile, "--again", ...storage] },
  export: { args: ({ directory, storage }) => ["pets", join(directory, "pets.ndjson"), ...storage] },
  backup: { args: ({ backups, storage }) => [backups, "--keep", "1", ...storage] },
  restore: {
    args: async ({ backups, newStorage }) => [backups, ...(await newStorage())],
    needs: "backup",
  },
  openapi: { args: () => [] },
  completion: { args: () => ["bash"] },
};
