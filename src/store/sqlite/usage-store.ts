import type { Statement } from "bun:sqlite";
import { Unavailable } from "../../contract/errors.ts";
import type { Usage, Subject } from "../../domain/rate-limit.ts";
import type { UsageStore } from "../../domain/ports.ts";
import type { Connection } from "./connection.ts";
import { openFor } from "./database.ts";
import { asFault } from "./sqlite-errors.ts";
import type { Migration } from "../migration.ts";

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: "standings",
    sql: `
      CREATE TABLE standings (
        subject TEXT PRIMARY KEY,
        minute_opened_at INTEGER NOT NULL,
        minute_used INTEGER NOT NULL,
        minute_refused_at INTEGER NOT NULL,
        minute_strikes INTEGER NOT NULL,
        day_opened_at INTEGER NOT NULL,
        day_used INTEGER NOT NULL,
        day_refused_at INTEGER NOT NULL,
        day_strikes INTEGER NOT NULL,
        banned_at INTEGER NOT NULL,
        banned_until INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
    `,
  },
];

/** Times and counts, all far below 2^53: read as numbers, for a million of them are read at a start. */
interface Row {
  subject: Subject;
  minute_opened_at: number;
  minute_used: number;
  minute_refused_at: number;
  minute_strikes: number;
  day_opened_at: number;
  day_used: number;
  day_refused_at: number;
  day_strikes: number;
  banned_at: number;
  banned_until: number;
}

/**
 * Counts and bans in a file of their own, apart from the data: a save waits for nobody and nobody waits for it.
 *
 * `synchronous` is NORMAL: what was saved survives the death of the process in any form, since the operating system
 * has it; a loss of power may take the last seconds, and never more than that.
 */
export function openUsageStore(path: string): UsageStore {
  const options = {
    migrations: MIGRATIONS,
    synchronous: "NORMAL",
    cacheKiB: 4 * 1024,
    busyTimeoutMs: 0,
  } as const;
  try {
    return openFor(path, options, (connection) => new SqliteUsageStore(connection, path));
  } catch (error) {
    throw withWayOut(error);
  }
}

/** Counts are worth less than a start: whoever reads this may do without them. */
function withWayOut(error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error);
  return new Error(`${reason}; counts start anew when that file is moved away`, { cause: error });
}

class SqliteUsageStore implements UsageStore {
  readonly #all: Statement<Row, []>;
  readonly #one: Statement<Row, [string]>;
  readonly #put: Statement<unknown, [string, ...number[]]>;
  readonly #forget: Statement<unknown, [string]>;

  constructor(
    private readonly connection: Connection,
    private readonly path: string,
  ) {
    this.#all = connection.prepare<Row, []>("SELECT * FROM standings").safeIntegers(false);
    this.#one = connection
      .prepare<Row, [string]>("SELECT * FROM standings WHERE subject = ?")
      .safeIntegers(false);
    this.#put = connection.prepare(
      "INSERT OR REPLACE INTO standings VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#forget = connection.prepare("DELETE FROM standings WHERE subject = ?");
  }

  *load(): Generator<readonly [Subject, Usage]> {
    try {
      for (const row of this.#all.iterate()) yield [row.subject, usageOf(row)];
    } catch (error) {
      throw this.#unreadable(error);
    }
  }

  /** All of the changes or none: when it throws, the caller still has them and brings them again. */
  save(changes: Iterable<readonly [Subject, Usage | undefined]>): void {
    this.connection.transaction(() => {
      for (const [subject, usage] of changes) {
        if (usage === undefined) this.#forget.run(subject);
        else this.#keep(subject, usage);
      }
    });
  }

  find(subject: Subject): Usage | undefined {
    try {
      const row = this.#one.get(subject);
      return row === null ? undefined : usageOf(row);
    } catch (error) {
      throw this.#unreadable(error);
    }
  }

  close(): void {
    this.connection.close();
  }

  /** Damage shows when a page is read, which may be long after the file was opened. */
  #unreadable(error: unknown): unknown {
    const fault = asFault(error);
    if (fault instanceof Unavailable) return fault;
    const reason = error instanceof Error ? error.message : String(error);
    return withWayOut(new Error(`cannot read the counts in ${this.path}: ${reason}`, { cause: error }));
  }

  #keep(subject: Subject, { minute, day, bannedAt, bannedUntil }: Usage): void {
    // prettier-ignore
    this.#put.run(
      subject,
      minute.openedAt, minute.used, minute.refusedAt, minute.strikes,
      day.openedAt, day.used, day.refusedAt, day.strikes,
      bannedAt, bannedUntil,
    );
  }
}

function usageOf(row: Row): Usage {
  return {
    minute: {
      openedAt: row.minute_opened_at,
      used: row.minute_used,
      refusedAt: row.minute_refused_at,
      strikes: row.minute_strikes,
    },
    day: {
      openedAt: row.day_opened_at,
      used: row.day_used,
      refusedAt: row.day_refused_at,
      strikes: row.day_strikes,
    },
    bannedAt: row.banned_at,
    bannedUntil: row.banned_until,
  };
}
