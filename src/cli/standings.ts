import { existsSync } from "node:fs";
import { pathsOf, type Place, whereIs } from "../config.ts";
import { Unavailable } from "../contract/errors.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import { DEFAULT_BAN, unban, type Usage } from "../domain/rate-limit.ts";
import type { Clock, UsageStore, RateLimiter } from "../domain/ports.ts";
import { openValkey } from "../adapters.ts";
import { explain } from "./explain.ts";

export type Standings = ReadonlyMap<number, Usage>;

/** What nobody can tell right now, and why. */
export interface Unknown {
  readonly unknown: string;
}

export function useUnknown({ unknown }: Unknown): string {
  return `${unknown} (so use, strikes and bans are not known)`;
}

/** Where keys stand with their limits, by their numbers; those that are not there have never been counted. */
export async function standingsOf(
  place: Place,
  keys: readonly ApiKey[],
  clock: Clock,
): Promise<Standings | Unknown> {
  if (keys.length === 0) return new Map();
  return place.limitsUrls === undefined ? inUsageStore(place, keys) : inValkey(place, keys, clock);
}

/** A running server writes its counts once a second, so these are at most a second old. */
async function inUsageStore(place: Place, keys: readonly ApiKey[]): Promise<Standings | Unknown> {
  const standings = new Map<number, Usage>();
  try {
    await withUsageStore(place, (usageStore) => {
      for (const { id, unbannedAt } of keys) {
        const usage = usageStore.find(`key:${id}`);
        // A server that is about to follow the unban may have written the ban once more.
        if (usage && unbannedAt !== undefined) unban(usage, unbannedAt);
        if (usage) standings.set(id, usage);
      }
    });
    return standings;
  } catch (error) {
    return { unknown: explain(error) };
  }
}

/** As they stand there, unbans and all: a unban that Valkey has not been told of lifts nothing yet. */
async function inValkey(place: Place, keys: readonly ApiKey[], clock: Clock): Promise<Standings | Unknown> {
  const standings = new Map<number, Usage>();
  const failure = await withValkey(place, clock, async (rateLimiter) => {
    for (const { id } of keys) {
      const usage = await rateLimiter.usage(`key:${id}`);
      if (usage) standings.set(id, usage);
    }
  });
  return failure ?? standings;
}

/**
 * Lifts a ban where it is kept; says why when it could not. Running servers follow the keys and lift it too; without
 * one, this is what the next one finds.
 */
export async function unbanKey(
  place: Place,
  id: number,
  { at, clock }: { at: number; clock: Clock },
): Promise<Unknown | undefined> {
  if (place.limitsUrls !== undefined) {
    return withValkey(place, clock, async (rateLimiter) => rateLimiter.unban(`key:${id}`, at));
  }
  await withUsageStore(place, (usageStore) => {
    const usage = usageStore.find(`key:${id}`);
    if (usage === undefined) return;
    unban(usage, at);
    usageStore.save([[`key:${id}`, usage]]);
  }).catch((error: unknown) => {
    // Busy, so a server is running, and it is the one that counts.
    if (!(error instanceof Unavailable)) throw error;
  });
  return undefined;
}

async function withUsageStore(place: Place, work: (usageStore: UsageStore) => void): Promise<void> {
  const { usageStore: path } = pathsOf(place);
  if (!existsSync(path)) return;
  const { openUsageStore } = await import("../store/sqlite/index.ts");
  const usageStore = openUsageStore(path);
  try {
    work(usageStore);
  } finally {
    usageStore.close();
  }
}

/** Nothing when Valkey was there to the end; when it was not, what its rateLimiter said is of no use to anybody. */
async function withValkey(
  place: Place,
  clock: Clock,
  work: (rateLimiter: RateLimiter) => Promise<void>,
): Promise<Unknown | undefined> {
  const lost: Unknown[] = [];
  const { environment, limitsUrls: urls = [] } = place;
  const rateLimiter = await openValkey({ environment, urls, ban: DEFAULT_BAN, clock }, (state, cause) => {
    if (state === "lost")
      lost.push({ unknown: `${whereIs(place).limits} cannot be used: ${explain(cause)}` });
  });
  try {
    if (lost.length === 0) await work(rateLimiter);
  } finally {
    await rateLimiter.close();
  }
  return lost[0];
}
