/*
 * Measures authentication and rate limits without HTTP: `bun bench/limiter.ts`. Each measurement runs in a process of
 * its own, so that its memory is measured alone. Exits with 1 when a target is missed.
 */

import { runProgram } from "../trials/harness/child.ts";
import { quantile } from "../trials/harness/statistics.ts";
import { checkBars } from "../trials/harness/table.ts";
import { Authenticator } from "../src/auth/authenticator.ts";
import { createClock } from "../src/clock.ts";
import { generateSecret } from "../src/domain/secrets.ts";
import { DEFAULT_POLICY } from "../src/domain/policy.ts";
import type { QuotaStore } from "../src/domain/ports/rate-limiter.ts";
import { DEFAULT_BAN } from "../src/domain/ban-rules.ts";
import type { Decision, Limits } from "../src/domain/rate-limit.ts";
import { MemoryRateLimiter } from "../src/rate-limit/memory-rate-limiter.ts";

/** The target for a request: key lookup and both windows. */
const MAX_NS = 3_000;
/** The target for a subject: its quota and, if it is a key, its entry among the verified keys. */
const MAX_BYTES = 650;
const MANY = 100_000;

type Figures = Record<string, number>;
const MEASUREMENTS: Record<string, () => Promise<Figures>> = {
  "1 key": async () => measureRounds(await openKeys(1)),
  "1,000 keys": async () => measureRounds(await openKeys(1_000)),
  "100,000 keys": async () => measureRounds(await openKeys(MANY)),
  "100,000 addresses": async () => measureRounds(openAddresses()),
  "memory of 100,000 keys": async () => measureMemory(await openKeys(MANY)),
  "memory of 100,000 addresses": async () => measureMemory(openAddresses()),
  "growth to 100,000 keys": async () => measureGrowth(await openKeys(MANY, NOT_STORED)),
  "growth to 100,000 addresses": async () => measureGrowth(openAddresses(NOT_STORED)),
};

/** Limits that are never reached, so that every request is allowed and counted in both windows. */
const LIMITS: Limits = { perMinute: 1_000_000_000, perDay: 1_000_000_000 };
/** The measurement includes the list of changes that have to be stored, but not the disk. */
const NO_DISK: QuotaStore = { load: () => [], save() {}, find: () => undefined, close() {} };
const STORED: { quotaStore?: QuotaStore } = { quotaStore: NO_DISK };
const NOT_STORED: typeof STORED = {};
const CLOCK = createClock();
const CLIENT = { clientAddress: "192.0.2.1" };

/** Clients that have not sent a request yet. */
interface Population {
  readonly count: number;
  /** The credential of a client: a new string each time, as if it came from a socket. */
  credentialOf(i: number): string;
  request(credential: string): Decision | undefined;
}

const HEADER_LENGTH = 52;

/** Generates headers in one buffer, which the garbage collector does not traverse. */
function generateHeaders(count: number): Buffer {
  const bytes = Buffer.alloc(count * HEADER_LENGTH);
  for (let i = 0; i < count; i++) {
    bytes.write(`Bearer ${generateSecret("production")}`, i * HEADER_LENGTH, "latin1");
  }
  return bytes;
}

/**
 * Measures the path from the Authorization header to the decision. The store resolves the n-th unknown key to key n,
 * because a table of keys would add its own memory to the measurement.
 */
async function openKeys(count: number, quota = STORED): Promise<Population> {
  const headers = generateHeaders(count);
  let verified = 0;
  const keys = {
    findCredential() {
      if (verified === count) throw new Error("a verified key was evicted, or not found");
      const id = ++verified;
      const key = { id, name: "bench", plan: "enterprise", limits: LIMITS, createdAt: 0 } as const;
      return { key: { ...key, labels: [], access: "write" } } as const;
    },
  };
  const limiter = new MemoryRateLimiter({ clock: CLOCK, ban: () => DEFAULT_BAN, ...quota });
  const authenticator = new Authenticator({
    keys,
    environment: "production",
    policy: { current: DEFAULT_POLICY },
    clock: CLOCK,
    rateLimiter: limiter,
  });
  return {
    count,
    credentialOf: (i) => headers.toString("latin1", i * HEADER_LENGTH, (i + 1) * HEADER_LENGTH),
    request(header) {
      const principal = authenticator.authenticate(header, CLIENT);
      return typeof principal === "object" && "limits" in principal
        ? limiter.decide({ kind: "key", id: principal.keyId }, principal.limits)
        : undefined;
    },
  };
}

