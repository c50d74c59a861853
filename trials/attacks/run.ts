/* Runs `npm run attacks`; its --help describes the options. */

import { SQL } from "bun";
import { join } from "node:path";
import { createPet, sendBurst } from "../harness/api-client.ts";
import { Child } from "../harness/child.ts";
import { temporaryDirectory } from "../harness/cleanup.ts";
import { integer, isGiven, limitRunTime, names, runCommand, UsageError } from "../harness/command-line.ts";
import { startStores } from "../harness/fleet.ts";
import { startHostileServer } from "../harness/hostile-server.ts";
import { sendOnce } from "../harness/http-connection.ts";
import { providerFlags, startIdentityProvider } from "../harness/identity-provider.ts";
import { chooseCores, type Cores, machineNow, pinThisProcessTo } from "../harness/machine.ts";
import {
  adminFlags,
  createKey,
  type PetstoreServer,
  runPetstore,
  startPetstore,
} from "../harness/petstore.ts";
import {
  cpuSeconds,
  cpuWaitMs,
  isRunning,
  peakMb,
  residentMb,
  setTreePriority,
} from "../harness/processes.ts";
import { beginEvery } from "../harness/steady-load.ts";
import { type Bar, formatFigure, missedBars, type Table } from "../harness/table.ts";
import { type Outcome, type Result, runTrials, trialLines } from "../harness/trials.ts";
import { type Attack, ATTACKS, ENGINES, type Engines } from "./attacks.ts";
import { COMMAND_ATTACKS, commandTable, runCommandAttack } from "./commands.ts";
import { storeQuestions } from "./questions.ts";
import { signPeopleIn } from "./sign-ins.ts";
import { GRACE_SECONDS, type GoodClientFigures } from "./clients.ts";

const PETS = 20;
const CONCURRENT_REQUESTS = 10;
/** How long before the measurement the attack begins. */
const LEAD_MS = 1_500;
/** The time for the start of PostgreSQL and the servers. */
const START_SECONDS = 30;
const PREFER_EVERY_MS = 250;
const MAX_SECONDS = 600;
const SHARED_SERVERS = 2;

/** The priorities. Each process or group of processes has a session of its own. */
const PRIORITY = {
  /**
   * The well-behaved client, PostgreSQL and a server that is not attacked stand for machines of their own, so
   * that attackers and attacked servers on these cores do not delay them.
   */
  ownMachine: -10,
  attacker: 10,
} as const;

const enginesOf = ({ engines = ["sqlite"] }: Attack) => engines;

/** What is attacked. Commands are attacked beside one server, too. */
const TARGETS = [...ENGINES, "commands"] as const;

const HELP = `Usage: npm run attacks [-- OPTIONS]

Attacks servers of its own on the loopback address, and measures what a well-behaved client notices: it sends 50 requests a
second on one connection and 50 on new connections. Then it runs commands on what somebody has prepared. Exits with 1 if an attack
misses a bar.

  --engines E    sqlite: one server, and commands (default); commands: these alone; shared: two servers on one core, with a
                 PostgreSQL, where a client with a Free key also sends more than its limit to both, and must get exactly
                 its limit
  --only LIST    Some of these attacks, with commas between (default: all)
${trialLines([
  ...ATTACKS.map((each) => ({ ...each, title: `${each.title} (${enginesOf(each).join(", ")})` })),
  ...COMMAND_ATTACKS.map((each) => ({ ...each, title: `${each.title} (commands)` })),
])}
  --seconds N    Length of each measurement, 1 to ${MAX_SECONDS} (default: 8)
  --docs         Also write the figures to trials/attacks/results.md
  --help         Show this
`;

interface RunOptions {
  readonly engines: Engines;
  readonly seconds: number;
  readonly cores: Cores;
}

type AttackFigures = Awaited<ReturnType<typeof measureAttack>>;

async function importSoldPets(count: number, storage: readonly string[]): Promise<void> {
  const file = join(temporaryDirectory("attacks-import"), "pets.csv");
  await Bun.write(file, `name,categoryId,status\n${"Rex,1,sold\n".repeat(count)}`);
  const { code, err } = await runPetstore("import", file, ...storage);
  if (code !== 0) throw new Error(`import: ${err}`);
}

