/*
 * The figures in the comments of src/usage-history and in bench/results.md: `npx bun bench/usage-history.ts`, some
 * minutes. It fills SQLite and PostgreSQL with the history of 10,000 keys, all of which are used in every interval:
 * 400 days, and 48 of the 840 hours, because a sum reads 24 of them however many there are.
 */
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import { temporaryFolder } from "../harness/cleanup.ts";
import { postgresUrl } from "../harness/postgres.ts";
import { createClock } from "../src/clock.ts";
import type { UsageHistoryStore } from "../src/domain/ports.ts";
import { HOUR_MS, type KeyCounts, startOf, type UsageBatch } from "../src/domain/usage-history.ts";
import type { RequestRecord } from "../src/observe/request-record.ts";
import { openPostgres } from "../src/store/postgres/store.ts";
import { FILL_SUMS } from "../src/store/postgres/usage-history.ts";
import { openDatabase } from "../src/store/sqlite/database.ts";
import { MIGRATIONS } from "../src/store/sqlite/migrations.ts";
import { openSqlite } from "../src/store/sqlite/store.ts";
import { UsageRecorder } from "../src/observe/usage-history.ts";
import { fillHistory, OPERATIONS_JSON } from "./usage-data.ts";

const { values } = parseArgs({
  options: {
    keys: { type: "string", default: "10000" },
    days: { type: "string", default: "400" },
    hours: { type: "string", default: "48" },
    engines: { type: "string", default: "sqlite,postgres" },
  },
});
const keys = Number(values.keys);
const days = Number(values.days);
const hours = Number(values.hours);
const DAY_MS = 24 * HOUR_MS;
const now = Date.now();
const today = startOf("day", now);
const thisHour = startOf("hour", now);

/** The median, the first and the slowest of a few calls, and the processor time of this process, in milliseconds. */
async function measure(title: string, work: () => unknown, rounds = 9): Promise<void> {
  const times: number[] = [];
  const before = process.cpuUsage();
  for (let round = 0; round < rounds; round++) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  const { user, system } = process.cpuUsage(before);
  const cpu = (user + system) / 1_000 / rounds;
  const sorted = times.toSorted((a, b) => a - b);
  const [median, first, slowest] = [sorted[rounds >> 1], times[0], sorted.at(-1)].map((ms) => ms?.toFixed(1));
  console.log(`  ${title}: ${median} ms (first ${first}, slowest ${slowest}; processor ${cpu.toFixed(1)})`);
}

async function measureReads(history: UsageHistoryStore): Promise<void> {
  const month = { by: "day", since: now - 29 * DAY_MS, until: now } as const;
  const day = { by: "hour", since: now - 23 * HOUR_MS, until: now } as const;
  await measure("totals per key of the last 30 days, 100 keys", () =>
    history.usageByKey({ ...month, limit: 100 }),
  );
  await measure("top 20 keys of the last 24 hours", () => history.usageByKey({ ...day, limit: 20 }));
  await measure("today's totals of all keys", () =>
    history.usageByKey({ by: "day", since: now, until: now }),
  );
  await measure("one key, 30 days by day", () => history.readUsage({ keyId: 77, ...month }));
  await measure("one key, 48 hours by hour", () =>
    history.readUsage({ keyId: 77, ...day, since: now - 2 * DAY_MS }),
  );
}

let sequence = 0;
const batchOf = (keyIds: readonly number[]): UsageBatch => ({
  writer: "bench",
  sequence: ++sequence,
  hour: thisHour,
  keys: keyIds.map((keyId): KeyCounts => ({
    keyId,
    admitted: 20,
    limited: 1,
    banned: 0,
    errors: 1,
    lastUsedAt: now,
    byOperation: [
      { operation: "listPets", admitted: 15, errors: 0 },
      { operation: "createPet", admitted: 5, errors: 1 },
    ],
  })),
});

/** What a server adds every two seconds, in batches of 50 keys. */
async function measureWrites(history: UsageHistoryStore): Promise<void> {
  for (const active of [1, 100, 1_000]) {
    const step = Math.floor(keys / active);
    const keyIds = Array.from({ length: active }, (_, i) => 1 + i * step);
    await measure(`add the counts of ${active} keys`, async () => {
      for (let from = 0; from < active; from += 50) {
        await history.addUsage(batchOf(keyIds.slice(from, from + 50)));
      }
    });
  }
}

function measureObserver(): void {
  const store = { addUsage: async () => {}, deleteOldUsage: async () => false };
  const recorder = new UsageRecorder({ store, clock: createClock(), onFailure() {}, onRecovery() {} });
  const records = Array.from({ length: 1_000 }, (_, i) => {
    const record = { principal: { keyId: i }, decision: { outcome: "allowed" }, operation: "listPets" };
    return record as unknown as RequestRecord;
  });
  const response = { status: 200, headerLines: "", body: null } as const;
  for (const distinct of [1, 1_000]) {
    const times: number[] = [];
    for (let round = 0; round < 9; round++) {
      const before = process.cpuUsage();
      for (let i = 0; i < 1_000_000; i++) recorder.observe(records[i % distinct] as RequestRecord, response);
      const { user, system } = process.cpuUsage(before);
      times.push((user + system) / 1_000);
    }
    console.log(`observer, ${distinct} keys: ${times.toSorted((a, b) => a - b)[4]?.toFixed(0)} ns a request`);
  }
}

async function benchSqlite(): Promise<void> {
  const folder = temporaryFolder("bench-usage");
  const path = `${folder}/store.db`;
  const connection = openDatabase(path, {
    migrations: MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 65_536,
    busyTimeoutMs: 0,
  });
  fillHistory(connection, { keys, days, hours, now });
  connection.close();
  console.log(`SQLite, ${(Bun.file(path).size / 1e6).toFixed(0)} MB`);
  const { usageHistory, close } = openSqlite(path);
  await measureReads(usageHistory);
  await measureWrites(usageHistory);
  await close();
  rmSync(folder, { recursive: true });
}

async function benchPostgres(): Promise<void> {
  const url = await postgresUrl();
  const { usageHistory, close } = await openPostgres(url);
  const sql = new SQL(url, { max: 1 });
  const fill = (table: string, from: number, step: number, count: number) =>
    sql.unsafe(`INSERT INTO ${table} SELECT ${from} + i::bigint * ${step}, key, 990, key % 10, 0, 13, '${OPERATIONS_JSON}'
      FROM generate_series(0, ${count - 1}) AS i CROSS JOIN generate_series(1, ${keys}) AS key`);
  await fill("usage_days", today - (days - 1) * DAY_MS, DAY_MS, days);
  await fill("usage_hours", thisHour - (hours - 1) * HOUR_MS, HOUR_MS, hours);
  for (const statement of FILL_SUMS) await sql.unsafe(statement);
  await sql.unsafe(`INSERT INTO key_last_used SELECT key, ${now} FROM generate_series(1, ${keys}) AS key`);
  await sql.unsafe("ANALYZE usage_days, usage_hours, usage_sums, key_last_used");
  console.log("PostgreSQL");
  await measureReads(usageHistory);
  await measureWrites(usageHistory);
  await sql.close();
  await close();
}

measureObserver();
if (values.engines.includes("sqlite")) await benchSqlite();
if (values.engines.includes("postgres")) await benchPostgres();
process.exit(0);
