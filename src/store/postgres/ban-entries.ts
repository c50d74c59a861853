import type { ReservedSQL } from "bun";
import type { AuditEntry } from "../../domain/audit.ts";
import { banEntry } from "../../domain/key-entries.ts";
import type { PlanName } from "../../domain/plans.ts";
import type { Ban } from "../../domain/rate-limit.ts";
import { addAudit } from "../audit.ts";
import { runAll } from "./dialect.ts";
import { LOCK_SPACE } from "./locks.ts";

interface BanOfKey {
  readonly keyId: number;
  readonly ban: Ban;
}

export interface RecordedBan extends BanOfKey {
  readonly entry: AuditEntry;
}

/** The lock of the trigger lock_audit_ids, which every transaction that adds an entry holds until its commit. */
const LOCK_AUDIT = `SELECT pg_try_advisory_xact_lock(${LOCK_SPACE}, 'audit'::regclass::oid::int) AS locked`;
const SELECT_KEYS = `SELECT id, name, owner, plan FROM api_keys WHERE id = ANY (string_to_array($1, ',')::int8[])`;

/**
 * Adds the audit entries of bans, in the transaction that decides them. Returns undefined if another transaction that
 * adds an entry has not ended: its commit may wait for a standby that is away, and this one holds locks that all
 * servers need.
 */
export async function recordBans(
  sql: ReservedSQL,
  bans: readonly BanOfKey[],
  server: string,
): Promise<readonly RecordedBan[] | undefined> {
  if (bans.length === 0) return [];
  const ids = bans.map(({ keyId }) => keyId).join(",");
  const [[lock], keys] = await Promise.all([
    sql.unsafe<{ locked: boolean }[]>(LOCK_AUDIT, []),
    sql.unsafe<{ id: bigint; name: string; owner: string | null; plan: PlanName }[]>(SELECT_KEYS, [ids]),
  ]);
  if (lock?.locked !== true) return undefined;
  return Promise.all(
    bans.map(async ({ keyId, ban }) => {
      const key = keys.find(({ id }) => Number(id) === keyId);
      const by = { at: ban.bannedAt, actor: { kind: "server", name: server } } as const;
      const named = key && {
        name: key.name,
        plan: key.plan,
        ...(key.owner !== null && { owner: key.owner }),
      };
      const entry = banEntry(keyId, named, { ...by, bannedUntil: ban.bannedUntil });
      return { keyId, ban, entry: await runAll(sql, () => addAudit(entry)) };
    }),
  );
}