/** Measures an attack. The servers share one core. All processes end with the attack. */
async function measureAttack(attack: Attack, { engines, seconds, cores }: RunOptions) {
  await using stack = new AsyncDisposableStack();
  const databases = engines === "shared" ? await startDatabases(stack) : undefined;
  const storage = databases?.storage ?? ["--data", temporaryDirectory("attacks")];
  const collector = attack.collector && stack.use(await startHostileServer(attack.collector));
  const tracing = collector ? ["--otlp-url", `http://127.0.0.1:${collector.port}`, "--otlp-sample", "1"] : [];
  const provider = attack.peopleSignIn && stack.use(await startIdentityProvider());
  const openFiles = attack.openFiles === undefined ? [] : ["prlimit", `--nofile=${attack.openFiles}`];
  const token = crypto.randomUUID();
  const servers: PetstoreServer[] = [];
  while (servers.length < (databases ? SHARED_SERVERS : 1)) {
    const under = ["setsid", "taskset", "-c", cores.server, ...openFiles];
    const operators = [
      ...(attack.asOperator ? adminFlags(token) : []),
      ...(provider ? providerFlags(provider) : []),
    ];
    const flags = [...storage, ...tracing, ...operators];
    const server = await startPetstore(["--port", "0", ...flags], under);
    stack.defer(async () => void (await server.stop("SIGKILL")));
    servers.push(server);
  }
  const startClient = (name: string, port: number, key: string) => {
    const program = [process.execPath, join(import.meta.dir, "clients.ts")];
    const command = [...program, name, `${port}`, key, `${seconds}`];
    const isGood = name === "good";
    const timeout = isGood ? (seconds + GRACE_SECONDS) * 1_000 : 0;
    const child = new Child(command, { core: cores.load, ownSession: true, timeout });
    setTreePriority(child.pid, isGood ? PRIORITY.ownMachine : PRIORITY.attacker);
    stack.defer(async () => void (await child.stop("SIGKILL")));
    return child;
  };
  const [first, last = first] = [servers[0], servers.at(-1)];
  if (first === undefined || last === undefined) throw new Error("no server is running");
  const ports = servers.map(({ url }) => Number(new URL(url).port));
  const [{ key }, { key: attackerKey }] = [await createKey(storage), await createKey(storage)];
  const { key: freeKey } = await createKey(storage, "free");
  for (let pet = 0; pet < (attack.pets ?? PETS); pet++) await createPet(first.url, key);
  if (attack.soldPets !== undefined) await importSoldPets(attack.soldPets, storage);
  // The servers open connections to PostgreSQL when they have several requests at once.
  await sendBurst(ports, key, CONCURRENT_REQUESTS * ports.length);

  if (attack.firstServerOnly) setTreePriority(last.pid, PRIORITY.ownMachine);
  const attacked = (attack.firstServerOnly ? servers.slice(0, 1) : servers).map(({ url, adminUrl }) =>
    Number(new URL(attack.asOperator ? adminUrl : url).port),
  );
  const secret = attack.asOperator ? token : attackerKey;
  if (attack.questions !== undefined) stack.use(storeQuestions(storage, attack.questions));
  const attackers = attacked.map((port) => startClient(attack.name, port, secret));
  await Promise.all(attackers.map((attacker) => attacker.line(/^READY$/)));
  if (!attack.isMeasuredWhenReady) await Bun.sleep(LEAD_MS);
  const goodClient = startClient("good", ports.at(-1) ?? 0, key);
  const [startedAt, waitedBefore] = [performance.now(), cpuWaitMs(last.pid)];
  const usedBefore = cpuSeconds(first.pid);
  const countLines = (pattern: RegExp) =>
    servers.flatMap(({ log }) => log).filter(({ text }) => pattern.test(text)).length;
  const [client, shared, failedSignIns] = await Promise.all([
    goodClient.line(/^FIGURES (.+)$/).then(([, figures = ""]): GoodClientFigures => JSON.parse(figures)),
    databases?.measure(() => useFreeKey(ports, freeKey, seconds)),
    provider ? signPeopleIn(attacked[0] ?? 0, provider, seconds) : [],
  ]);
  const elapsedMs = performance.now() - startedAt;
  const memoryOf = attack.isMeasuredWhenReady ? residentMb : peakMb;
  return {
    client,
    shared,
    /** Why people who signed in did not get in. */
    failedSignIns,
    /**
     * The memory of the server: its peak or, for an attack that is measured when it is ready, the memory at the end.
     */
    memoryMb: Math.max(...servers.map(({ pid }) => memoryOf(pid))),
    /** The share of the time that the client's server had work but not its core, because other processes used it. */
    cpuWait: (cpuWaitMs(last.pid) - waitedBefore) / elapsedMs,
    /** The share of the time that the first server used its core. */
    cpuShare: (cpuSeconds(first.pid) - usedBefore) / (elapsedMs / 1_000),
    isRunning: servers.every(({ pid }) => isRunning(pid)),
    isStrong: attack.logs === undefined || countLines(attack.logs) > 0,
    /** The number of requests to the hostile collector; undefined without one. */
    exports: collector?.requests.length,
    /** The output of attackers that ended early. */
    failedAttacks: attackers.flatMap(({ hasExited, output }) => (hasExited ? [output.trim()] : [])),
  };
}

