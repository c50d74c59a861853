import { existsSync } from "node:fs";
import { pathsOf, type Place, whereIs } from "../config.ts";
import { Unavailable } from "../contract/errors.ts";
import type { ApiKey } from "../domain/api-keys.ts";
import { DEFAULT_BAN, pardon, type Standing } from "../domain/rate-limit.ts";
import type { Clock, Ledger, Limiter } from "../domain/ports.ts";
import { openValkey } from "../adapters.ts";
import { explain } from "./explain.ts";

export type Standings = ReadonlyMap<number, Standing>;

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
  return place.limitsUrls === undefined ? inLedger(place, keys) : inValkey(place, keys, clock);
}

/** A running server writes its counts once a second, so these are at most a second old. */
async function inLedger(place: Place, keys: readonly ApiKey[]): Promise<Standings | Unknown> {
  const standings = new Map<number, Standing>();
  try {
    await withLedger(place, (ledger) => {
      for (const { id, pardonedAt } of keys) {
        const standing = ledger.find(`key:${id}`);
        // A server that is about to follow the pardon may have written the ban once more.
        if (standing && pardonedAt !== undefined) pardon(standing, pardonedAt);
        if (standing) standings.set(id, standing);
      }
    });
    return standings;
  } catch (error) {
    return { unknown: explain(error) };
  }
}

/** As they stand there, pardons and all: a pardon that Valkey has not been told of lifts nothing yet. */
async function inValkey(place: Place, keys: readonly ApiKey[], clock: Clock): Promise<Standings | Unknown> {
  const standings = new Map<number, Standing>();
  const failure = await withValkey(place, clock, async (limiter) => {
    for (const { id } of keys) {
      const standing = await limiter.standing(`key:${id}`);
      if (standing) standings.set(id, standing);
    }
  });
  return failure ?? standings;
}

/**
 * Lifts a ban where it is kept; says why when it could not. Running servers follow the keys and lift it too; without
 * one, this is what the next one finds.
 */
export async function pardonKey(
  place: Place,
  id: number,
  { at, clock }: { at: number; clock: Clock },
): Promise<Unknown | undefined> {
  if (place.limitsUrls !== undefined) {
    return withValkey(place, clock, async (limiter) => limiter.pardon(`key:${id}`, at));
  }
  await withLedger(place, (ledger) => {
    const standing = ledger.find(`key:${id}`);
    if (standing === undefined) return;
    pardon(standing, at);
    ledger.save([[`key:${id}`, standing]]);
  }).catch((error: unknown) => {
    // Busy, so a server is running, and it is the one that counts.
    if (!(error instanceof Unavailable)) throw error;
  });
  return undefined;
}

async function withLedger(place: Place, work: (ledger: Ledger) => void): Promise<void> {
  const { ledger: path } = pathsOf(place);
  if (!existsSync(path)) return;
  const { openLedger } = await import("../store/sqlite/index.ts");
  const ledger = openLedger(path);
  try {
    work(ledger);
  } finally {
    ledger.close();
  }
}

/** Nothing when Valkey was there to the end; when it was not, what its limiter said is of no use to anybody. */
async function withValkey(
  place: Place,
  clock: Clock,
  work: (limiter: Limiter) => Promise<void>,
): Promise<Unknown | undefined> {
  const lost: Unknown[] = [];
  const { environment, limitsUrls: urls = [] } = place;
  const limiter = await openValkey({ environment, urls, ban: DEFAULT_BAN, clock }, (state, cause) => {
    if (state === "lost")
      lost.push({ unknown: `${whereIs(place).limits} cannot be used: ${explain(cause)}` });
  });
  try {
    if (lost.length === 0) await work(limiter);
  } finally {
    await limiter.close();
  }
  return lost[0];
}
