/**
 * What admission costs in process: `bun bench/limiter.ts [--json]`. Each figure is taken in a process of its own, so
 * that memory is that measurement's alone. Ends with 1 when a bar is missed.
 */
import { DEFAULT_BAN, type Limits, type Subject, type Verdict } from "../src/domain/limits.ts";
import type { Ledger } from "../src/domain/ports.ts";
import { createMemoryLimiter } from "../src/limiter/memory.ts";

/** A request: key look-up and both windows. */
const MAX_NS = 2_000;
/** A subject, all told. */
const MAX_BYTES = 250;
const MILLION = 1_000_000;

type Kind = "key" | "address";
const MEASUREMENTS = {
  "1 key": () => measureKeys(1, "named on the way"),
  "1,000 keys": () => measureKeys(1_000, "named on the way"),
  "1,000,000 keys": () => measureKeys(MILLION, "named on the way"),
  "1,000,000 keys, name kept": () => measureKeys(MILLION, "name kept"),
  "1,000,000 addresses": measureAddresses,
  "memory of 1,000,000 keys": () => measureMemory("key"),
  "memory of 1,000,000 addresses": () => measureMemory("address"),
  "growth to 1,000,000 addresses": measureGrowth,
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

/**
 * From the secret to the verdict. A caller either keeps the name that it is counted under, or has it put together
 * from its number: with a million callers a name that is kept lies cold in memory, and costs more to fetch than to
 * make.
 */
function measureKeys(keys: number, naming: "name kept" | "named on the way") {
  const secrets = mintSecrets(keys);
  const secretAt = (i: number) => secrets.toString("latin1", i * SECRET_LENGTH, (i + 1) * SECRET_LENGTH);
  const limiter = openLimiter();
  const numbers = new Map<string, { keyId: number; limits: Limits }>();
  const names = new Map<string, { subject: Subject; limits: Limits }>();
  for (let keyId = 0; keyId < keys; keyId++) {
    if (naming === "name kept") names.set(secretAt(keyId), { subject: `key:${keyId}`, limits: LIMITS });
    else numbers.set(secretAt(keyId), { keyId, limits: LIMITS });
    limiter.admit(`key:${keyId}`, LIMITS);
  }
  const present = () => secretAt(Math.floor(Math.random() * keys));
  if (naming === "name kept") {
    return measureRounds(present, (secret) => {
      const caller = names.get(secret);
      return caller && limiter.admit(caller.subject, caller.limits);
    });
  }
  return measureRounds(present, (secret) => {
    const caller = numbers.get(secret);
    return caller && limiter.admit(`key:${caller.keyId}`, caller.limits);
  });
}

function measureAddresses() {
  const limiter = openLimiter();
  for (let i = 0; i < MILLION; i++) limiter.admit(subjectOf("address", i), LIMITS);
  const present = () => subjectOf("address", Math.floor(Math.random() * MILLION));
  return measureRounds(present, (subject) => limiter.admit(subject, LIMITS));
}

/** Everyone is as likely to call as everyone else, so that of a million each is found cold. */
function measureRounds<T>(present: () => T, admit: (presented: T) => Verdict | undefined) {
  const [warmUp, rounds, requests] = [100, 400, 2_000];
  const perRequest: number[] = [];
  for (let i = 0; i < warmUp + rounds; i++) {
    const presented = Array.from({ length: requests }, present);
    let admitted = 0;
    const began = Bun.nanoseconds();
    for (const one of presented) if (admit(one)?.outcome === "admitted") admitted++;
    perRequest.push((Bun.nanoseconds() - began) / requests);
    if (admitted !== requests) throw new Error(`${requests - admitted} requests were not admitted`);
  }
  const ns = (q: number) => Math.round(quantile(perRequest.slice(warmUp), q));
  return { medianNs: ns(0.5), quickestQuarterNs: ns(0.25) };
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

/** Without a ledger: nothing empties its queue while the event loop stands still here. */
function measureGrowth() {
  const limiter = createMemoryLimiter({ clock: { now: Date.now }, ban: DEFAULT_BAN });
  const took = new Float64Array(MILLION);
  for (let i = 0; i < MILLION; i++) {
    const subject = subjectOf("address", i);
    const began = Bun.nanoseconds();
    limiter.admit(subject, LIMITS);
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
