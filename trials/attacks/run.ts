/** `npm run attacks`: see --help. */
import { join } from "node:path";
import { createPet } from "../harness/api-client.ts";
import { Child } from "../harness/child.ts";
import {
  integer,
  isGiven,
  limitRunTime,
  names,
  type Outcome,
  runCommand,
  runEach,
  UsageError,
} from "../harness/command-line.ts";
import {
  chooseCores,
  type Cores,
  describeMachine,
  machineText,
  pinThisProcessTo,
} from "../harness/machine.ts";
import { createKey } from "../harness/petstore.ts";
import { cpuWaitMs, isRunning, peakMb, residentMb, setTreePriority } from "../harness/processes.ts";
import {
  type Bar,
  formatFigure,
  markdownTable,
  missedBars,
  plainTable,
  replaceSection,
  type Table,
} from "../harness/table.ts";
import { type Attack, ATTACKS, attacksOn, ENGINES, type Engines } from "./attacks.ts";
import type { FreeKeyFigures, GoodClientFigures } from "./clients.ts";
import { type Deployment, PRIORITY, startDeployment } from "./deployment.ts";

const PETS = 20;
const CONCURRENT_REQUESTS = 10;
/** The attack begins before the measurement. */
const LEAD_MS = 1_500;
/** For the responses to the last requests, and for the end of the processes. */
const GRACE_SECONDS = 15;
/** For the start of PostgreSQL, Valkey and the servers. */
const START_SECONDS = 30;
const PREFER_EVERY_MS = 250;
const MAX_SECONDS = 600;
const width = Math.max(...ATTACKS.map(({ name }) => name.length));

const HELP = `Usage: npm run attacks [-- OPTIONS]

Attacks servers of its own on the loopback address, and measures what a well-behaved client notices: it sends 50 requests a
second on one connection and 50 on new connections. Exits with 1 if an attack misses a bar.

  --engines E    sqlite: one server (default); shared: two servers on one core, with a PostgreSQL and a Valkey, where a
                 client with a Free key also sends more than its limit to both, and must get exactly its limit
  --only LIST    Some of these attacks, with commas between (default: all)
${ATTACKS.map(describeAttack).join("\n")}
  --seconds N    Length of each measurement, 1 to ${MAX_SECONDS} (default: 8)
  --docs         Also write the figures to trials/attacks/results.md
  --help         Show this
`;

function describeAttack({ name, title, engines = ["sqlite"] }: Attack): string {
  return `                   ${name.padEnd(width)}  ${title} (${engines.join(", ")})`;
}

interface RunOptions {
  readonly engines: Engines;
  readonly seconds: number;
  readonly cores: Cores;
}

/** Starts a process that ends with the attack. */
type Start = (priority: number, ...args: string[]) => Child;

