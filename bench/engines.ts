/**
 * What PostgreSQL and Valkey cost, against SQLite and rate limits in the server's memory:
 * `npm run bench:engines [-- --docs] [-- --rounds N]`. In each round every server is measured once. On a machine with
 * two cores the databases and the load share them with the server; the table says so.
 */
import { createPet, PET_BODY } from "../trials/harness/api-client.ts";
import { temporaryFolder } from "../trials/harness/cleanup.ts";
import { integerIn, parseFlags, runCommand } from "../trials/harness/command-line.ts";
import { describeMachine } from "../trials/harness/machine.ts";
import { createKey, startPetstore } from "../trials/harness/petstore.ts";
import { postgresUrl } from "../trials/harness/postgres.ts";
import { median, ratioOf } from "../trials/harness/statistics.ts";
import { formatCount, publish, type Table } from "../trials/harness/table.ts";
import { valkeyUrl } from "../trials/harness/valkey.ts";
import { loadWith, requireWrk } from "../trials/harness/wrk.ts";

const PETS = 1_000;
const SECONDS = 3;
const CONNECTIONS = 64;

interface Setup {
  readonly name: string;
  readonly url: string;
  readonly key: string;
  readonly lists: number[];
  readonly creates: number[];
}

async function startSetup(name: string, flags: readonly string[]): Promise<Setup> {
  const storage = ["--data", temporaryFolder("bench-engines"), ...flags];
  const { key } = await createKey(storage);
  const { url } = await startPetstore([...storage, "--port", "0"]);
  for (let created = 0; created < PETS; created += 100) {
    await Promise.all(Array.from({ length: 100 }, () => createPet(url, key)));
  }
  return { name, url, key, lists: [], creates: [] };
}

function tableOf(setups: readonly Setup[], rounds: number): Table {
  const [embedded] = setups;
  const { cores, cpu, kernel } = describeMachine();
  const cells = (own: readonly number[], baseline: readonly number[] = []) => [
    formatCount(median(own)),
    ratioOf(own, baseline).median.toFixed(2),
  ];
  return {
    title: "PostgreSQL and Valkey",
    note: `${rounds} rounds of ${SECONDS} s, ${CONNECTIONS} connections, medians; server, databases and load share ${cores} cores (${cpu}, Linux ${kernel}, Bun ${Bun.version}). PostgreSQL runs with fsync off, as in the tests; SQLite with synchronous=FULL.`,
    header: ["data, rate limits", "list/s", "× embedded", "create/s", "× embedded"],
    rows: setups.map(({ name, lists, creates }) => [
      name,
      ...cells(lists, embedded?.lists),
      ...cells(creates, embedded?.creates),
    ]),
  };
}

const postgres = async () => ["--database-url", await postgresUrl()];
const valkey = async () => ["--limits-url", await valkeyUrl()];

await runCommand("bench:engines", async (args) => {
  const flags = parseFlags(args, {
    docs: { type: "boolean", default: false },
    rounds: { type: "string", default: "5" },
  });
  const rounds = integerIn("--rounds", flags.rounds, 50);
  requireWrk();
  const setups = [
    await startSetup("SQLite, in process", []),
    await startSetup("SQLite, Valkey", await valkey()),
    await startSetup("PostgreSQL, in process", await postgres()),
    await startSetup("PostgreSQL, Valkey", [...(await postgres()), ...(await valkey())]),
  ];
  // Round 0 is the warm-up.
  for (let round = 0; round <= rounds; round++) {
    for (const { name, url, key, lists, creates } of setups) {
      const load = { url: `${url}/pets`, key, connections: CONNECTIONS, seconds: SECONDS };
      const [listed, created] = [await loadWith(load), await loadWith({ ...load, body: PET_BODY })];
      if (round === 0) continue;
      lists.push(listed.requests / (listed.micros / 1e6));
      creates.push(created.requests / (created.micros / 1e6));
      process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
    }
  }
  return publish({ tables: [tableOf(setups, rounds)], section: "engines" }, flags);
});
