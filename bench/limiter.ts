/**
 * What admission costs in process: `bun bench/limiter.ts [--json]`. Each figure is taken in a process of its own, so
 * that memory is that measurement's alone. Ends with 1 when a bar is missed.
 */
import { steadyClock } from "../src/clock.ts";
import { generateSecret } from "../src/domain/api-keys.ts";
import { DEFAULT_BAN, type Limits, type Decision } from "../src/domain/rate-limit.ts";
import { DEFAULT_PLANS } from "../src/domain/plans.ts";
import type { UsageStore } from "../src/domain/ports.ts";
import { Authenticator } from "../src/auth/authenticator.ts";
import { createMemoryRateLimiter } from "../src/rate-limit/memory/memory-rate-limiter.ts";

/** A request: key look-up and both windows. */
const MAX_NS = 2_000;
/** A subject, all told: for a key that is its secret in the directory of known keys and its counts. */
const MAX_BYTES = 250;
const MILLION = 1_000_000;

type Figures = Record<string, number>;
const MEASUREMENTS = {
  "1 key": async () => measureRounds(await openKeys(1, "with a ledger")),
  "1,000 keys": async () => measureRounds(await openKeys(1_000, "with a ledger")),
  "1,000,000 keys": async () => measureRounds(await openKeys(MILLION, "with a ledger")),
  "1,000,000 addresses": () => measureRounds(openAddresses("with a ledger")),
  "memory of 1,000,000 keys": async () => measureMemory(await openKeys(MILLION, "with a ledger")),
  "memory of 1,000,000 addresses": () => measureMemory(openAddresses("with a ledger")),
  "growth to 1,000,000 keys": async () => measureGrowth(await openKeys(MILLION, "without a ledger")),
  "growth to 1,000,000 addresses": () => measureGrowth(openAddresses("without a ledger")),
} satisfies Record<string, () => Figures | Promise<Figures>>;

type Name = keyof typeof MEASUREMENTS;
const NAMES = Object.keys(MEASUREMENTS) as Name[];
const isName = (text: string): text is Name => NAMES.some((name) => name === text);

/** Never full, so that every request is admitted and charged to both windows. */
const LIMITS: Limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
/** Takes everything and keeps nothing: what is measured includes noting what changed, not the disk. */
const BOTTOMLESS: UsageStore = { load: () => [], save() {}, find: () => undefined, close() {} };
/** The service's own, as in a running server. */
const CLOCK = steadyClock();

/** A number of callers, none of whom has called yet. */
interface Population {
  readonly count: number;
  /** What the i-th says of itself: made anew, so that it is as cold or as warm as if it came from a socket. */
  present(i: number): string;
  admit(presented: string): Decision | undefined;
}

type Ledgers = "with a ledger" | "without a ledger";

function openLimiter(ledgers: Ledgers) {
  const ledger = ledgers === "with a ledger" ? { usageStore: BOTTOMLESS } : {};
  return createMemoryRateLimiter({ clock: CLOCK, ban: DEFAULT_BAN, ...ledger });
}

const HEADER_LENGTH = 52;

/** Headers as bytes: the collector does not go through them, and each look-up gets a string that nobody has seen. */
function mintHeaders(count: number): Buffer {
  const bytes = Buffer.alloc(count * HEADER_LENGTH);
  for (let i = 0; i < count; i++) {
    bytes.write(`Bearer ${generateSecret("production")}`, i * HEADER_LENGTH, "latin1");
  }
  return bytes;
}

/**
 * From the header to the verdict. Keys are learned from a store that takes the n-th stranger for the n-th key: with a
 * table of its own its memory would be measured too.
 */
async function openKeys(count: number, ledgers: Ledgers): Promise<Population> {
  const headers = mintHeaders(count);
  let learned = 0;
  const keys = {
    changesSince: () => ({ revision: 1, changed: [] }),
    findCredential() {
      if (learned === count) throw new Error("a key was forgotten, or not found");
      const id = ++learned;
      return { key: { id, name: "bench", plan: "enterprise", limits: LIMITS, createdAt: 0 } } as const;
    },
  };
  const callers = await Authenticator.open({
    keys,
    environment: "production",
    plans: DEFAULT_PLANS,
    clock: CLOCK,
  });
  const limiter = openLimiter(ledgers);
  return {
    count,
    present: (i) => headers.toString("latin1", i * HEADER_LENGTH, (i + 1) * HEADER_LENGTH),
    admit(header) {
      const caller = callers.authenticate(header);
      return typeof caller === "object" && "limits" in caller
        ? limiter.decide(caller.subject, caller.limits)
        : undefined;
    },
  };
}

