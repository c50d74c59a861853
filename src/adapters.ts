import { mkdirSync } from "node:fs";
import { type Config, pathsOf, type StorageConfig } from "./config/config.ts";
import type { BanRules } from "./domain/rate-limit.ts";
import type { Clock, KeyStore, RateLimiter, Store } from "./domain/ports.ts";
import { type PetJsonSource, petJsonOf } from "./http/pet-json.ts";
import type { Log } from "./log.ts";

/** What a configuration runs on. */
export interface Adapters extends Stores {
  readonly rateLimiter: RateLimiter;
}

export interface Stores {
  readonly store: Store;
  readonly keys: KeyStore;
  readonly petJson: PetJsonSource;
  close(): Promise<void>;
}

interface Opened {
  close(): Promise<void> | void;
}

/** Adapters are loaded when they are used: a start on SQLite does not wait for the code of PostgreSQL. */
export async function openAdapters(config: Config, clock: Clock, log: Log): Promise<Adapters> {
  const opened: Opened[] = [];
  const close = async () => {
    const results = await closeAll(opened);
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
  };
  try {
    const isAlone = config.databaseUrl === undefined;
    const lock = isAlone || config.limitsUrls === undefined ? await lockFolder(config) : undefined;
    if (lock) opened.push({ close: lock.release });
    if (isAlone && !lock) {
      throw new Error(`another server is already running on ${config.dataDir} (${config.environment})`);
    }
    const stores = await openStores(config, log);
    opened.push(stores);
    const rateLimiter = config.limitsUrls
      ? await sharedLimiter(config, config.limitsUrls, { clock, log })
      : await ownLimiter(config, lock !== undefined, { clock, log });
    opened.push(rateLimiter);
    return { ...stores, rateLimiter, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Last opened, first closed; one that fails does not keep the others open. */
async function closeAll(opened: readonly Opened[]): Promise<PromiseSettledResult<void>[]> {
  const results: PromiseSettledResult<void>[] = [];
  for (const engine of opened.toReversed()) {
    results.push(...(await Promise.allSettled([(async () => engine.close())()])));
  }
  return results;
}

/** Pets, orders and keys: in PostgreSQL where an address is given, in a file otherwise. */
export async function openStores(storage: StorageConfig, log?: Log): Promise<Stores> {
  if (storage.databaseUrl === undefined) {
    makeFolder(storage.dataDir);
    const { openSqlite } = await import("./store/sqlite/sqlite-store.ts");
    return openSqlite(pathsOf(storage).store);
  }
  const { openPostgres } = await import("./store/postgres/postgres-store.ts");
  const opened = await openPostgres(storage.databaseUrl, {
    schema: storage.environment,
    onStateChange: (change) =>
      change.state === "down"
        ? log?.warn("PostgreSQL is away; answering 503 until it is back", { cause: messageOf(change.cause) })
        : log?.info("PostgreSQL is back", { afterMs: change.afterMs }),
  });
  return { ...opened, petJson: petJsonOf(opened.store) };
}

/** Nobody but the operator has business with names, counts and the hashes of keys. */
function makeFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 });
}

/** One server per folder: two would each give out the whole of every limit, and neither see what the other wrote. */
async function lockFolder(config: Config): Promise<{ release(): void } | undefined> {
  makeFolder(config.dataDir);
  const { acquireLock } = await import("./store/sqlite/process-lock.ts");
  return acquireLock(pathsOf(config).lock);
}

async function ownLimiter(
  config: Config,
  hasUsageStore: boolean,
  { clock, log }: { clock: Clock; log: Log },
) {
  if (config.databaseUrl !== undefined) {
    log.warn("limits are counted by each server on its own; give --limits-url to share them");
  }
  const { createMemoryRateLimiter } = await import("./rate-limit/memory/memory-rate-limiter.ts");
  if (!hasUsageStore) {
    log.warn("another server keeps its counts in this folder; these are kept in memory only", {
      folder: config.dataDir,
    });
    return createMemoryRateLimiter({ clock, ban: config.ban });
  }
  const { openUsageStore } = await import("./store/sqlite/usage-store.ts");
  return createMemoryRateLimiter({
    clock,
    ban: config.ban,
    usageStore: openUsageStore(pathsOf(config).usageStore),
    onUsageStoreError: (error) => log.warn("counts are not being written down; trying again", { error }),
  });
}

function sharedLimiter(config: Config, urls: readonly string[], { clock, log }: { clock: Clock; log: Log }) {
  const { environment, limitsTimeoutMs, ban } = config;
  return openValkey({ environment, urls, ban, clock, timeoutMs: limitsTimeoutMs }, (state, cause) =>
    state === "unavailable"
      ? log.warn(...lossOf(messageOf(cause)))
      : log.info("Valkey is back; limits are shared again"),
  );
}

/** What waiting does not mend: an operator has to. */
const MISCONFIGURED = /^(?:NOAUTH|WRONGPASS|NOPERM|MOVED|CROSSSLOT|ERR)\b/;

function lossOf(cause: string): [string, { cause: string }?] {
  return MISCONFIGURED.test(cause)
    ? [`Valkey cannot be used (${cause}); limits are counted by each server on its own meanwhile`]
    : ["Valkey is away; limits are counted by each server on its own until it is back", { cause }];
}

/** Of a turn, where it came about in our code tells an operator nothing. */
function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

export interface ValkeyOptions {
  readonly environment: string;
  readonly urls: readonly string[];
  readonly ban: BanRules;
  readonly clock: Clock;
  readonly timeoutMs: number;
}

/** One address is a server, several are hosts of a cluster. */
export async function openValkey(
  options: ValkeyOptions,
  onStateChange: (state: "available" | "unavailable", cause?: unknown) => void,
): Promise<RateLimiter> {
  const { environment, urls, ...rest } = options;
  const [only] = urls;
  const { createMemoryRateLimiter } = await import("./rate-limit/memory/memory-rate-limiter.ts");
  const { createValkeyRateLimiter } = await import("./rate-limit/valkey/valkey-rate-limiter.ts");
  return createValkeyRateLimiter({
    url: urls.length === 1 && only !== undefined ? only : urls,
    prefix: `petstore:${environment}:`,
    ...rest,
    fallback: createMemoryRateLimiter(rest),
    onStateChange,
  });
}
