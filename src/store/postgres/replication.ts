import type { SQL } from "bun";

/** What commits wait for, and what there is of it. */
export interface Replication {
  /** The setting `synchronous_standby_names`. */
  readonly synchronousStandbyNames: string;
  /** Whether commits wait for the standbys that it names. */
  readonly waitsForStandbys: boolean;
  /** The names of the standbys that are connected. */
  readonly connectedStandbys: readonly string[];
  /** The number of sessions of this user whose commit has waited for a standby for long. */
  readonly waitingCommits: number;
}

/** How long a commit waits for a standby before that counts as an outage. With one that works it takes milliseconds. */
const LONG_WAIT = "0.5 seconds";

/** Every role may read this. Of the sessions of other roles it sees no more than that they exist. */
export async function readReplication(sql: SQL): Promise<Replication> {
  const [row] = await sql.unsafe<[Replication]>(
    `SELECT current_setting('synchronous_standby_names') AS "synchronousStandbyNames",
      current_setting('synchronous_commit') NOT IN ('off', 'local')
        AND current_setting('synchronous_standby_names') <> '' AS "waitsForStandbys",
      ARRAY(SELECT application_name FROM pg_stat_replication ORDER BY 1)::text[] AS "connectedStandbys",
      (SELECT count(*)::int FROM pg_stat_activity
        WHERE wait_event = 'SyncRep' AND query_start < clock_timestamp() - interval '${LONG_WAIT}'
      ) AS "waitingCommits"`,
  );
  return row;
}

export interface RequiredStandbys {
  /** How many standbys a commit waits for. */
  readonly needed: number;
  /** How many of the connected ones it may be. */
  readonly candidates: number;
}

/** Reads `synchronous_standby_names`, such as `ANY 1 (a, b)`, `FIRST 2 (a, b, c)`, `2 (a, b)`, `a, b` or `*`. */
export function requiredStandbys({
  synchronousStandbyNames: setting,
  waitsForStandbys,
  connectedStandbys,
}: Replication): RequiredStandbys {
  if (!waitsForStandbys) return { needed: 0, candidates: 0 };
  const [, count = "1", inParentheses] = /^\s*(?:[a-z]+\s+)?(\d+)\s*\((.*)\)\s*$/is.exec(setting) ?? [];
  const names = new Set(
    [...(inParentheses ?? setting).matchAll(/"((?:[^"]|"")*)"|[^\s,"]+/g)].map(([name, quoted]) =>
      (quoted?.replaceAll('""', '"') ?? name).toLowerCase(),
    ),
  );
  // Names are compared without regard to case.
  const isNamed = (standby: string) => names.has("*") || names.has(standby.toLowerCase());
  return { needed: Number(count), candidates: connectedStandbys.filter(isNamed).length };
}
