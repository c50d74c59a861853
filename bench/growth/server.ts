/* A server with the data of a scale, and what its requests and commands cost. */

import { SQL } from "bun";
import { HttpConnection } from "../../trials/harness/http-connection.ts";
import { adminFlags, PETSTORE, startPetstore } from "../../trials/harness/petstore.ts";
import {
  bytesRead,
  cpuMsOfThreads,
  cpuMsSince,
  cpuWaitMs,
  processTree,
} from "../../trials/harness/processes.ts";
import { median } from "../../trials/harness/statistics.ts";
import { startReceiver, webhookFlags } from "../../trials/harness/webhook-receiver.ts";
import type { CommandFacts, CommandRun } from "./commands.ts";
import type { GrowthData } from "./data.ts";
import type { GrowthCase, GrowthRequest } from "./operations.ts";
import type { Cost } from "./tables.ts";
import { type Timed, timed } from "../timed.ts";

/** The server has no provider, so it rejects the operations of people who sign in with one. */
const isWithoutProvider = (body: string) => body.includes('"no_provider"');

const CALLS = 3;
const OPERATORS = 6;
const RATE_WAIT_MS = 1_000;
/** A wait is measured in a call of this length at least, so that the second client sends a few requests. */
const PAUSE_MS = 5;
/** A command that takes longer is run once. */
const LONG_SECONDS = 3;

export type GrowthServer = Awaited<ReturnType<typeof startGrowthServer>>;

