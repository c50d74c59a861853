import { existsSync } from "node:fs";
import { Unavailable } from "../../api/errors.ts";
import { describeStorage, type StorageConfig } from "../../config/storage.ts";
import { SETTINGS } from "../../config/options.ts";
import type { KeyCounter, KeyCounterOptions, RateLimiter } from "../../domain/ports/rate-limiter.ts";
import type { KeyStore } from "../../domain/ports/keys.ts";
import type { Clock } from "../../domain/ports/clock.ts";
import { COMMAND_BAN_RULES } from "../../domain/ban-rules.ts";
import { canUnban, isBanned, type Quota, shift, unban } from "../../domain/rate-limit.ts";
import { errorMessage } from "../error-message.ts";
import { type Context, Failure } from "../command.ts";

/** What keys have used of their limits, as a command reads it while servers run. */
interface Quotas extends Pick<RateLimiter, "quota" | "bannedKeys" | "unban" | "close"> {
  /** Why the quotas cannot be read; undefined if they can. */
  readonly problem: string | undefined;
}

interface QuotaSources {
  readonly keys: Pick<KeyStore, "getKey">;
  readonly openKeyCounter?: ((options: KeyCounterOptions) => KeyCounter) | undefined;
}

/** Opens the quotas in Valkey or PostgreSQL, or those that the server of this data directory stores. */
export async function openQuotas(
  storage: StorageConfig,
  { keys, openKeyCounter }: QuotaSources,
  context: Pick<Context, "clock" | "warn">,
): Promise<Quotas> {
  const { clock } = context;
  if (storage.limitsUrls) return openSharedQuotas(storage, { openKeyCounter }, context);
  return openKeyCounter
    ? countedQuotas(openKeyCounter({ clock, ban: () => COMMAND_BAN_RULES }), clock)
    : openStoredQuotas(storage.directory.files.quotas, keys, clock);
}

function countedQuotas(counter: KeyCounter, clock: Clock): Quotas {
  return {
    problem: undefined,
    async quota({ id }) {
      const quota = await counter.quota(Number(id));
      if (quota) shift(quota, clock.stepMs);
      return quota;
    },
    bannedKeys: () => undefined,
    unban: ({ id }, agoMs) => counter.unban(Number(id), agoMs),
    close: () => counter.close(),
  };
}

/** A running server writes its quotas every second, so they are at most a second old. */
async function openStoredQuotas(path: string, keys: Pick<KeyStore, "getKey">, clock: Clock): Promise<Quotas> {
  let problem: string | undefined;
  // Every page of a list asks for the banned keys, and finding them takes a read of the whole file.
  let banned: Map<number, Quota | undefined> | undefined;
  const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      problem = errorMessage(error);
      return undefined;
    }
  };
  const store = await attempt(async () => {
    const { openQuotaStore } = await import("../../store/sqlite/quota-store.ts");
    return existsSync(path) ? openQuotaStore(path) : undefined;
  });
  return {
    get problem() {
      return problem;
    },
    quota: (subject) =>
      attempt(async () => {
        const known = banned?.get(Number(subject.id));
        if (known !== undefined) return known;
        const quota = store?.find(subject);
        if (quota === undefined || !canUnban(quota)) return quota;
        const unbannedAt = (await keys.getKey(Number(subject.id)))?.unbannedAt;
        // A running server may have written the ban again before it saw the unban.
        if (unbannedAt !== undefined) unban(quota, unbannedAt);
        if (banned?.has(Number(subject.id))) banned.set(Number(subject.id), quota);
        return quota;
      }),
    bannedKeys() {
      if (banned !== undefined) return [...banned.keys()];
      banned = new Map();
      try {
        if (problem !== undefined) return [];
        for (const [{ kind, id }, quota] of store?.load() ?? [])
          if (kind === "key" && isBanned(quota, clock.now())) banned.set(id, undefined);
      } catch (error) {
        problem = errorMessage(error);
      }
      return [...banned.keys()];
    },
    /** Running servers also unban the key when they see the change of it; this is for the server that starts next. */
    unban(subject) {
      if (problem !== undefined) throw new Failure(problem);
      banned = undefined;
      try {
        const quota = store?.find(subject);
        if (quota === undefined) return;
        unban(quota, Infinity);
        store?.save([[subject, quota]]);
      } catch (error) {
        // The store is busy, so a server is running, and it unbans the key itself.
        if (!(error instanceof Unavailable)) throw error;
      }
    },
    close: async () => store?.close(),
  };
}

const PENDING =
  "running servers update it when it is available again; if no server is running, run this command again then";

/** Valkey's own state: a ban lasts there until Valkey itself has received the unban. */
async function openSharedQuotas(
  storage: StorageConfig,
  counters: Pick<QuotaSources, "openKeyCounter">,
  { clock, warn }: Pick<Context, "clock" | "warn">,
): Promise<Quotas> {
  const { openValkey } = await import("../../adapters/open-rate-limiter.ts");
  const timeoutMs = SETTINGS["limits-timeout"].default;
  // While Valkey is unavailable, what it has counted is unknown.
  let problem: string | undefined;
  const onStateChange = (state: "available" | "unavailable", cause?: unknown) => {
    if (state === "unavailable")
      problem = `${describeStorage(storage).rateLimits} is unavailable: ${errorMessage(cause)}`;
  };
  // Most commands need no quotas.
  let opened: ReturnType<typeof openValkey> | undefined;
  const open = () =>
    (opened ??= openValkey(storage, counters, {
      ban: () => COMMAND_BAN_RULES,
      clock,
      timeoutMs,
      onStateChange,
    }));
  return {
    get problem() {
      return problem;
    },
    quota: async (subject) => (await open()).quota(subject),
    bannedKeys: () => undefined,
    async unban(subject, agoMs) {
      const rateLimiter = await open();
      await rateLimiter.unban(subject, agoMs);
      // Running servers read the unban from the database.
      if (problem !== undefined) warn(`${problem}; ${PENDING}`);
    },
    // The call that needed the rate limiter has thrown the error of its opening.
    close: async () => (await opened?.catch(() => undefined))?.close(),
  };
}
