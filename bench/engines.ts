import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { postgresUrl } from "../test/engines/postgres.ts";
import { valkeyUrl } from "../test/engines/valkey.ts";
import { command, type Running, serve } from "../test/process.ts";
import { describeMachine } from "./machine.ts";
import { ratioOf, spreadOf } from "./statistics.ts";
import { markdownTable, plainTable, type Table } from "./table.ts";

/**
 * What the engines for several machines cost against the embedded ones: `npm run bench:engines [-- --docs]`.
 * Every server is asked in each round, one after the other. On a machine with two cores the engines and the load
 * share them with the server, which is the hardest case for them; the table says so.
 */
const ANIMALS = 1_000;
const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 64;
const LIMITS = ["--per-minute", "1000000000", "--per-day", "1000000000"];

interface Contestant {
  readonly name: string;
  readonly server: Running;
  readonly key: string;
  readonly lists: number[];
  readonly creates: number[];
}

async function contestant(name: string, flags: readonly string[]): Promise<Contestant> {
  const folder = mkdtempSync(join(tmpdir(), "petstore-bench-"));
  folders.push(folder);
  const place = ["--data", folder, ...flags];
  const made = await command(
    "keys",
    "create",
    "--name",
    "bench",
    "--plan",
    "enterprise",
    ...LIMITS,
    ...place,
    "--json",
  );
  if (made.code !== 0) throw new Error(made.err);
  const { key } = JSON.parse(made.out) as { key: string };
  const server = await serve(folder, flags);
  for (let sent = 0; sent < ANIMALS; sent += 100) {
    await Promise.all(Array.from({ length: 100 }, () => create(server.url, key)));
  }
  return { name, server, key, lists: [], creates: [] };
}

async function create(url: string, key: string): Promise<void> {
  const { status } = await fetch(`${url}/pets`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: '{"name":"Rex","categoryId":7,"status":"available"}',
  });
  if (status !== 201) throw new Error(`a create was answered ${status}`);
}

const CREATE_SCRIPT = `wrk.method = "POST"
wrk.body = '{"name":"Rex","categoryId":7,"status":"available"}'
wrk.headers["Content-Type"] = "application/json"
`;

/** Requests a second; fails when any answer was not a success. */
async function load({ server, key }: Contestant, script: string | undefined): Promise<number> {
  const flags = ["-t1", `-c${CONNECTIONS}`, `-d${SECONDS}s`, "-H", `Authorization: Bearer ${key}`];
  const scripted = script === undefined ? [] : ["-s", script];
  const wrk = Bun.spawn(["wrk", ...flags, ...scripted, `${server.url}/pets`], { stdout: "pipe" });
  const output = await new Response(wrk.stdout).text();
  const failed = /Non-2xx[^\n]*|Socket errors[^\n]*/.exec(output)?.[0];
  if (failed !== undefined) throw new Error(`${server.url}: ${failed}`);
  return Number(/Requests\/sec:\s+([\d.]+)/.exec(output)?.[1]);
}

function tableOf(contestants: readonly Contestant[]): Table {
  const [embedded] = contestants;
  const machine = describeMachine();
  const figure = (values: readonly number[]) => Math.round(spreadOf(values).median).toLocaleString("en-US");
  const ratio = (ours: readonly number[], theirs: readonly number[]) =>
    ratioOf(ours, theirs).median.toFixed(2);
  return {
    title: "What shared engines cost",
    note: `${ROUNDS} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians; server, engines and load share ${machine.cores} cores (${machine.cpu}, Linux ${machine.kernel}, Bun ${Bun.version}). PostgreSQL runs with fsync off, as in the tests; SQLite with synchronous=FULL.`,
    header: ["engines", "list/s", "× embedded", "create/s", "× embedded"],
    rows: contestants.map(({ name, lists, creates }) => [
      name,
      figure(lists),
      ratio(lists, embedded?.lists ?? []),
      figure(creates),
      ratio(creates, embedded?.creates ?? []),
    ]),
  };
}

const BEGIN = "<!-- engines: written by `npm run bench:engines -- --docs` -->";
const END = "<!-- end of engines -->";

function publish(table: Table): void {
  const page = new URL("../docs/performance.md", import.meta.url);
  const text = readFileSync(page, "utf8");
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined)
    throw new Error("docs/performance.md lacks the marks of this table");
  writeFileSync(page, `${before}${BEGIN}\n\n${markdownTable(table)}\n${END}${after}`);
  Bun.spawnSync([process.execPath, "fmt", page.pathname]);
}

const folders: string[] = [];
if (Bun.which("wrk") === null) {
  console.error("bench:engines needs wrk: apt-get install wrk");
  process.exit(2);
}
const script = join(mkdtempSync(join(tmpdir(), "petstore-bench-")), "create.lua");
writeFileSync(script, CREATE_SCRIPT);
const contestants: Contestant[] = [];
try {
  contestants.push(await contestant("SQLite, in process", []));
  contestants.push(await contestant("SQLite, Valkey", ["--limits-url", await valkeyUrl()]));
  contestants.push(await contestant("PostgreSQL, in process", ["--database-url", await postgresUrl()]));
  const both = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
  contestants.push(await contestant("PostgreSQL, Valkey", both));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const one of contestants) {
      const [lists, creates] = [await load(one, undefined), await load(one, script)];
      // The first round warms up.
      if (round === 0) continue;
      one.lists.push(lists);
      one.creates.push(creates);
      console.error(`round ${round} of ${ROUNDS}: ${one.name}`);
    }
  }
  const table = tableOf(contestants);
  console.log(plainTable(table));
  if (process.argv.includes("--docs")) publish(table);
} finally {
  for (const { server } of contestants) await server.stop();
  for (const folder of folders) rmSync(folder, { recursive: true });
}
process.exit(0);
