import { afterAll, expect, test } from "bun:test";
import { createClock } from "../../../src/clock.ts";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { openWithFallback, StateChanges } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";
import { startStallingProxy } from "../auth/stalling-proxy.ts";
import { createMigrated } from "../store/postgres-database.ts";

const SERVERS = 3;
const OUTAGES = 20;
const LIMITS = { perMinute: 1_000_000, perDay: 400 };
/** Strikes would ban the keys. */
const BAN = { ...DEFAULT_BAN, strikes: 1_000_000 };

const valkey = await startValkey();
const database = await createMigrated();
afterAll(() => Promise.all([valkey.stop(), database[Symbol.asyncDispose]()]));

async function openServer(url = valkey.url) {
  const [clock, ban, changes] = [createClock(), () => BAN, new StateChanges()];
  const { openKeyCounter } = await database.open();
  const limiter = await openWithFallback({
    url,
    clock,
    ban,
    counter: openKeyCounter({ clock, ban }),
    timeoutMs: 100,
    onStateChange: changes.onStateChange,
  });
  return { limiter, changes };
}
type Server = Awaited<ReturnType<typeof openServer>>;

/** For each server a key that it alone is sent, and keys that all are sent. */
interface Keys {
  readonly own: readonly number[];
  readonly shared: readonly number[];
}

/** Sends requests until all limits are reached and the outages are over. Returns how many were allowed, by key. */
async function sendDuring(servers: readonly Server[], { own, shared }: Keys, outages: () => Promise<void>) {
  const allowed = new Map<number, number>();
  const over = new AbortController();
  /** Sends requests for a key, one after the other. */
  const send = async (id: number, { limiter }: Server) => {
    for (let isLimited = false; !(over.signal.aborted && isLimited); await Bun.sleep(5 * Math.random())) {
      isLimited = (await limiter.decide(key(id), LIMITS)).outcome !== "allowed";
      if (!isLimited) allowed.set(id, (allowed.get(id) ?? 0) + 1);
    }
  };
  const clients = [
    ...own.flatMap((id, i) => servers.slice(i, i + 1).map((server) => send(id, server))),
    ...shared.flatMap((id) => servers.map((server) => send(id, server))),
  ];
  await outages();
  over.abort();
  await Promise.all(clients);
  await Promise.all(servers.map(({ limiter }) => limiter.close()));
  return allowed;
}

/** A client that waits for one response at a time has one request of unknown outcome in each outage. */
function expectLimits(allowed: ReadonlyMap<number, number>, { own, shared }: Keys): void {
  for (const id of own) expect(allowed.get(id)).toBeWithin(400 - OUTAGES, 400 + OUTAGES + 1);
  for (const id of shared) expect(allowed.get(id)).toBeWithin(400 - SERVERS * OUTAGES, 2 * 400 + 1);
}

test("Valkey is killed and frozen 20 times under load: clients get their limit, and nobody more than twice", async () => {
  const servers = await Promise.all(Array.from({ length: SERVERS }, () => openServer()));
  const keys = { own: [1, 2, 3], shared: [4, 5, 6] };
  const allowed = await sendDuring(servers, keys, async () => {
    for (let outage = 1; outage <= OUTAGES; outage++) {
      if (outage % 2 === 0) valkey.freeze();
      else await valkey.kill();
      await Promise.all(servers.map(({ changes }) => changes.reach(2 * outage - 1)));
      await Bun.sleep(50 * Math.random());
      if (outage % 2 === 0) valkey.thaw();
      else await valkey.restart();
      await Promise.all(servers.map(({ changes }) => changes.reach(2 * outage)));
    }
  });
  expectLimits(allowed, keys);
}, 120_000);

test("one of three servers loses Valkey 20 times under load: clients get their limit, and nobody more than twice", async () => {
  await using proxy = await startStallingProxy(new URL(valkey.url));
  const alone = await openServer(proxy.url);
  const others = await Promise.all([openServer(), openServer()]);
  const keys = { own: [11, 12, 13], shared: [14, 15, 16] };
  const allowed = await sendDuring([alone, ...others], keys, async () => {
    for (let outage = 1; outage <= OUTAGES; outage++) {
      proxy.cut();
      await alone.changes.reach(2 * outage - 1);
      await Bun.sleep(50 * Math.random());
      proxy.mend();
      await alone.changes.reach(2 * outage);
    }
  });
  expectLimits(allowed, keys);
}, 120_000);