async function runAttack(attack: Attack, options: RunOptions): Promise<Outcome<AttackFigures>> {
  const figures = await measureAttack(attack, options);
  const { shared, isRunning, isStrong, failedAttacks } = figures;
  const problems = missedBars(barsOf(attack, figures));
  if (shared && shared.freeKey !== FREE_REQUESTS)
    problems.push(`a Free key got ${shared.freeKey} requests, its limit is ${FREE_REQUESTS}`);
  if (!isRunning) problems.push("a server ended");
  if (!isStrong) problems.push(`the attack was too weak: no server logged ${attack.logs?.source}`);
  if (figures.exports === 0) problems.push("the server has exported no spans");
  for (const output of failedAttacks) problems.push(`the attack ended early: ${output}`);
  return { problems, figures };
}

async function startDatabases(stack: AsyncDisposableStack) {
  const { postgres, storage } = await startStores();
  const sql = new SQL(postgres.url, { max: 1 });
  stack.defer(async () => {
    await sql.close({ timeout: 0 });
    await postgres.kill();
  });
  const prefer = () => setTreePriority(postgres.pid, PRIORITY.ownMachine);
  const transactions = async () => {
    const [row] = await sql`SELECT sum(xact_commit)::int8 AS count FROM pg_stat_database`;
    return Number(row.count);
  };
  prefer();
  return {
    storage,
    /** Measures while a client uses its Free key. */
    async measure(useKey: () => Promise<number>) {
      prefer();
      // PostgreSQL has a process for each connection, and the servers open more when they need them.
      const timer = setInterval(prefer, PREFER_EVERY_MS);
      const [startedAt, before] = [performance.now(), await transactions()];
      const freeKey = await useKey().finally(() => clearInterval(timer));
      const elapsedSeconds = (performance.now() - startedAt) / 1_000;
      return {
        /** The number of requests that the Free key was allowed. */
        freeKey,
        transactionsPerSecond: ((await transactions()) - before) / elapsedSeconds,
      };
    },
  };
}

/** The limit of the Free plan per minute. */
const FREE_REQUESTS = 60;
const FREE_KEY_INTERVAL_MS = 40;
/** The longest time in which all requests are in one window. */
const MAX_FREE_KEY_SECONDS = 40;
/** How many more requests are sent until one is rejected, if many fail. */
const MAX_EXTRA_REQUESTS = 200;

/** Sends more requests than the key allows, to all servers in turn. Returns how many were allowed. */
async function useFreeKey(ports: readonly number[], key: string, seconds: number): Promise<number> {
  const counts = { allowed: 0, rejected: 0 };
  const request = { path: "/v1/pets?limit=1", headers: [["Authorization", `Bearer ${key}`]] } as const;
  const send = async (number: number) => {
    const response = await sendOnce(ports[number % ports.length] ?? 0, request).catch(() => undefined);
    if (response?.status === 200) counts.allowed++;
    else if (response?.status === 429) counts.rejected++;
  };
  const count = (Math.min(seconds, MAX_FREE_KEY_SECONDS) * 1_000) / FREE_KEY_INTERVAL_MS;
  await beginEvery(FREE_KEY_INTERVAL_MS, send, { count });
  for (let number = 0; counts.rejected === 0 && number < MAX_EXTRA_REQUESTS; number++) await send(number);
  return counts.allowed;
}