/** IPv6, whose names are the longest there are. */
function openAddresses(ledgers: Ledgers): Population {
  const limiter = openLimiter(ledgers);
  return {
    count: MILLION,
    present: (i) => `2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`,
    admit: (id) => limiter.decide({ kind: "address", id }, LIMITS),
  };
}

/** Everyone is as likely to call as everyone else, so that of a million each is found cold. */
function measureRounds({ count, present, admit }: Population): Figures {
  for (let i = 0; i < count; i++) admit(present(i));
  const presentAny = () => present(Math.floor(Math.random() * count));
  const [warmUp, rounds, requests] = [100, 400, 2_000];
  const perRequest: number[] = [];
  for (let i = 0; i < warmUp + rounds; i++) {
    const presented = Array.from({ length: requests }, presentAny);
    let admitted = 0;
    const began = Bun.nanoseconds();
    for (const one of presented) if (admit(one)?.outcome === "allowed") admitted++;
    perRequest.push((Bun.nanoseconds() - began) / requests);
    if (admitted !== requests) throw new Error(`${requests - admitted} requests were not admitted`);
  }
  const ns = (q: number) => Math.round(quantile(perRequest.slice(warmUp), q));
  return { medianNs: ns(0.5), quickestQuarterNs: ns(0.25) };
}

function measureMemory({ count, present, admit }: Population): Figures {
  admit(present(0));
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let i = 1; i < count; i++) admit(present(i));
  const withGarbage = process.memoryUsage.rss() - before;
  Bun.gc(true);
  const settled = process.memoryUsage.rss() - before;
  const { remaining = NaN } = admit(present(0)) ?? {};
  if (remaining !== LIMITS.perDay - 2) throw new Error("the first subject was dropped");
  return {
    bytesPerSubject: Math.round(settled / count),
    beforeCollection: Math.round(withGarbage / count),
  };
}

/**
 * The first request of each, in which a key is learned. Without a ledger: nothing empties its queue while the event
 * loop stands still here.
 */
function measureGrowth({ count, present, admit }: Population): Figures {
  const took = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const presented = present(i);
    const began = Bun.nanoseconds();
    admit(presented);
    took[i] = Bun.nanoseconds() - began;
  }
  const us = (q: number) => Math.round(quantile(took, q) / 100) / 10;
  return { medianUs: us(0.5), p9999Us: us(0.9999), longestUs: us(1) };
}

function quantile(values: ArrayLike<number>, q: number): number {
  const sorted = Float64Array.from(values).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0;
}

function runApart(name: Name): Figures {
  const { stdout, stderr, success } = Bun.spawnSync([process.execPath, import.meta.path, name]);
  if (!success) throw new Error(`${name}: ${stderr.toString()}`);
  return JSON.parse(stdout.toString()) as Figures;
}

function missedBars(figures: Record<string, Figures>): string[] {
  const missed: string[] = [];
  for (const [name, { medianNs = 0, bytesPerSubject = 0 }] of Object.entries(figures)) {
    if (medianNs > MAX_NS) missed.push(`${name}: ${medianNs} ns, at most ${MAX_NS}`);
    if (bytesPerSubject > MAX_BYTES) missed.push(`${name}: ${bytesPerSubject} bytes, at most ${MAX_BYTES}`);
  }
  return missed;
}

const [argument = ""] = process.argv.slice(2);
if (isName(argument)) {
  console.log(JSON.stringify(await MEASUREMENTS[argument]()));
  process.exit(0);
}
const figures = Object.fromEntries(NAMES.map((name) => [name, runApart(name)]));
if (argument === "--json") console.log(JSON.stringify(figures, undefined, 2));
else console.table(figures);
const missed = missedBars(figures);
for (const line of missed) console.error(`missed: ${line}`);
process.exit(missed.length === 0 ? 0 : 1);