export async function startGrowthServer(data: GrowthData) {
  const receiver = startReceiver();
  const first: string = crypto.randomUUID();
  // The entries of the data are as old as 1970, and should stay.
  const flags = ["--port", "0", "--audit-retention", "forever"];
  const others = [...adminFlags(first), ...webhookFlags(receiver, "data.restored")];
  const server = await startPetstore([...data.storage, ...flags, ...others]);
  const [clientPort, operatorPort] = [server.url, server.adminUrl].map((url) => Number(new URL(url).port));
  const ports = { client: clientPort ?? 0, operator: operatorPort ?? 0 };
  const host = { client: "petstore.test", operator: new URL(server.adminUrl).host };
  const connections = {
    client: await HttpConnection.open(ports.client),
    operator: await HttpConnection.open(ports.operator),
  };
  const second = await HttpConnection.open(ports.client);
  const pids = [server.pid, ...(data.postgres ? [data.postgres.pid] : [])];
  const statistics = data.postgres && new SQL(data.postgres.url, { max: 1 });

  /** The blocks that the statements have read so far, or the pages of files that the server has read. */
  async function blocksRead(): Promise<number> {
    if (statistics === undefined) return bytesRead(server.pid) / 4_096;
    const [row] = await statistics`
      SELECT sum(shared_blks_hit + shared_blks_read)::float8 AS blocks FROM pg_stat_statements
      WHERE query NOT LIKE '%pg_stat_statements%'`;
    return Number(row?.blocks ?? 0);
  }

  async function send(side: GrowthCase["side"], request: GrowthRequest) {
    if (!connections[side].isOpen) connections[side] = await HttpConnection.open(ports[side]);
    const { method, path, key, headers, body } = request;
    const lines = [
      ["Host", host[side]],
      ...(key === undefined ? [] : [["Authorization", `Bearer ${key}`]]),
      ...headers,
      ...(body === undefined ? [] : [["Content-Type", "application/json"]]),
      ...(body === undefined ? [] : [["Content-Length", String(Buffer.byteLength(body))]]),
    ];
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    return connections[side].sendText(`${method} ${path} HTTP/1.1\r\n${head}\r\n${body ?? ""}`);
  }

  /** How long this process and the server were ready to run, while other programs used the cores. */
  const coreWaitMs = () => cpuWaitMs(server.pid) + cpuWaitMs(process.pid);

  /**
   * Sends requests of a second client, one after the other, until the work is done. Returns the longest time that one
   * took, without the time in which other programs used the cores.
   */
  async function longestWait(work: () => Promise<unknown>): Promise<number> {
    const state = { isOver: false };
    let longest = 0;
    const headers = [["Authorization", `Bearer ${data.keys.other}`]] as const;
    const ask = () => second.send({ path: "/v1/pets?limit=1", headers });
    await ask();
    const asking = (async () => {
      while (!state.isOver) {
        const sentAt = performance.now() - coreWaitMs();
        await ask();
        longest = Math.max(longest, performance.now() - coreWaitMs() - sentAt);
      }
    })();
    const pause = Bun.sleep(PAUSE_MS);
    await work().finally(async () => {
      await pause;
      state.isOver = true;
      await asking;
    });
    return longest;
  }

  const newOperator = async (n: number): Promise<string> => {
    const body = JSON.stringify({ name: `operator-${n}`, role: "admin" });
    const request = { method: "POST", path: "/api/operators", key: first, headers: [], body };
    return JSON.parse((await send("operator", request)).body).token;
  };
  const tokens: string[] = [first];
  while (tokens.length < OPERATORS) tokens.push(await newOperator(tokens.length));

  const numbers = new Map<string, number>();
  const nextNumber = (name: string) => {
    const n = (numbers.get(name) ?? 0) + 1;
    numbers.set(name, n);
    return n;
  };

  async function call({ side, operation, request, keep }: GrowthCase) {
    for (;;) {
      const response = await send(side, request(nextNumber(side + operation)));
      if (response.status === 429) await Bun.sleep(RATE_WAIT_MS);
      else if ((response.status < 200 || response.status > 299) && !isWithoutProvider(response.body))
        throw new Error(`${response.status} ${response.body.slice(0, 200)}`);
      else {
        if (keep) keep(JSON.parse(response.body));
        return response;
      }
    }
  }

  async function costOf(each: GrowthCase): Promise<Cost> {
    const blocks: number[] = [];
    const times: number[] = [];
    const waits: number[] = [];
    const sizes: number[] = [];
    const tree = pids.flatMap(processTree);
    for (let i = 0; i <= CALLS; i++) {
      const before = await blocksRead();
      const at = cpuMsOfThreads(tree);
      sizes.push((await call(each)).bytes);
      times.push(cpuMsSince(at, tree));
      blocks.push((await blocksRead()) - before);
    }
    for (let i = 0; i < CALLS; i++) waits.push(await longestWait(() => call(each)));
    return {
      cpuMs: Math.min(...times),
      // Later calls find pages in SQLite's cache. Servers poll PostgreSQL meanwhile.
      blocks: (statistics ? Math.min(...blocks) : blocks[0]) ?? NaN,
      bytes: Math.max(...sizes),
      waitMs: median(waits),
    };
  }

  /** The cost of requests together, which are sent one after the other. */
  async function costOfMany(requests: readonly GrowthRequest[]): Promise<Cost> {
    const sendAll = async () => {
      for (const request of requests) {
        const { status, body } = await send("client", request);
        if (status !== 200) throw new Error(`${status} ${body.slice(0, 200)}`);
      }
    };
    await sendAll();
    const tree = pids.flatMap(processTree);
    const times: number[] = [];
    const waits: number[] = [];
    const controls: number[] = [];
    for (let i = 0; i < CALLS; i++) {
      const at = cpuMsOfThreads(tree);
      const startedAt = performance.now();
      await sendAll();
      const ms = performance.now() - startedAt;
      times.push(cpuMsSince(at, tree));
      waits.push(await longestWait(sendAll));
      controls.push(await longestWait(() => Bun.sleep(ms)));
    }
    return {
      cpuMs: Math.min(...times),
      blocks: NaN,
      bytes: NaN,
      waitMs: median(waits),
      controlMs: median(controls),
    };
  }

  /** Runs a command that needs no data again and again, for as long as another one took. */
  async function runOthers(seconds: number): Promise<void> {
    const until = performance.now() + seconds * 1_000;
    do await timed([...PETSTORE, "completion", "bash"]);
    while (performance.now() < until);
  }

  async function costOfCommand(
    name: string,
    run: CommandRun,
    facts: Omit<CommandFacts, "n" | "adminUrl" | "token">,
  ): Promise<Cost> {
    const runs: Timed[] = [];
    const waits: number[] = [];
    const controls: number[] = [];
    for (let i = 0; i < CALLS && (runs[0]?.seconds ?? 0) < LONG_SECONDS; i++) {
      const all = { ...facts, n: nextNumber(name), adminUrl: server.adminUrl, token: tokens[1] ?? "" };
      const command = [...PETSTORE, ...name.split(" "), ...(await run.args(all))];
      const options = { input: run.input?.(all) ?? "", env: run.env?.(all) ?? {} };
      waits.push(await longestWait(async () => void runs.push(await timed(command, options))));
      const { seconds = 0 } = runs.at(-1) ?? {};
      controls.push(await longestWait(() => runOthers(seconds)));
    }
    return {
      cpuMs: Math.min(...runs.map(({ cpuSeconds }) => cpuSeconds * 1_000)),
      blocks: Number.NaN,
      bytes: Number.NaN,
      waitMs: median(waits),
      controlMs: median(controls),
      memoryMb: Math.max(...runs.map(({ memoryMb }) => memoryMb)),
    };
  }

  return {
    tokens: tokens as readonly string[],
    costOf: (each: GrowthCase) => costOf(each).catch(failed),
    costOfMany: (requests: readonly GrowthRequest[]) => costOfMany(requests).catch(failed),
    costOfCommand: (...args: Parameters<typeof costOfCommand>) => costOfCommand(...args).catch(failed),
    /** What the second client waits while there is nothing else to do. */
    async control(): Promise<number> {
      const waits: number[] = [];
      while (waits.length < 30) waits.push(await longestWait(() => Bun.sleep(PAUSE_MS)));
      return median(waits);
    },
    async stop() {
      for (const each of [...Object.values(connections), second]) each.close();
      await statistics?.close();
      await server.stop();
      await receiver.close();
    },
  };
}

/** A failure is a figure, too: it fails the check. */
function failed(error: unknown): Cost {
  const failure = error instanceof Error ? error.message : String(error);
  return { cpuMs: NaN, blocks: NaN, bytes: NaN, waitMs: NaN, failure };
}
