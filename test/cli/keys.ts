import type { Key } from "../../src/operator/operations.ts";
import { hashSecret } from "../../src/domain/api-keys.ts";
import { decide, newUsage, type Usage } from "../../src/domain/rate-limit.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { directoryAt } from "../data-directory.ts";
import type { InProcessCli } from "./cli.ts";

export const FREE_KEY = ["--name", "app", "--plan", "free"];

export const createKey = (cli: InProcessCli, ...argv: string[]) =>
  cli.json<{ id: number; key: string }>("keys", "create", ...(argv.length > 0 ? argv : FREE_KEY));

export const showKey = (cli: InProcessCli, id: number) => cli.json<Key>("keys", "show", String(id));

export const paths = ({ dataDir }: InProcessCli) => directoryAt(dataDir).files;

/** The stores that the commands work on, opened for the duration of `work`. */
export async function withStores<T>(
  cli: InProcessCli,
  work: (stores: SqliteStores) => T | Promise<T>,
): Promise<T> {
  const stores = openSqlite(paths(cli).store);
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** Undefined when the database does not have the secret. */
export const findCredential = (cli: InProcessCli, secret: string) =>
  withStores(cli, async ({ keys }) => keys.findCredential(hashSecret(secret)));

/** Writes the usage of a key as a server does. */
export function saveUsage(cli: InProcessCli, id: number, usage: Usage): void {
  const usageStore = openUsageStore(paths(cli).usageStore);
  usageStore.save([[{ kind: "key", id }, usage]]);
  usageStore.close();
}

/** With a limit of one, a millisecond apart: the first is allowed, and each from the third on is a strike. */
export function sendRequests(
  cli: InProcessCli,
  id: number,
  { requests = 4, strikesToBan = 2, usage = newUsage() },
): void {
  const rules = { strikes: strikesToBan, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
  for (let i = 0; i < requests; i++) {
    cli.clock.advance(1);
    decide(usage, { perMinute: 1, perDay: 1 }, cli.clock.now(), rules);
  }
  saveUsage(cli, id, usage);
}
