import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { newQuota, type Quota, type Subject } from "../src/domain/rate-limit.ts";
import { DAY_MS, HOUR_MS } from "../src/text/time-units.ts";
import { intervalStart } from "../src/domain/usage-history.ts";
import type { Connection } from "../src/store/sqlite/connection.ts";
import { openDatabase } from "../src/store/sqlite/database.ts";
import { SQLITE_MIGRATIONS } from "../src/store/sql/migration-steps.ts";
import { openQuotaStore } from "../src/store/sqlite/quota-store.ts";

export const KEYS = 10_000;
export const DAYS = 400;
const HOURS = 24 * 8;
const PETS = 20_000;

export type AdminData = ReturnType<typeof fillAdminData>;

/**
 * Makes a data directory with 10,000 keys, all of which were used in every hour and on every day of the history, for
 * which sums take longest. It has 8 days of hours, because no page reads more.
 */
export function fillAdminData() {
  const directory = temporaryDirectory("bench-admin");
  const token = crypto.randomUUID();
  const tokenFile = join(directory, "token");
  writeFileSync(tokenFile, token, { mode: 0o600 });
  const connection = openDatabase(join(directory, "production.db"), {
    migrations: SQLITE_MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 262_144,
    busyTimeoutMs: 0,
    integers: "number",
  });
  const now = Date.now();
  connection.run("PRAGMA synchronous = OFF");
  fillHistory(connection, now);
  connection.transaction(() => {
    fillKeys(connection, now);
    fillPets(connection, now);
  });
  connection.value("PRAGMA wal_checkpoint(TRUNCATE)");
  connection.close();
  fillLimits(join(directory, "production-limits.db"), now);
  return { directory, tokenFile, token };
}

/** Fills SQLite with a history in which every key was used in every interval. */
function fillHistory(connection: Connection, now: number): void {
  const fill = (table: string, from: number, step: number, count: number) =>
    connection.run(`INSERT INTO ${table}
      ${numbers(count)}, k(key) AS (SELECT 1 UNION ALL SELECT key + 1 FROM k WHERE key < ${KEYS})
      SELECT ${from} + (i - 1) * ${step}, key, 990, key % 10, 0, 13, '{"listPets":[700,3],"createPet":[200,1],"getPet":[90,9]}' FROM n CROSS JOIN k`);
  connection.transaction(() => {
    fill("usage_days", intervalStart("day", now) - (DAYS - 1) * DAY_MS, DAY_MS, DAYS);
    fill("usage_hours", intervalStart("hour", now) - (HOURS - 1) * HOUR_MS, HOUR_MS, HOURS);
    connection.run(`INSERT INTO key_last_used ${numbers(KEYS)} SELECT i, ${now} FROM n`);
    connection.run("INSERT INTO deprecated_use SELECT 'getPet', key_id, last_used_at FROM key_last_used");
  });
}

/** A table `n` with the numbers from 1 to `count`. */
function numbers(count: number): string {
  return `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})`;
}

/** Fills in keys, each with an owner, labels, a secret and four entries in the audit trail, which are retained. */
function fillKeys(connection: Connection, now: number): void {
  const createdAt = now - 500 * 24 * HOUR_MS;
  connection.run(`INSERT INTO api_keys (name, plan, created_at, revoked_at, revision, owner, labels)
    ${numbers(KEYS)} SELECT 'Customer ' || i, CASE i % 3 WHEN 0 THEN 'free' WHEN 1 THEN 'pro' ELSE 'business' END,
      ${createdAt} + i * 60000, CASE WHEN i % 50 = 0 THEN ${now} END, i, 'owner' || i || '@example.com',
      '["team-' || (i % 40) || '","region-' || (i % 7) || '"]' FROM n`);
  connection.run(`INSERT INTO key_secrets (hash, key_id, hint, issued_at)
    ${numbers(KEYS)} SELECT lower(hex(randomblob(32))), i, 'pet_live_' || substr(hex(randomblob(2)), 1, 4) || '…' ||
      substr(hex(randomblob(2)), 1, 4), ${createdAt} FROM n`);
  connection.run(`UPDATE key_revision SET revision = ${KEYS}`);
  connection.run(`INSERT INTO audit (at, actor, actor_name, action, target_kind, target_id, values_before, values_after)
    ${numbers(4 * KEYS)} SELECT ${now} - (${4 * KEYS} - i) * 60000, 'console', '127.0.0.1', 'key.updated', 'key',
      1 + i % ${KEYS}, '{"plan":"free"}', '{"plan":"pro"}' FROM n`);
}

/** Fills in pets, a quarter of which were ordered. */
function fillPets(connection: Connection, now: number): void {
  connection.run(`INSERT INTO pets (name, category_id, status)
    ${numbers(PETS)} SELECT 'Pet ' || i, i % 100, CASE i % 2 WHEN 0 THEN 'available' ELSE 'sold' END FROM n`);
  connection.run(`INSERT INTO orders (pet_id, status, created_at, key_id)
    ${numbers(PETS / 4)} SELECT i, 'completed', ${now} - i * 1000, 1 + i % ${KEYS} FROM n`);
}

/** Fills in quotas. Every key has used its windows; one in a hundred is banned. */
function fillLimits(path: string, now: number): void {
  const store = openQuotaStore(path);
  const quotas = Array.from({ length: KEYS }, (_, i): readonly [Subject, Quota] => {
    const quota = newQuota();
    Object.assign(quota.minute, { openedAt: now, used: 7 });
    Object.assign(quota.day, { openedAt: now - HOUR_MS, used: 700 });
    if (i % 100 === 0)
      Object.assign(quota, { bannedAt: now, bannedUntil: intervalStart("hour", now) + 2 * HOUR_MS });
    return [{ kind: "key", id: i + 1 }, quota];
  });
  store.save(quotas);
  store.close();
}