async function runAttack(
  attack: Attack,
  { engines, seconds, cores }: RunOptions,
): Promise<Outcome<AttackFigures>> {
  await using stack = new AsyncDisposableStack();
  const deployment = await startDeployment(engines, { cores, openFiles: attack.openFiles });
  stack.defer(() => deployment.stop());
  const start: Start = (priority, ...args) => {
    const command = [process.execPath, join(import.meta.dir, "clients.ts"), ...args];
    const child = new Child(command, { core: cores.load, ownSession: true });
    setTreePriority(child.pid, priority);
    stack.defer(async () => void (await child.stop("SIGKILL")));
    return child;
  };
  const { name, title } = attack;
  const { servers, storage } = deployment;
  const [first, last = first] = [servers[0], servers.at(-1)];
  if (first === undefined || last === undefined) throw new Error("no server is running");
  const ports = servers.map(({ url }) => new URL(url).port);
  const [{ key }, { key: attackerKey }] = [await createKey(storage), await createKey(storage)];
  const { key: freeKey } = await createKey(storage, "free");
  for (let pet = 0; pet < PETS; pet++) await createPet(first.url, key);
  await Promise.all(servers.map(({ url }) => openConnections(url, key)));

  if (attack.firstServerOnly) setTreePriority(last.pid, PRIORITY.ownMachine);
  const attackers = (attack.firstServerOnly ? ports.slice(0, 1) : ports).map((port) =>
    start(PRIORITY.attacker, "attack", name, port, attackerKey, `${seconds + GRACE_SECONDS}`),
  );
  await Promise.all(attackers.map((attacker) => attacker.line(/^READY$/)));
  if (!attack.isMeasuredWhenReady) await Bun.sleep(LEAD_MS);
  const goodClient = start(PRIORITY.ownMachine, "good", ports.at(-1) ?? "", key, `${seconds}`);
  const [startedAt, waitedBefore] = [performance.now(), cpuWaitMs(last.pid)];
  const measureFreeKey = () =>
    figuresOf<FreeKeyFigures>(
      start(PRIORITY.ownMachine, "free-key", ports.join(","), freeKey, `${seconds}`),
      seconds,
    );
  const [client, shared] = await Promise.all([
    figuresOf<GoodClientFigures>(goodClient, seconds),
    measureShared(deployment, measureFreeKey),
  ]);
  const cpuWait = (cpuWaitMs(last.pid) - waitedBefore) / (performance.now() - startedAt);
  const isAlive = servers.every(({ pid }) => isRunning(pid));
  const memoryOf = attack.isMeasuredWhenReady ? residentMb : peakMb;
  const memoryMb = Math.max(...servers.map(({ pid }) => memoryOf(pid)));
  const figures = { memoryMb, cpuWait, client, shared };
  const problems = problemsOf(attack, figures);
  if (!isAlive) problems.push("a server ended");
  if (attack.logs && logLines(deployment, attack.logs) === 0)
    problems.push(`the attack was too weak: no server logged ${attack.logs.source}`);
  for (const attacker of attackers) {
    if (attacker.hasExited && (await attacker.ended) !== 0)
      problems.push(`the attack ended early: ${attacker.output.trim()}`);
  }
  return { title, problems, figures };
}

/** The server's own, to PostgreSQL: it opens them when it has several requests at once. */
async function openConnections(url: string, key: string): Promise<void> {
  const list = () => fetch(`${url}/pets`, { headers: { Authorization: `Bearer ${key}` } });
  await Promise.all(Array.from({ length: CONCURRENT_REQUESTS }, async () => (await list()).text()));
}

/** Undefined for a server on SQLite. */
async function measureShared(deployment: Deployment, measureFreeKey: () => Promise<FreeKeyFigures>) {
  const { shared } = deployment;
  if (shared === undefined) return undefined;
  shared.prefer();
  // The servers open more connections when they need them.
  const timer = setInterval(() => shared.prefer(), PREFER_EVERY_MS);
  const [startedAt, before] = [performance.now(), await shared.transactions()];
  const freeKey = await measureFreeKey().finally(() => clearInterval(timer));
  const elapsedSeconds = (performance.now() - startedAt) / 1_000;
  return {
    freeKey,
    valkeyEntries: await shared.valkeyEntries(),
    /** How often a server took Valkey for unavailable, and counted on its own. */
    valkeyOutages: logLines(deployment, /Valkey is unavailable/),
    transactionsPerSecond: ((await shared.transactions()) - before) / elapsedSeconds,
  };
}

function logLines({ servers }: Deployment, pattern: RegExp): number {
  return servers.flatMap(({ log }) => log).filter((line) => pattern.test(JSON.stringify(line))).length;
}

async function figuresOf<T>(client: Child, seconds: number): Promise<T> {
  const timer = setTimeout(() => client.kill("SIGKILL"), (seconds + GRACE_SECONDS) * 1_000);
  try {
    const [, figures = ""] = await client.line(/^FIGURES (.+)$/);
    return JSON.parse(figures);
  } finally {
    clearTimeout(timer);
  }
}

interface AttackFigures {
  /** Resident memory of the server: its peak or, for an attack that is measured when it is ready, at the end. */
  readonly memoryMb: number;
  /** Share of the time that the client's server had work but not its core, because other processes used it. */
  readonly cpuWait: number;
  readonly client: GoodClientFigures;
  readonly shared: Awaited<ReturnType<typeof measureShared>>;
}

/** What the Free plan allows in a minute. */
const FREE_REQUESTS = 60;

