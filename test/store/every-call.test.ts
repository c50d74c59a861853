import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { fillAllStatements, SQLITE_NUMBERS } from "../../bench/skewed-rows.ts";
import type { Stores } from "../../src/domain/ports/stores.ts";
import { CommitQueue, type WriteOptions } from "../../src/store/sqlite/commit-queue.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { openSqlite } from "../../src/store/sqlite/open-sqlite.ts";
import { bytesRead } from "../../trials/harness/processes.ts";
import { callAll, growingRows } from "../conformance/every-call.ts";
import { PortCalls, STORE_PORTS } from "../conformance/port-calls.ts";
import { disposableDirectory } from "../disposable-directory.ts";

/* What every call of the stores reads, and what its writes wait for, on the connections of the real stores. */

const PAGE_BYTES = 4_096;
const NOW = Date.parse("2026-11-15T12:00:00Z");

/** Fills the tables of a new database. */
function fill(path: string, times: number): void {
  using database = new Database(path);
  database.run("PRAGMA foreign_keys = OFF");
  database.run("PRAGMA synchronous = OFF");
  const counts = growingRows(times);
  for (const statement of [
    ...fillAllStatements(counts, SQLITE_NUMBERS, NOW),
    `INSERT INTO attempts (operation, key_id, idempotency_key, fingerprint, created_at, resource_id, body)
      SELECT 'createPet', 1, 'k' || n, 'f', ${NOW}, n, '{}' FROM ${SQLITE_NUMBERS(counts.pets)}`,
    `UPDATE pet_revision SET recent_after = ${counts.pets}`,
  ])
    database.run(statement);
}

interface Calls {
  /** The pages of the file that each call read at most, by its name, such as `ClientStore.getPet`. */
  readonly pages: ReadonlyMap<string, number>;
  /** The tables that are written, and those that are also written without a wait for the disk. */
  readonly written: ReadonlySet<string>;
  readonly unsynced: ReadonlySet<string>;
  readonly missing: readonly string[];
}

/** Calls everything on stores whose connections remember few pages, so that what is read again counts again. */
async function calledOn(times: number): Promise<Calls> {
  using directory = disposableDirectory();
  const path = directory.path("store.db");
  await openSqlite(path).close();
  fill(path, times);
  const pages = new Map<string, number>();
  const written = new Set<string>();
  const unsynced = new Set<string>();
  let waitsForDisk = false;
  const known = new WeakSet<Connection>();
  const { prepared } = Connection.prototype;
  Connection.prototype.prepared = function <Row>(this: Connection, sql: string) {
    // What a checkpoint reads is not what a call reads.
    if (!known.has(this)) this.exec("PRAGMA cache_size = 24; PRAGMA wal_autocheckpoint = 0");
    known.add(this);
    const [, table] = /^\s*(?:INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM) (\w+)/.exec(sql) ?? [];
    if (table) written.add(table);
    if (table && !waitsForDisk) unsynced.add(table);
    return prepared.call<Connection, [string], ReturnType<typeof prepared<Row>>>(this, sql);
  };
  const { transaction } = Connection.prototype;
  Connection.prototype.transaction = function <T>(this: Connection, work: () => T) {
    try {
      return transaction.call<Connection, [() => T], T>(this, work);
    } finally {
      waitsForDisk = false;
    }
  };
  const { submit } = CommitQueue.prototype;
  CommitQueue.prototype.submit = function <T>(this: CommitQueue, work: () => T, options: WriteOptions = {}) {
    const observed = () => {
      waitsForDisk ||= options.waitsForDisk ?? true;
      return work();
    };
    return submit.call<CommitQueue, [() => T, WriteOptions], Promise<T>>(this, observed, options);
  };
  try {
    const calls = new PortCalls();
    const stores = openSqlite(path, { server: {} });
    await callAll(measured(calls.recordedStores(stores), pages));
    await stores.close();
    return { pages, written, unsynced, missing: calls.missing(STORE_PORTS.values()) };
  } finally {
    Connection.prototype.prepared = prepared;
    Connection.prototype.transaction = transaction;
    CommitQueue.prototype.submit = submit;
  }
}

/** The same stores. Each call is measured; they come one after the other. */
function measured<T extends Stores>(stores: T, pages: Map<string, number>): T {
  const measuredStore = ([name, port]: readonly [string, string]) => {
    const store: object = Object(Reflect.get(stores, name));
    const proxy = new Proxy(store, {
      get(target, method) {
        const value: unknown = Reflect.get(target, method);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          const before = bytesRead(process.pid);
          const note = () => {
            const call = `${port}.${String(method)}`;
            const read = Math.floor((bytesRead(process.pid) - before) / PAGE_BYTES);
            pages.set(call, Math.max(read, pages.get(call) ?? 0));
          };
          const result: unknown = Reflect.apply(value, target, given);
          if (!(result instanceof Promise)) {
            note();
            return result;
          }
          return result.finally(note);
        };
      },
    });
    return [name, proxy];
  };
  return { ...stores, ...Object.fromEntries([...STORE_PORTS].map(measuredStore)) };
}

// The first run loads code, which counts as read, too.
await calledOn(0.01);
const few = await calledOn(1);
const many = await calledOn(4);

test("every method of the stores is called", () => {
  expect(many.missing).toEqual([]);
});

/** The calls that read more when there are more rows, and of what. */
const READS_MORE: Readonly<Record<string, string>> = {
  "KeyStore.changesSince": "the keys that have changed since, here all of them",
  "KeyStore.listKeys": "all keys once, to sort and filter them",
  "PolicyStore.countKeys": "all keys once, to count those of each plan",
};

/** What an index that is a level deeper costs a write, which changes up to ten of them. */
const DEEPER_PAGES = 32;

test("with four times as many rows, no call reads twice as much, but for those that say so", () => {
  const grown = [...many.pages].filter(
    ([call, pages]) => pages > 1.5 * (few.pages.get(call) ?? 0) + DEEPER_PAGES,
  );
  expect(grown.map(([call]) => call).toSorted()).toEqual(Object.keys(READS_MORE).toSorted());
});

/** The tables whose last rows a power failure may undo: counts, and what servers share. */
const NOT_WAITED_FOR = [
  "deprecated_use",
  "key_last_used",
  "server_questions",
  "servers",
  "usage_batches",
  "usage_days",
  "usage_hours",
];

test("every write of a server is one of its commit queue and waits for the disk, but for counts and what servers share", () => {
  expect(many.written.size).toBeGreaterThan(20);
  expect([...many.unsynced].toSorted()).toEqual(NOT_WAITED_FOR);
});