function barsOf({ bars = {} }: Attack, figures: AttackFigures): Bar[] {
  const { client, shared, failedSignIns } = figures;
  const { keptConnection, newConnections, failures } = client;
  const { memoryMb = Infinity, cpuShare = Infinity, p99Ms = 50 } = bars;
  const { transactionsPerSecond = Infinity } = bars;
  return [
    { name: "kept connection, p99 ms", value: keptConnection.p99, most: p99Ms },
    { name: "new connections, p99 ms", value: newConnections.p99, most: p99Ms },
    { name: "memory, MB", value: figures.memoryMb, most: memoryMb },
    { name: "share of the core", value: figures.cpuShare, most: cpuShare },
    { name: `failed requests (${failures[0]})`, value: failures.length, most: 0 },
    { name: `failed sign-ins (${failedSignIns[0]})`, value: failedSignIns.length, most: 0 },
    {
      name: "transactions a second in PostgreSQL",
      value: shared?.transactionsPerSecond ?? 0,
      most: transactionsPerSecond,
    },
  ];
}

const COLUMNS = "attack,memory MB,CPU wait,client's,kept p50,p99,worst ms,new p50,p99,worst ms".split(",");
const SHARED_COLUMNS = ["Free key", "transactions/s"];

function attackTable(results: readonly Result<AttackFigures>[], engines: Engines): Table {
  const header = [...COLUMNS, ...(engines === "shared" ? SHARED_COLUMNS : []), "verdict"];
  return {
    title: "Attacks",
    header,
    rows: results.map(({ title, figures, problems }) => [
      title,
      ...(figures ? cellsOf(figures) : header.slice(2).map(() => "–")),
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
  const ofKey = `${shared.freeKey} of ${FREE_REQUESTS}`;
  return [...ofOneServer, ofKey, formatFigure(shared.transactionsPerSecond)];
}

await runCommand({
  name: "attacks",
  help: HELP,
  flags: {
    engines: names(TARGETS),
    only: names([...ATTACKS, ...COMMAND_ATTACKS].map(({ name }) => name)),
    seconds: integer(8, MAX_SECONDS),
    docs: isGiven,
  },
  async main({ engines: [target = "sqlite", ...others] = [], only, seconds, docs }) {
    if (others.length > 0) throw new UsageError(`--engines takes one of ${TARGETS.join(", ")}`);
    const isChosen = ({ name }: { readonly name: string }) => only?.some((each) => each === name) ?? true;
    const engines = target === "commands" ? undefined : target;
    const trials = engines ? ATTACKS.filter((attack) => enginesOf(attack).includes(engines)) : [];
    const onCommands = target === "shared" ? [] : COMMAND_ATTACKS;
    const missing = only?.find((only) => ![...trials, ...onCommands].some(({ name }) => name === only));
    if (missing !== undefined) throw new UsageError(`--only: ${missing} is no attack on ${target}`);
    const cores = chooseCores();
    if (cores === undefined) throw new UsageError("two cores and taskset are needed");
    // PostgreSQL inherits the cores of this process, and uses both.
    if (engines === "sqlite") pinThisProcessTo(cores.load);
    const each = seconds + START_SECONDS + 2 * GRACE_SECONDS;
    limitRunTime(((only?.length ?? trials.length + onCommands.length) * each) / 60);
    const sectionOf = (name: string) => docs && { file: "trials/attacks/results.md", name };
    let code = 0;
    if (engines && trials.some(isChosen))
      code = await runTrials({
        trials,
        only,
        run: (attack) => runAttack(attack, { engines, seconds, cores }),
        tablesOf: (results) => [
          { ...attackTable(results, engines), note: `${seconds} s each. ${machineNow()} at the end.` },
        ],
        docs: sectionOf(engines),
      });
    if (!onCommands.some(isChosen)) return code;
    const commandCode = await runTrials({
      trials: onCommands,
      only,
      run: runCommandAttack,
      tablesOf: (results) => [{ ...commandTable(results), note: `${machineNow()} at the end.` }],
      docs: sectionOf("commands"),
    });
    return Math.max(code, commandCode);
  },
});
