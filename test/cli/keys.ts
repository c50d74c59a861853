import type { Key } from "../../src/operator/operations.ts";
import { hashSecret } from "../../src/domain/secrets.ts";
import { decide, newQuota, type Quota } from "../../src/domain/rate-limit.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/open-sqlite.ts";
import { openQuotaStore } from "../../src/store/sqlite/quota-store.ts";
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
  const stores = openSqlite(paths(cli).database);
  try {
    return await work(stores);
  } finally {
    await stores.close();
  }
}

/** Undefined when the database does not have the secret. */
export const findCredential = (cli: InProcessCli, secret: string) =>
  withStores(cli, async ({ keys }) => keys.findCredential(hashSecret(secret)));

/** Writes the quota of a key as a server does. */
export function saveQuota(cli: InProcessCli, id: number, quota: Quota): void {
  const quotaStore = openQuotaStore(paths(cli).quotas);
  quotaStore.save([[{ kind: "key", id }, quota]]);
  quotaStore.close();
}

/** With a limit of one, a millisecond apart: the first is allowed, and each from the third on is a strike. */
export function sendRequests(
  cli: InProcessCli,
  id: number,
  { requests = 4, strikesToBan = 2, quota = newQuota() },
): void {
  const rules = { strikes: strikesToBan, graceMs: 0, lengthMs: 300_000, maxLengthMs: 300_000 };
  for (let i = 0; i < requests; i++) {
    cli.clock.advance(1);
    decide(quota, { perMinute: 1, perDay: 1 }, cli.clock.now(), rules);
  }
  saveQuota(cli, id, quota);
}
