/* What others prepare for the commands of an operator, who is often root: files, a server, a database. */

import { Database } from "bun:sqlite";
import { chownSync, copyFileSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { PETSTORE, runPetstore } from "../harness/petstore.ts";
import { peakMb } from "../harness/processes.ts";
import { formatFigure, missedBars, tableOf } from "../harness/table.ts";
import type { Outcome, Result } from "../harness/trials.ts";

interface CommandFigures {
  readonly seconds: number;
  readonly memoryMb: number;
}

export interface CommandAttack {
  readonly name: string;
  readonly title: string;
  /** Runs the commands, and describes what should not have happened. */
  run(command: RunCommand): Promise<readonly string[]>;
}

/** Runs a command. It stands still while `onOutput` runs, which is called when it prints something. */
type RunCommand = (
  args: readonly string[],
  onOutput?: () => void,
) => Promise<{ readonly code: number; readonly err: string }>;

const MOST_SECONDS = 30;
const MOST_MB = 400;
const LOOK_EVERY_MS = 20;
const NOBODY = 65_534;

/** Makes a backup of some data, and returns the path of its database. */
async function makeBackup(): Promise<string> {
  const [data, backups] = [temporaryDirectory("data"), temporaryDirectory("backups")];
  const file = join(data, "pets.csv");
  writeFileSync(file, `name,categoryId,status\n${"Rex,1,sold\n".repeat(100_000)}`);
  for (const args of [
    ["import", file],
    ["backup", backups],
  ]) {
    const { code, err } = await runPetstore(...args, "--data", data);
    if (code !== 0) throw new Error(`${args[0]}: ${err}`);
  }
  const [name = ""] = [...new Bun.Glob("*.db").scanSync(backups)];
  return join(backups, name);
}

/** Replaces a text of the schema, and makes the checksum right. */
function prepare(backup: string, from: string, to: string): void {
  const bytes = readFileSync(backup, "latin1");
  if (!bytes.includes(from)) throw new Error(`no backup has ${from}`);
  writeFileSync(backup, bytes.replaceAll(from, to.padEnd(from.length)), "latin1");
  const checksum = new Bun.CryptoHasher("sha256").update(readFileSync(backup)).digest("hex");
  writeFileSync(`${backup}.sha256`, `${checksum}  ${basename(backup)}\n`);
}

/** Restores a prepared backup, which must be rejected. */
async function restorePrepared(backup: string, run: RunCommand): Promise<readonly string[]> {
  const { code, err } = await run(["restore", backup, "--data", temporaryDirectory("restored")]);
  return code === 1 && err.includes("is not sound") ? [] : [`restore ends with ${code}: ${err}`];
}

const RESTORES = 12;
const SECRET = "what only root may read";

/**
 * Restores from a directory whose owner replaces the backup by a link, at other times each. Looks for what that user
 * can read in the data directory.
 */
async function restoreReplaced(run: RunCommand): Promise<readonly string[]> {
  const backup = await makeBackup();
  const [elsewhere, data] = [temporaryDirectory("secrets"), temporaryDirectory("restored")];
  const [secret, original] = [join(elsewhere, "secret"), join(elsewhere, "original")];
  writeFileSync(secret, SECRET.repeat(1_000_000), { mode: 0o600 });
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(data, NOBODY, NOBODY);
  const restore = (onOutput?: () => void) => run(["restore", backup, "--replace", "--data", data], onOutput);
  const startedAt = performance.now();
  await restore();
  const usualMs = performance.now() - startedAt;
  copyFileSync(backup, original);
  const problems = new Set<string>();
  const look = setInterval(() => {
    if (isSecretIn(join(data, "production.db.restored"), isRoot)) problems.add("a file of root was copied");
  }, 1);
  const replace = () => {
    rmSync(backup, { force: true });
    symlinkSync(secret, backup);
  };
  for (let i = 0; i < RESTORES; i++) {
    rmSync(backup);
    copyFileSync(original, backup);
    // Every second time when the plan is printed, after all checks.
    const isTimed = i % 2 === 0;
    const timer = isTimed ? setTimeout(replace, (usualMs * i) / RESTORES) : undefined;
    await restore(isTimed ? undefined : replace);
    clearTimeout(timer);
  }
  clearInterval(look);
  return [...problems];
}

/** Whether a user who is not root can read the secret in a file. */
function isSecretIn(file: string, isRoot: boolean): boolean {
  try {
    if (isRoot && statSync(file).uid !== NOBODY) return false;
    return readFileSync(file, "latin1").startsWith(SECRET);
  } catch {
    return false;
  }
}

/** Calls a server that asks for a long wait. */
async function logInSlowly(run: RunCommand): Promise<readonly string[]> {
  const message = "Too many requests of this operator at once.";
  const body = JSON.stringify({ code: "too_many_requests", message, status: 429 });
  const fetch = () => new Response(body, { status: 429, headers: { "Retry-After": "999999999" } });
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  const token = join(temporaryDirectory("token"), "token");
  writeFileSync(token, "x".repeat(40));
  const { code, err } = await run(["login", server.url.origin, "--token-file", token]);
  return code === 1 && err.includes(message) ? [] : [`login ends with ${code}: ${err}`];
}

async function applyUnknown(run: RunCommand): Promise<readonly string[]> {
  const directory = temporaryDirectory("apply");
  const file = join(directory, "petstore.yaml");
  writeFileSync(file, Array.from({ length: 60_000 }, (_, i) => `a${i}: 1\n`).join(""));
  const { code, err } = await run(["apply", file, "--data", directory]);
  return code === 1 && err.includes("60,000 problems") ? [] : [`apply ends with ${code}: ${err}`];
}

export const COMMAND_ATTACKS: readonly CommandAttack[] = [
  {
    name: "replaced-backups",
    title: `${RESTORES} restores by root while the owner of the directory replaces the backup by a link`,
    run: restoreReplaced,
  },
  {
    name: "prepared-constraint",
    title: "a backup with a constraint that takes a gigabyte for each row",
    async run(command) {
      const backup = await makeBackup();
      prepare(backup, "length(name) BETWEEN 1 AND 1024", "randomblob(999999999)");
      return restorePrepared(backup, command);
    },
  },
  {
    name: "prepared-index",
    title: "a backup with an index of an expression that takes a gigabyte for each row",
    async run(command) {
      const backup = await makeBackup();
      using database = new Database(backup);
      database.run("CREATE INDEX x ON pets (name) WHERE length(name) > 123456789012");
      database.close();
      prepare(backup, "length(name) > 123456789012", "hex(zeroblob(id*999999))<1");
      return restorePrepared(backup, command);
    },
  },
  {
    name: "long-wait",
    title: "a server that asks petstore login to wait for 31 years",
    run: logInSlowly,
  },
  {
    name: "unknown-fields",
    title: "petstore apply of a file of 60,000 unknown fields",
    run: applyUnknown,
  },
];

/** Runs an attack on commands. Each command takes at most `MOST_SECONDS` and `MOST_MB`. */
export async function runCommandAttack({ run }: CommandAttack): Promise<Outcome<CommandFigures>> {
  let [seconds, memoryMb] = [0, 0];
  const problems = await run(async (args, onOutput) => {
    const startedAt = performance.now();
    const child = Bun.spawn([...PETSTORE, ...args], {
      env: { ...process.env, XDG_CONFIG_HOME: temporaryDirectory("config") },
      stdout: "pipe",
      stderr: "pipe",
      timeout: 2 * MOST_SECONDS * 1_000,
      killSignal: "SIGKILL",
    });
    // What the system reports of a process that has ended includes the memory of this one.
    const look = setInterval(() => (memoryMb = Math.max(memoryMb, peakMb(child.pid) || 0)), LOOK_EVERY_MS);
    const [code, err] = await Promise.all([
      child.exited,
      child.stderr.text(),
      (async () => {
        for await (const _ of child.stdout) {
          if (onOutput === undefined) continue;
          child.kill("SIGSTOP");
          onOutput();
          child.kill("SIGCONT");
        }
      })(),
    ]);
    clearInterval(look);
    seconds = Math.max(seconds, (performance.now() - startedAt) / 1_000);
    return { code, err };
  });
  const bars = [
    { name: "seconds", value: seconds, most: MOST_SECONDS },
    { name: "memory, MB", value: memoryMb, most: MOST_MB },
  ];
  return { problems: [...problems, ...missedBars(bars)], figures: { seconds, memoryMb } };
}

export const commandTable = (results: readonly Result<CommandFigures>[]) =>
  tableOf("Commands", results, {
    attack: ({ title }) => title,
    "memory MB": ({ figures }) => (figures ? formatFigure(figures.memoryMb) : "–"),
    seconds: ({ figures }) => (figures ? formatFigure(figures.seconds) : "–"),
    verdict: ({ problems }) => (problems.length === 0 ? "pass" : "FAIL"),
  });
