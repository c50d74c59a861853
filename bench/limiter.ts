/**
 * What admission costs in process: `bun bench/limiter.ts [--json]`. Each figure is taken in a process of its own, so that
 * memory is that measurement's alone. Ends with 1 when a bar is missed.
 */
import { DEFAULT_BAN, type Limits, type Subject } from "../src/domain/limits.ts";
import type { Ledger } from "../src/domain/ports.ts";
import { createMemoryLimiter } from "../src/limiter/memory.ts";

/** A request: key look-up and both windows. */
const MAX_NS = 2_000;
/** A subject, all told. */
const MAX_BYTES = 250;
const MILLION = 1_000_000;

type Kind = "key" | "address";
const MEASUREMENTS = {
  "admission/1": () => measureAdmission(1),
  "admission/1000": () => measureAdmission(1_000),
  "admission/1000000": () => measureAdmission(MILLION),
  "memory/keys": () => measureMemory("key"),
  "memory/addresses": () => measureMemory("address"),
  growth: measureGrowth,
} satisfies Record<string, () => Record<string, number>>;

type Name = keyof typeof MEASUREMENTS;
const NAMES = Object.keys(MEASUREMENTS) as Name[];
const isName = (text: string): text is Name => NAMES.some((name) => name === text);

/** Never full, so that every request is admitted and charged to both windows. */
const LIMITS: Limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
/** Takes everything and keeps nothing: what is measured includes noting what changed, not the disk. */
const BOTTOMLESS: Ledger = { load: () => [], save() {}, find: () => undefined, close() {} };

function openLimiter() {
  return createMemoryLimiter({ clock: { now: Date.now }, ban: DEFAULT_BAN, ledger: BOTTOMLESS });
}

/** IPv6, whose names are the longest there are. */
function subjectOf(kind: Kind, i: number): Subject {
  if (kind === "key") return `key:${i}`;
  return `address:2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`;
}

const SECRET_LENGTH = 45;
const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Secrets as bytes, so that each look-up gets a string that nobody has hashed yet, as from a socket. */
function mintSecrets(count: number): Buffer {
  const bytes = Buffer.alloc(count * SECRET_LENGTH);
  for (let i = 0; i < bytes.length; i++) bytes[i] = ALPHABET.charCodeAt(Math.floor(Math.random() * 62));
  for (let i = 0; i < count; i++) bytes.write("pet_live_", i * SECRET_LENGTH, "latin1");
  return bytes;
}

function measureAdmission(keys: number) {
  const secrets = mintSecrets(keys);
  const secretAt = (i: number) => secrets.toString("latin1", i * SECRET_LENGTH, (i + 1) * SECRET_LENGTH);
  const callers = new Map<string, { keyId: number; limits: Limits }>();
  const limiter = openLimiter();
  for (let keyId = 0; keyId < keys; keyId++) {
    callers.set(secretAt(keyId), { keyId, limits: LIMITS });
    limiter.admit(subjectOf("key", keyId), LIMITS);
  }

  /** Every key is as likely as every other: with a million of them each request finds its own cold. */
  function round(requests: number): number {
    const presented = Array.from({ length: requests }, () => secretAt(Math.floor(Math.random() * keys)));
    let admitted = 0;
    const began = Bun.nanoseconds();
    for (const secret of presented) {
      const caller = callers.get(secret);
      // Put together anew, the name costs less than one fetched from where a million lie.
      if (caller && limiter.admit(`key:${caller.keyId}`, caller.limits).outcome === "admitted") admitted++;
    }
    const took = Bun.nanoseconds() - began;
    if (admitted !== requests) throw new Error(`${requests - admitted} requests were not admitted`);
    return took / requests;
  }

  for (let i = 0; i < 10; i++) round(20_000);
  const rounds = Array.from({ length: 40 }, () => round(20_000));
  return { medianNs: Math.round(quantile(rounds, 0.5)), worstRoundNs: Math.round(quantile(rounds, 1)) };
}

function measureMemory(kind: Kind) {
  const limiter = openLimiter();
  limiter.admit(subjectOf(kind, MILLION), LIMITS);
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let i = 0; i < MILLION; i++) limiter.admit(subjectOf(kind, i), LIMITS);
  const withGarbage = process.memoryUsage.rss() - before;
  Bun.gc(true);
  const settled = process.memoryUsage.rss() - before;
  if (limiter.standing(subjectOf(kind, 0)) === undefined) throw new Error("the first subject was dropped");
  return {
    bytesPerSubject: Math.round(settled / MILLION),
    beforeCollection: Math.round(withGarbage / MILLION),
  };
}

function measureGrowth() {
  const limiter = openLimiter();
  const subjects = Array.from({ length: MILLION }, (_, i) => subjectOf("address", i));
  Bun.gc(true);
  const took = new Float64Array(MILLION);
  for (let i = 0; i < MILLION; i++) {
    const began = Bun.nanoseconds();
    limiter.admit(subjects[i] ?? "address:", LIMITS);
    took[i] = Bun.nanoseconds() - began;
  }
  const us = (q: number) => Math.round(quantile(took, q) / 100) / 10;
  return { medianUs: us(0.5), p9999Us: us(0.9999), longestUs: us(1) };
}

function quantile(values: ArrayLike<number>, q: number): number {
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

function runApart(name: Name): Record<string, number> {
  const { stdout, stderr, success } = Bun.spawnSync([process.execPath, import.meta.path, name]);
  if (!success) throw new Error(`${name}: ${stderr.toString()}`);
  return JSON.parse(stdout.toString()) as Record<string, number>;
}

function missedBars(figures: Record<string, Record<string, number>>): string[] {
  const missed: string[] = [];
  for (const [name, { medianNs = 0, bytesPerSubject = 0 }] of Object.entries(figures)) {
    if (medianNs > MAX_NS) missed.push(`${name}: ${medianNs} ns, at most ${MAX_NS}`);
    if (bytesPerSubject > MAX_BYTES) missed.push(`${name}: ${bytesPerSubject} bytes, at most ${MAX_BYTES}`);
  }
  return missed;
}

const [argument = ""] = process.argv.slice(2);
if (isName(argument)) {
  console.log(JSON.stringify(MEASUREMENTS[argument]()));
  process.exit(0);
}
const figures = Object.fromEntries(NAMES.map((name) => [name, runApart(name)]));
if (argument === "--json") console.log(JSON.stringify(figures, undefined, 2));
else console.table(figures);
const missed = missedBars(figures);
for (const line of missed) console.error(`missed: ${line}`);
process.exit(missed.length === 0 ? 0 : 1);
