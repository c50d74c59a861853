/*
 * Who uses the tables of an environment. A process that writes to them holds a lock of the environment together with
 * the others, from before its first statement until after its last. Who replaces the tables holds it alone.
 *
 * A lock ends with its session, as when the primary fails, and releases before 2.0 take none. So sessions are counted,
 * too: at first, and again once nobody can use the tables until they are replaced (`lockTables`).
 */

import type { SQL } from "bun";
import { repeat } from "../../runtime/repeat.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { COMMAND_TIMEOUT_MS, connect, sessionPrefix } from "./connection.ts";
import { isLocked } from "./errors.ts";
import { LOCK_SPACE, pollUntil } from "./locks.ts";
import type { Primary } from "./primary.ts";

/** How long to wait for sessions to end. The session of a process that was killed ends when its last statement does. */
export const SESSION_END_MS = 3_000;
/** How long the sessions of this process may take to end once it has closed them. Meanwhile nobody uses the tables. */
const OWN_SESSION_END_MS = 500;
/** How often a process that has lost the lock tries to take it again. */
const RETAKE_MS = 1_000;

/** Other processes use the tables. The number of their sessions is 0 if one of them replaces the tables. */
export class EnvironmentInUse extends Error {
  constructor(readonly sessions: number) {
    super("other processes use the tables");
  }
}

/** The schema in which tables are made that replace those of an environment. */
export const unpublishedSchema = (schema: string): string => `${schema}_copy`;

type Mode = "shared" | "alone";

/** A session that holds the lock. */
interface Holder extends AsyncDisposable {
  readonly sql: SQL;
  readonly url: string;
  isHeld: boolean;
}

/** Opens a session, and takes the lock in it if that becomes free in time. */
async function openHolder(url: string, schema: string, mode: Mode): Promise<Holder> {
  // Who replaces the tables is not counted among those who use them.
  const name = mode === "alone" ? unpublishedSchema(schema) : schema;
  const sql = connect(url, { schema: name, onClose: () => (holder.isHeld = false) });
  const close = () => sql.close({ timeout: 0 });
  const holder: Holder = { sql, url, isHeld: false, [Symbol.asyncDispose]: close };
  const call = mode === "alone" ? "pg_try_advisory_lock" : "pg_try_advisory_lock_shared";
  const tryTake = async () => {
    const [row]: { locked: boolean }[] = await sql.unsafe(
      `SELECT ${call}(hashtextextended($1, ${LOCK_SPACE})) AS locked`,
      [schema],
    );
    return row?.locked === true;
  };
  try {
    const taken = pollUntil(true, SESSION_END_MS, tryTake);
    holder.isHeld = await withTimeout(SESSION_END_MS + COMMAND_TIMEOUT_MS, taken);
    return holder;
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * Holds the lock together with other processes. After its session was lost, it is taken again on the primary of then.
 * If another process replaces the tables meanwhile, that one finds the sessions of this one, and gives up.
 */
export async function shareEnvironment(
  primary: Pick<Primary, "url">,
  schema: string,
): Promise<AsyncDisposable> {
  const open = async () => openHolder(primary.url, schema, "shared");
  let holder = await open();
  if (!holder.isHeld) {
    await holder[Symbol.asyncDispose]();
    throw new Error("petstore restore is replacing its tables; run this again when that is done");
  }
  const keeping = repeat(RETAKE_MS, async () => {
    if (holder.isHeld && holder.url === primary.url) return RETAKE_MS;
    const next = await open().catch(() => undefined);
    if (next !== undefined) {
      await holder[Symbol.asyncDispose]();
      holder = next;
    }
    return RETAKE_MS;
  });
  return {
    async [Symbol.asyncDispose]() {
      await keeping.close();
      await holder[Symbol.asyncDispose]();
    },
  };
}

/** The lock of a process that replaces the tables. */
export interface EnvironmentLock extends AsyncDisposable {
  /** Throws EnvironmentInUse if the lock was lost, because others may have used the tables since. */
  confirm(): Promise<void>;
}

/** Holds the lock alone. Throws EnvironmentInUse if others use the tables. */
export async function lockEnvironment(url: string, schema: string): Promise<EnvironmentLock> {
  const holder = await openHolder(url, schema, "alone");
  try {
    const sessions = await countSessions(holder.sql, schema, holder.isHeld ? SESSION_END_MS : 0);
    if (sessions > 0 || !holder.isHeld) throw new EnvironmentInUse(sessions);
  } catch (error) {
    await holder[Symbol.asyncDispose]();
    throw error;
  }
  return {
    async confirm() {
      if (!holder.isHeld) throw new EnvironmentInUse(0);
    },
    [Symbol.asyncDispose]: () => holder[Symbol.asyncDispose](),
  };
}

/**
 * Keeps everybody from the tables until the transaction ends; statements that wait then find the tables that have
 * replaced these. Throws EnvironmentInUse if there are sessions, which may have written something.
 */
export async function lockTables(tx: SQL, schema: string): Promise<void> {
  const tables: { name: string }[] = await tx`
    SELECT oid::regclass::text AS name FROM pg_class
    WHERE relnamespace = to_regnamespace(${schema}) AND relkind = 'r' ORDER BY oid`;
  if (tables.length > 0) {
    const names = tables.map(({ name }) => name).join(", ");
    await tx.unsafe(`LOCK TABLE ${names} IN ACCESS EXCLUSIVE MODE`).catch((error: unknown) => {
      throw isLocked(error)
        ? new Error(`another program uses the tables of ${schema}; run this again when it has ended`, {
            cause: error,
          })
        : error;
    });
  }
  await rejectSessions(tx, schema, OWN_SESSION_END_MS);
}

/** Throws EnvironmentInUse if there are sessions that do not end in time. */
export async function rejectSessions(sql: SQL, schema: string, maxMs = SESSION_END_MS): Promise<void> {
  const sessions = await countSessions(sql, schema, maxMs);
  if (sessions > 0) throw new EnvironmentInUse(sessions);
}

/** Waits for the sessions of servers and commands to end, for up to `maxMs`, and counts those that have not. */
function countSessions(sql: SQL, schema: string, maxMs: number): Promise<number> {
  const prefix = sessionPrefix(schema);
  return pollUntil(0, maxMs, async () => {
    // Without this, a transaction would see the sessions of its first look.
    await sql`SELECT pg_stat_clear_snapshot()`;
    const [found] = await sql<[{ count: number }]>`
      SELECT count(*)::int AS count FROM pg_stat_activity
      WHERE starts_with(application_name, ${prefix}) AND datname = current_database()`;
    return found.count;
  });
}
