import type { BanRules } from "../../src/domain/ban-rules.ts";
import {
  decide,
  type Decision,
  expire,
  isBanned,
  isExpired,
  type Limits,
  newQuota,
  shift,
  type Subject,
  unban,
  type Quota,
} from "../../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../../src/rate-limit/memory-rate-limiter.ts";
import { Process, Troubles, type World } from "./world.ts";

interface Snapshot {
  readonly at: number;
  readonly quota: Quota;
  /** Whether it is a ban or an unban, which is written in the next time slice. */
  readonly isUrgent: boolean;
}

/** The quota of a subject since the server started. */
interface Track {
  readonly subject: Subject;
  quota: Quota;
  snapshots: Snapshot[];
}

const LIMITS: Limits = { perMinute: 4, perDay: 12 };
const BAN: BanRules = { strikes: 2, graceMs: 500, lengthMs: 5_000, maxLengthMs: 20_000 };
/** The longest loss after a crash that the documentation allows. */
const MAX_LOST_MS = 1_000;
const MAX_URGENT_MS = 20;
const RUN_MS = 60_000;

/**
 * A server counts in memory and writes behind to a store that fails at times. It blocks, its clock is set, it is killed
 * or stopped, and starts again from the store.
 *
 * The rules are: Each decision is that of domain/rate-limit.ts on an exact quota. After a kill, the quota is one that
 * the subject had within the last second, and has every ban and unban; after a stop it is exact. No key is evicted.
 */
