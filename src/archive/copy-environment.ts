import type { StorageConfig } from "../config/config.ts";
import { postgresSessions } from "../store/postgres/transfer/table-copy.ts";
import type { Contents } from "./contents.ts";
import { postgresEnd, sqliteEnd } from "./copy-ends.ts";
import { type CopyOptions, copyStore } from "./copy-store.ts";
import { copyUsageFromValkey, copyUsageToValkey } from "./copy-usage.ts";

export type Direction = "to PostgreSQL" | "from PostgreSQL";

export interface EnvironmentCopy {
  /**
   * `same`: an earlier copy has finished. In the other cases nothing was copied: `other`, the target has data of its
   * own; `in use`, sessions use PostgreSQL; `nothing`, the source has no data.
   */
  readonly outcome: "copied" | "same" | "other" | "in use" | "nothing";
  readonly contents: Contents;
  /** Of Petstore in PostgreSQL. */
  readonly sessions: number;
  /** The keys whose usage was copied; undefined without Valkey. */
  readonly keysWithUsage: number | undefined;
}

export interface EnvironmentCopyOptions extends Pick<CopyOptions, "entry" | "onProgress"> {
  readonly storage: StorageConfig;
  readonly direction: Direction;
}

const NOTHING: Contents = { tables: {}, counters: {} };

/**
 * Copies an environment between SQLite and PostgreSQL, with Valkey the usage of its keys too. The caller holds
 * the lock of the data directory.
 */
export async function copyEnvironment({
  storage,
  direction,
  entry,
  onProgress,
}: EnvironmentCopyOptions): Promise<EnvironmentCopy> {
  const options = { url: storage.databaseUrl ?? "", schema: storage.environment };
  const [sqlite, postgres] = [sqliteEnd(storage), postgresEnd(options)];
  const isToPostgres = direction === "to PostgreSQL";
  const [from, to] = isToPostgres ? [sqlite, postgres] : [postgres, sqlite];
  const sessions = await postgresSessions(options);
  const untouched = { contents: NOTHING, sessions, keysWithUsage: undefined };
  if (sessions > 0) return { outcome: "in use", ...untouched };
  if (!(await from.exists())) return { outcome: "nothing", ...untouched };
  let keysWithUsage: number | undefined;
  const copied = await copyStore({
    from,
    to,
    entry,
    ...(onProgress && { onProgress }),
    async beforePublish(source) {
      if (storage.limitsUrls === undefined) return;
      keysWithUsage = isToPostgres
        ? await copyUsageToValkey(storage)
        : await copyUsageFromValkey(storage, source);
    },
  });
  return { ...copied, sessions, keysWithUsage };
}
