import { existsSync } from "node:fs";
import { pathsOf, type Place } from "../config.ts";
import { Unavailable } from "../contract/errors.ts";
import { DEFAULT_BAN, pardon, type Standing } from "../domain/limits.ts";
import type { Clock, Ledger, Limiter } from "../domain/ports.ts";
import { openValkey } from "../engines.ts";

export const USE_UNKNOWN = "Valkey cannot be reached, so use, strikes and bans are not known";

/** Where keys stand with their limits. Undefined when nobody can tell right now. */
export async function standingsOf(
  place: Place,
  ids: readonly number[],
  clock: Clock,
): Promise<ReadonlyMap<number, Standing> | undefined> {
  const standings = new Map<number, Standing>();
  const take = (id: number, standing: Standing | undefined) => standing && standings.set(id, standing);
  if (ids.length === 0) return standings;
  if (place.limitsUrls === undefined) {
    // A running server writes its counts once a second, so these are at most a second old.
    await withLedger(place, (ledger) => ids.forEach((id) => take(id, ledger.find(`key:${id}`))));
    return standings;
  }
  const isThere = await withValkey(place, clock, async (limiter) => {
    for (const id of ids) take(id, await limiter.standing(`key:${id}`));
  });
  return isThere ? standings : undefined;
}

/**
 * Lifts a ban where it is kept. Running servers follow the keys and lift it too; without one, in a ledger, this is
 * what the next one finds.
 */
export async function pardonKey(
  place: Place,
  id: number,
  { at, clock }: { at: number; clock: Clock },
): Promise<void> {
  if (place.limitsUrls !== undefined) {
    await withValkey(place, clock, async (limiter) => limiter.pardon(`key:${id}`, at));
    return;
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

/** Whether Valkey was there; when it is not, what its limiter says is of no use to anybody. */
async function withValkey(
  place: Place,
  clock: Clock,
  work: (limiter: Limiter) => Promise<void>,
): Promise<boolean> {
  let isThere = true;
  const { environment, limitsUrls: urls = [] } = place;
  const limiter = await openValkey({ environment, urls, ban: DEFAULT_BAN, clock }, (state) => {
    if (state === "lost") isThere = false;
  });
  try {
    if (isThere) await work(limiter);
  } finally {
    await limiter.close();
  }
  return isThere;
}