/** Bars that were missed. */
function problemsOf({ bars }: Attack, { memoryMb, client, shared }: AttackFigures): string[] {
  const { keptConnection, newConnections, failures } = client;
  const { p99Ms, memoryMb: mostMb = Infinity } = bars;
  const { valkeyEntries: mostEntries = Infinity, transactionsPerSecond: mostTransactions = Infinity } = bars;
  const ofEach: Bar[] = [
    { name: "kept connection, p99 ms", value: keptConnection.p99, most: p99Ms },
    { name: "new connections, p99 ms", value: newConnections.p99, most: p99Ms },
    { name: "memory, MB", value: memoryMb, most: mostMb },
    { name: `failed requests (${failures[0]})`, value: failures.length, most: 0 },
  ];
  if (shared === undefined) return missedBars(ofEach);
  const { freeKey, valkeyEntries, valkeyOutages, transactionsPerSecond } = shared;
  const problems = missedBars([
    ...ofEach,
    { name: "times that Valkey counted as unavailable", value: valkeyOutages, most: 0 },
    { name: "entries in Valkey", value: valkeyEntries, most: mostEntries },
    { name: "transactions a second in PostgreSQL", value: transactionsPerSecond, most: mostTransactions },
  ]);
  if (freeKey.allowed !== FREE_REQUESTS)
    problems.push(`a Free key got ${freeKey.allowed} requests, its limit is ${FREE_REQUESTS}`);
  return problems;
}

const COLUMNS = "attack,memory MB,CPU wait,client's,kept p50,p99,worst ms,new p50,p99,worst ms".split(",");

function attackTable(results: readonly Outcome<AttackFigures>[], note: string): Table {
  const isShared = results.some(({ figures }) => figures?.shared !== undefined);
  return {
    title: "Attacks",
    note,
    header: [...COLUMNS, ...(isShared ? ["Free key", "Valkey entries", "transactions/s"] : []), "verdict"],
    rows: results.map(({ title, figures, problems }) => [
      title,
      ...(figures ? cellsOf(figures) : Array.from({ length: isShared ? 12 : 9 }, () => "–")),
      problems.length === 0 ? "pass" : "FAIL",
    ]),
  };
}

function cellsOf({ memoryMb, cpuWait, client, shared }: AttackFigures): string[] {
  const waits = [cpuWait, client.cpuWait].map((share) => `${Math.round(share * 100)} %`);
  const latencies = [client.keptConnection, client.newConnections].flatMap(({ p50, p99, worst }) =>
    [p50, p99, worst].map(formatFigure),
  );
  const ofOneServer = [formatFigure(memoryMb), ...waits, ...latencies];
  if (shared === undefined) return ofOneServer;
  const { freeKey, valkeyEntries, transactionsPerSecond } = shared;
  const ofKey = `${freeKey.allowed} of ${FREE_REQUESTS}`;
  return [...ofOneServer, ofKey, String(valkeyEntries), formatFigure(transactionsPerSecond)];
}

await runCommand({
  name: "attacks",
  help: HELP,
  flags: {
    engines: names(ENGINES),
    only: names(ATTACKS.map(({ name }) => name)),
    seconds: integer(8, MAX_SECONDS),
    docs: isGiven,
  },
  async main({ engines: [engines = "sqlite", ...others] = [], only, seconds, docs }) {
    if (only !== undefined && docs)
      throw new UsageError("--docs needs all attacks and does not go with --only");
    if (others.length > 0) throw new UsageError(`--engines takes one of ${ENGINES.join(", ")}`);
    const available = attacksOn(engines);
    const missing = only?.find((name) => !available.some((attack) => attack.name === name));
    if (missing !== undefined) throw new UsageError(`--only: ${missing} is no attack on ${engines}`);
    const attacks = available.filter(({ name }) => only?.includes(name) ?? true);
    const cores = chooseCores();
    if (cores === undefined) throw new UsageError("two cores and taskset are needed");
    // PostgreSQL and Valkey inherit the cores of this process, and use both.
    if (engines === "sqlite") pinThisProcessTo(cores.load);
    limitRunTime((attacks.length * (seconds + START_SECONDS + 2 * GRACE_SECONDS)) / 60);

    const results = await runEach(attacks, (attack) => runAttack(attack, { engines, seconds, cores }));
    const machine = describeMachine();
    const note = `${machineText(machine)}; load average at the end ${machine.load}; ${seconds} s each`;
    const table = attackTable(results, note);
    if (docs) replaceSection("trials/attacks/results.md", engines, markdownTable(table));
    process.stdout.write(plainTable(table));
    return results.some(({ problems }) => problems.length > 0) ? 1 : 0;
  },
});