export function simulateWriteBehind(world: World): void {
  const { random } = world;
  const rows = new Map<string, readonly [Subject, Quota]>();
  const tracks: Track[] = [];
  // Now and then, more waits than a time slice writes.
  const perKind = random.chance(50) ? 300 : 4;
  for (let id = 0; id < perKind; id++) {
    tracks.push(newTrack({ kind: "key", id: id === 3 ? 5_000_000 : id }));
    tracks.push(newTrack({ kind: "address", id: `address ${id}` }));
  }
  const maxAddresses = random.pick([0.5, 2]) * perKind;
  /** The times at which the store failed or the server was paused. */
  const troubles = new Troubles();
  let storeFailsUntil = 0;
  let server: Process;
  let rateLimiter: MemoryRateLimiter;
  let stepMs = 0;

  function start(wallStepMs: number): void {
    server = new Process(world, "server");
    server.wallStepMs = wallStepMs;
    stepMs = 0;
    rateLimiter = new MemoryRateLimiter({
      clock: server.clock,
      ban: () => BAN,
      maxAddresses,
      scheduler: server,
      quotaStore: {
        load: () => [...rows.values()].map(([subject, quota]) => [subject, copyQuotas(quota)] as const),
        save(changes) {
          server.block(random.between(0, 2));
          if (world.now < storeFailsUntil) throw new Error("the disk is full");
          for (const [subject, quota] of changes)
            if (quota === undefined) rows.delete(nameOf(subject));
            else rows.set(nameOf(subject), [subject, copyQuotas(quota)]);
        },
        find: (subject) => rows.get(nameOf(subject))?.[1],
        close() {},
      },
    });
  }

  /** The time of the rate limiter's clock, which follows the steps of the machine's clock as the real one does. */
  function time(): number {
    const steady = server.clock.steadyNow();
    const byMs = server.clock.stepMs - stepMs;
    stepMs += byMs;
    if (byMs !== 0)
      for (const track of tracks) {
        shift(track.quota, byMs);
        keep(track, false);
      }
    return steady + stepMs;
  }

  function keep(track: Track, isUrgent: boolean): void {
    track.snapshots.push({
      at: world.now,
      quota: copyQuotas(track.quota),
      isUrgent: isUrgent && !troubles.has(world.now),
    });
  }

  /** Follows an eviction: an address that was evicted starts anew. */
  function followEviction(track: Track, now: number): void {
    const { subject, quota } = track;
    if (rateLimiter.quota(subject) !== undefined || isExpired(quota, now)) return;
    const mayBeEvicted = subject.kind === "address" && maxAddresses < perKind;
    world.check(mayBeEvicted, `${nameOf(subject)} was forgotten`);
    world.note(nameOf(subject), "was evicted");
    track.quota = newQuota();
    keep(track, false);
  }

  function request(): void {
    const track = tracks[random.below(tracks.length)] ?? newTrack({ kind: "key", id: 0 });
    const { subject } = track;
    const now = time();
    followEviction(track, now);
    const wasBanned = isBanned(track.quota, now);
    const expected = decide(track.quota, LIMITS, now, subject.kind === "key" ? BAN : undefined);
    const actual = rateLimiter.decide(subject, LIMITS);
    keep(track, expected.outcome === "banned" && !wasBanned);
    world.note(nameOf(subject), actual.outcome, actual.remaining);
    world.check(
      isSame(actual, expected),
      () => `${nameOf(subject)} got ${text(actual)}, not ${text(expected)}`,
    );
  }

  function liftBan(): void {
    const track = tracks[random.below(tracks.length)];
    if (track?.subject.kind !== "key") return;
    const now = time();
    followEviction(track, now);
    const isKnown = rateLimiter.quota(track.subject) !== undefined;
    world.note("unban of", nameOf(track.subject));
    rateLimiter.unban(track.subject, 0);
    expire(track.quota, now, BAN);
    unban(track.quota, now);
    keep(track, isKnown);
  }

  function restart(isKilled: boolean): void {
    const now = time();
    for (const track of tracks) followEviction(track, now);
    world.note(isKilled ? "is killed" : "stops");
    const isSaved = !isKilled && world.now >= storeFailsUntil;
    if (!isKilled) rateLimiter.close().catch(() => world.check(!isSaved, "the counts could not be saved"));
    server.kill();
    const savedTo = isSaved ? world.now : troubles.calmSince(world.now, MAX_LOST_MS);
    const urgentTo = isSaved ? world.now : troubles.calmSince(world.now, MAX_URGENT_MS);
    for (const track of tracks) {
      const { subject, snapshots } = track;
      const row = rows.get(nameOf(subject))?.[1];
      const known = snapshots.findLastIndex(({ at }) => at <= savedTo);
      const urgent = snapshots.findLastIndex(({ at, isUrgent }) => isUrgent && at <= urgentTo);
      const possible = snapshots.slice(Math.max(0, known, urgent));
      const isPossible = possible.some(({ quota }) =>
        row === undefined ? isExpired(quota, now) : isSame(quota, row),
      );
      world.check(isPossible, () => `${nameOf(subject)} has ${text(row)} and not ${text(possible)}`);
      track.quota = row ? copyQuotas(row) : newQuota();
      track.snapshots = [];
      keep(track, false);
    }
    start(server.wallStepMs);
  }

  start(0);
  for (let burst = 0; burst < 8; burst++) {
    const at = random.between(0, RUN_MS);
    for (let i = random.below(5 * perKind); i > 0; i--)
      world.schedule(at + random.between(0, 3_000), request);
  }
  world.often(3, RUN_MS, liftBan);
  world.often(3, RUN_MS, () => {
    storeFailsUntil = world.now + random.between(0, 5_000);
    troubles.add(world.now, storeFailsUntil - world.now);
  });
  world.often(3, RUN_MS, () => {
    const ms = random.between(0, 3_000);
    server.block(ms);
    troubles.add(world.now, server.busyUntil - world.now);
  });
  world.often(2, RUN_MS, () => void (server.wallStepMs += random.between(-100_000, 100_000)));
  world.often(5, RUN_MS, () => restart(random.chance(2)));
  world.run(RUN_MS);
  restart(true);
}

function newTrack(subject: Subject): Track {
  const quota = newQuota();
  return { subject, quota, snapshots: [{ at: 0, quota: newQuota(), isUrgent: false }] };
}

const nameOf = ({ kind, id }: Subject) => `${kind} ${id}`;
const text = (value: unknown) => JSON.stringify(value);

function isSame<T extends Quota | Decision>(one: T, other: T): boolean {
  return Bun.deepEquals(one, other);
}

function copyQuotas(quota: Quota): Quota {
  return { ...quota, minute: { ...quota.minute }, day: { ...quota.day } };
}
