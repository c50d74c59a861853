import type { SQL } from "bun";
import { PRIMARY_TIMELINE } from "../../domain/stored-values.ts";
import { parseTimeline, type Timeline, UNKNOWN_TIMELINE } from "../../domain/timeline.ts";

/**
 * The number of the server's timeline, which is the first eight hexadecimal digits in the names of its log files.
 */
const NUMBER = "('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4";
const STORED = `SELECT value FROM server_settings WHERE name = '${PRIMARY_TIMELINE}'`;

/** The number and the stored mark as text, which differs as soon as another server has taken over. */
export const TIMELINE = `${NUMBER} || ' ' || coalesce((${STORED}), '')`;

/** The mark of an earlier timeline was replicated from its primary. */
const STORE = `INSERT INTO server_settings AS stored (name, value) VALUES ('${PRIMARY_TIMELINE}', ${NUMBER} || ' ' || $1::text)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value
  WHERE split_part(stored.value, ' ', 1) <> split_part(excluded.value, ' ', 1)`;

/** The number of the timeline of a server that accepts writes, and 0 for a standby. */
export async function readPromotion(sql: SQL): Promise<number> {
  const [{ number }] = await sql.unsafe<[{ number: number }]>(
    `SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE ${NUMBER} END AS number`,
  );
  return number;
}

/** Each server reports itself once a second. No standby has these reports, since the table is not replicated. */
const RECENT_REPORT_MS = 3_000;

/** Whether servers have reported themselves within the last seconds, so that this server is the primary for them. */
export async function hasRecentReport(sql: SQL): Promise<boolean> {
  const [{ hasTable }] = await sql<[{ hasTable: boolean }]>`
    SELECT to_regclass('servers') IS NOT NULL AS "hasTable"`;
  if (!hasTable) return false;
  const reports = await sql`
    SELECT FROM servers
    WHERE abs(extract(epoch FROM clock_timestamp()) * 1000 - reported_at) < ${RECENT_REPORT_MS} LIMIT 1`;
  return reports.length > 0;
}

export interface FoundTimeline {
  readonly timeline: Timeline;
  /** Whether the database has the table in which the mark is stored. */
  readonly hasTable: boolean;
  /** The time when the server started, which two names of one server have in common. */
  readonly startedAt: string;
}

/** Reads the timeline of a server that accepts writes. */
export async function readTimeline(sql: SQL): Promise<FoundTimeline> {
  const [server] = await sql.unsafe<[{ number: number; hasTable: boolean; startedAt: string }]>(
    `SELECT ${NUMBER} AS number, to_regclass('server_settings') IS NOT NULL AS "hasTable",
      pg_postmaster_start_time()::text AS "startedAt"`,
  );
  const { number, hasTable, startedAt } = server;
  const stored = hasTable ? await readStored(sql) : UNKNOWN_TIMELINE;
  const mark = stored.number === number ? stored.mark : "";
  return { timeline: { number, mark }, hasTable, startedAt };
}

/**
 * Stores the mark unless the timeline has one, and returns the timeline with the stored mark. The commit waits for no
 * standby, because a standby that is promoted begins another timeline.
 */
export async function storeMark(sql: SQL, mark: string): Promise<Timeline> {
  await sql.begin(async (tx) => {
    await tx.unsafe("SET LOCAL synchronous_commit = local");
    await tx.unsafe(STORE, [mark]);
  });
  return readStored(sql);
}

async function readStored(sql: SQL): Promise<Timeline> {
  const [row]: { value: string }[] = await sql.unsafe(STORED);
  return row === undefined ? UNKNOWN_TIMELINE : parseTimeline(row.value);
}
