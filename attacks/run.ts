/** `npm run attacks`: see --help. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createPet } from "../harness/api-client.ts";
import { Child } from "../harness/child.ts";
import { temporaryFolder } from "../harness/cleanup.ts";
import {
  integerIn,
  limitRunTime,
  namesIn,
  parseFlags,
  runCommand,
  UsageError,
} from "../harness/command-line.ts";
import {
  chooseCores,
  type Cores,
  describeMachine,
  machineText,
  pinThisProcessTo,
} from "../harness/machine.ts";
import { createKey, startPetstore } from "../harness/petstore.ts";
import { isRunning } from "../harness/processes.ts";
import { Progress } from "../harness/progress.ts";
import { plainTable } from "../harness/table.ts";
import type { Attack } from "./attack.ts";
import { ATTACKS } from "./attacks.ts";
import type { GoodClientFigures } from "./good-client.ts";
import { type AttackResult, attackTable, problemsOf } from "./verdict.ts";

const PETS = 20;
/** The attack begins before the measurement. */
const LEAD_MS = 1_500;
/** For the responses to the last requests, and for the end of the processes. */
const GRACE_SECONDS = 15;
const MAX_SECONDS = 600;
const names = ATTACKS.map(({ name }) => name);
const width = Math.max(...names.map(({ length }) => length));

const HELP = `Usage: npm run attacks [-- OPTIONS]

Attacks servers of its own on the loopback address, and measures what a well-behaved client notices: it sends 50 requests a
second on one connection and 50 on new connections. Exits with 1 if an attack misses a bar.

  --only LIST   Some of these attacks, with commas between (default: all)
${ATTACKS.map(({ name, title }) => `                  ${name.padEnd(width)}  ${title}`).join("\n")}
  --seconds N   Length of each measurement, 1 to ${MAX_SECONDS} (default: 8)
  --json        Print the figures as JSON
  --help        Show this
`;

const FLAGS = {
  only: { type: "string" },
  seconds: { type: "string", default: "8" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

const scriptCommand = (name: string) => [process.execPath, join(import.meta.dir, name)];

async function runAttack(attack: Attack, seconds: number, cores: Cores): Promise<AttackResult> {
  const { name, title, openFiles } = attack;
  const storage = ["--data", temporaryFolder("attacks")];
  const openFilesLimit = openFiles === undefined ? [] : ["prlimit", `--nofile=${openFiles}`];
  const server = await startPetstore(
    ["--port", "0", ...storage],
    ["taskset", "-c", cores.server, ...openFilesLimit],
  );
  const children: Child[] = [];
  try {
    const { hostname, port } = new URL(server.url);
    const { key } = await createKey(storage);
    const { key: attackerKey } = await createKey(storage);
    for (let pet = 0; pet < PETS; pet++) await createPet(server.url, key);

    // The well-behaved client shares the core of the attackers: their work must not delay its own.
    const attackerCommand = ["nice", "-n", "10", ...scriptCommand("attacker-process.ts")];
    const attacker = new Child(
      [...attackerCommand, name, hostname, port, attackerKey, `${seconds + GRACE_SECONDS}`],
      { core: cores.load },
    );
    children.push(attacker);
    if (attack.isMeasuredWhenReady) await attacker.line(/^READY$/);
    else await Bun.sleep(LEAD_MS);
    const client = new Child([...scriptCommand("good-client-process.ts"), port, key, `${seconds}`], {
      core: cores.load,
    });
    children.push(client);
    const [startedAt, waitedBefore] = [performance.now(), cpuWaitMs(server.pid)];
    const figures = await figuresOf(client, seconds);
    const cpuWait = (cpuWaitMs(server.pid) - waitedBefore) / (performance.now() - startedAt);
    const memoryField = attack.isMeasuredWhenReady ? "VmRSS" : "VmHWM";
    const memoryMb = isRunning(server.pid) ? memoryOf(server.pid, memoryField) : Number.NaN;
    const problems = problemsOf(attack, memoryMb, figures);
    if (!isRunning(server.pid)) problems.push("the server ended");
    if (attacker.hasExited && (await attacker.ended) !== 0)
      problems.push(`the attack ended early: ${attacker.output.trim()}`);
    return { name, title, memoryMb, cpuWait, client: figures, problems };
  } finally {
    await Promise.all(children.map((child) => child.stop("SIGKILL")));
    await server.stop("SIGKILL");
  }
}

async function figuresOf(client: Child, seconds: number): Promise<GoodClientFigures> {
  const timer = setTimeout(() => client.kill("SIGKILL"), (seconds + GRACE_SECONDS) * 1_000);
  try {
    const [, figures = ""] = await client.line(/^FIGURES (.+)$/);
    return JSON.parse(figures);
  } finally {
    clearTimeout(timer);
  }
}

/** How long its main thread has been ready to run without running. */
function cpuWaitMs(pid: number): number {
  if (!isRunning(pid)) return Number.NaN;
  return Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}

/** Resident, in megabytes: now, or at its peak. */
function memoryOf(pid: number, field: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const kib = new RegExp(`^${field}:\\s*(\\d+) kB`, "m").exec(status)?.[1];
  return (Number(kib) * 1_024) / 1e6;
}

await runCommand("attacks", async (args) => {
  const { only, seconds: length, json, help } = parseFlags(args, FLAGS);
  if (help) {
    process.stdout.write(HELP);
    return 0;
  }
  const seconds = integerIn("--seconds", length, MAX_SECONDS);
  const chosen = only === undefined ? names : namesIn("--only", only, names);
  const attacks = ATTACKS.filter(({ name }) => chosen.includes(name));
  const cores = chooseCores();
  if (cores === undefined) throw new UsageError("two cores and taskset are needed");
  pinThisProcessTo(cores.load);
  limitRunTime(attacks.length * (seconds + 2 * GRACE_SECONDS) * 1_000);

  const progress = new Progress(attacks.length, process.stderr);
  const results: AttackResult[] = [];
  for (const attack of attacks) {
    progress.step(attack.title);
    const { name, title } = attack;
    const result = await runAttack(attack, seconds, cores).catch((error: unknown) => {
      return { name, title, problems: [error instanceof Error ? error.message : String(error)] };
    });
    results.push(result);
  }
  progress.finish();

  const machine = describeMachine();
  if (json) process.stdout.write(`${JSON.stringify({ machine, seconds, results }, null, 2)}\n`);
  else {
    const note = `${machineText(machine)}; load average at the end ${machine.load}; ${seconds} s each`;
    process.stdout.write(plainTable(attackTable(results, note)));
    for (const { title, problems } of results)
      for (const problem of problems) process.stdout.write(`${title}: ${problem}\n`);
  }
  return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
});