/** Opens IPv6 addresses, which have the longest names. */
function openAddresses(quota = STORED): Population {
  const limiter = new MemoryRateLimiter({ clock: CLOCK, ban: () => DEFAULT_BAN, ...quota });
  return {
    count: MANY,
    credentialOf: (i) => `2001:db8:${(i >>> 16).toString(16)}:${(i & 0xffff).toString(16)}::/64`,
    request: (id) => limiter.decide({ kind: "address", id }, LIMITS),
  };
}

/** Measures requests of clients that are equally likely: with many, each one is outside the processor's caches. */
function measureRounds({ count, credentialOf, request }: Population): Figures {
  for (let i = 0; i < count; i++) request(credentialOf(i));
  const anyCredential = () => credentialOf(Math.floor(Math.random() * count));
  const [warmUp, rounds, requests] = [100, 400, 2_000];
  const perRequest: number[] = [];
  for (let i = 0; i < warmUp + rounds; i++) {
    const credentials = Array.from({ length: requests }, anyCredential);
    let allowed = 0;
    const began = Bun.nanoseconds();
    for (const each of credentials) if (request(each)?.outcome === "allowed") allowed++;
    perRequest.push((Bun.nanoseconds() - began) / requests);
    if (allowed !== requests) throw new Error(`${requests - allowed} requests were not allowed`);
  }
  const ns = (q: number) => Math.round(quantile(perRequest.slice(warmUp), q));
  return { medianNs: ns(0.5), quickestQuarterNs: ns(0.25) };
}

/** Collections in between leave out what requests leave behind: it is not the subjects' memory. */
function measureMemory({ count, credentialOf, request }: Population): Figures {
  request(credentialOf(0));
  Bun.gc(true);
  const before = process.memoryUsage.rss();
  for (let i = 1; i < count; i++) {
    request(credentialOf(i));
    if (i % 1_000 === 0) Bun.gc(true);
  }
  Bun.gc(true);
  const bytesPerSubject = Math.round((process.memoryUsage.rss() - before) / count);
  const collections = Array.from({ length: 9 }, measureCollection);
  const { remaining = NaN } = request(credentialOf(0)) ?? {};
  if (remaining !== LIMITS.perDay - 2) throw new Error("the first subject was evicted");
  return { bytesPerSubject, fullCollectionCpuMs: quantile(collections, 0.5) };
}

/** The processor time of all threads of the garbage collector, of which several run at once. */
function measureCollection(): number {
  const before = process.cpuUsage();
  Bun.gc(true);
  const { user, system } = process.cpuUsage(before);
  return Math.round((user + system) / 100) / 10;
}

/**
 * Measures the first request of each client. Changes are not stored, because the event loop, which empties their list,
 * does not run.
 */
function measureGrowth({ count, credentialOf, request }: Population): Figures {
  const took = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const credential = credentialOf(i);
    const began = Bun.nanoseconds();
    request(credential);
    took[i] = Bun.nanoseconds() - began;
  }
  const us = (q: number) => Math.round(quantile(took, q) / 100) / 10;
  return { medianUs: us(0.5), p9999Us: us(0.9999), longestUs: us(1) };
}

export async function measureLimiter(): Promise<Record<string, Figures>> {
  const measured: Record<string, Figures> = {};
  for (const name of Object.keys(MEASUREMENTS)) {
    const { code, out, err } = await runProgram([process.execPath, import.meta.path, name]);
    if (code !== 0) throw new Error(`${name}: ${err}`);
    measured[name] = JSON.parse(out);
  }
  return measured;
}

if (import.meta.main) {
  const measurement = MEASUREMENTS[process.argv[2] ?? ""];
  if (measurement !== undefined) {
    console.log(JSON.stringify(await measurement()));
    process.exit(0);
  }
  const measured = await measureLimiter();
  console.table(measured);
  const bars = Object.entries(measured).flatMap(([name, { medianNs = 0, bytesPerSubject = 0 }]) => [
    { name: `${name}, ns`, value: medianNs, most: MAX_NS },
    { name: `${name}, bytes`, value: bytesPerSubject, most: MAX_BYTES },
  ]);
  process.exit(checkBars(bars));
}
