import { expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import { createClock } from "../../../src/clock.ts";
import { DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import type { Limits } from "../../../src/domain/rate-limit.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import {
  postgresUrl,
  promote,
  startPostgres,
  startStandby,
  stopWaitingForStandby,
} from "../../../trials/harness/postgres.ts";
import { key } from "../../subjects.ts";
import { until, untilAvailable } from "../../timing.ts";
import { startStallingProxy } from "../../../trials/harness/stalling-proxy.ts";

const FREE: Limits = { perMinute: 60, perDay: 1_000 };
/** Bans a key with the first request over its limit. */
const AT_ONCE = { ...DEFAULT_BAN, strikes: 1, graceMs: 0 };
/** A key of which nothing is expected. */
const OTHER_KEY = 1_000;

type Server = Awaited<ReturnType<typeof openServer>>;

async function openServer(url: string, timeoutMs: number, ban = DEFAULT_BAN) {
  const stores = await openPostgres(url, { schema: "production", timeoutMs });
  const limiter = stores.openKeyLimiter({ clock: createClock(), ban: () => ban, server: "server" });
  return {
    /** "unknown" if the request may have been counted. */
    async outcome(id: number, limits = FREE): Promise<string> {
      try {
        return (await limiter.decide(key(id), limits)).outcome;
      } catch (error) {
        if (!(error instanceof Unavailable)) throw error;
        return "unknown";
      }
    },
    /** Resolves once the server has handed over what it knows. */
    untilAvailable: () => untilAvailable(async () => limiter.decide(key(OTHER_KEY), FREE)),
    bansInTrail: () => stores.audit.listAudit({ limit: 10, action: "key.banned" }),
    async close() {
      await limiter.close();
      await stores.close();
    },
  };
}

/** Servers that are closed before what is deferred on the stack. */
async function openServers(
  opened: AsyncDisposableStack,
  {
    url,
    count = 3,
    timeoutMs = 30_000,
    ban = DEFAULT_BAN,
  }: {
    readonly url: string;
    readonly count?: number;
    readonly timeoutMs?: number;
    readonly ban?: typeof DEFAULT_BAN;
  },
): Promise<readonly Server[]> {
  const servers: Server[] = [];
  // The first one makes the tables.
  for (let i = 0; i < count; i++) {
    const server = await openServer(url, timeoutMs, ban);
    opened.defer(() => server.close());
    servers.push(server);
  }
  return servers;
}

/** Each server sends so many requests for each key, all together. Resolves to the outcomes of each key. */
async function sendEach(servers: readonly Server[], ids: readonly number[], requests: number) {
  return await Promise.all(
    ids.map((id) =>
      Promise.all(servers.flatMap((each) => Array.from({ length: requests }, () => each.outcome(id)))),
    ),
  );
}

const countOf = (outcomes: readonly string[], outcome: string) =>
  outcomes.filter((each) => each === outcome).length;

/** Nothing is allowed beyond the limit, and only a request whose response is unknown may have used it. */
function expectTheLimit(outcomes: readonly string[]): void {
  const [allowed, unknown] = [countOf(outcomes, "allowed"), countOf(outcomes, "unknown")];
  expect(allowed).toBeWithin(Math.max(0, FREE.perMinute - unknown), FREE.perMinute + 1);
}

test.each([2, 3, 8])(
  "%i servers allow exactly the limit, in 50 bursts on keys that nobody has used",
  async (count) => {
    await using opened = new AsyncDisposableStack();
    const servers = await openServers(opened, { url: await postgresUrl(), count });
    for (let burst = 0; burst < 50; burst++) {
      const outcomes = await sendEach(servers, [2 * burst + 2, 2 * burst + 1], Math.ceil(90 / count));
      for (const each of outcomes) expect(countOf(each, "allowed")).toBe(FREE.perMinute);
    }
  },
);

test("servers allow no more than the limit while connections are cut and acknowledgements are lost", async () => {
  await using opened = new AsyncDisposableStack();
  const proxy = opened.use(await startStallingProxy(new URL(await postgresUrl())));
  const servers = await openServers(opened, { url: proxy.url, timeoutMs: 2_000 });
  const ids = [1, 2, 3];
  const first = await sendEach(servers, ids, 5);
  // PostgreSQL counts these, and nobody learns of it.
  proxy.delay(100);
  const lost = sendEach(servers, ids, 5);
  await Bun.sleep(50);
  proxy.cut();
  proxy.mend();
  proxy.delay(0);
  const second = await lost;
  expect(second.flat()).toContain("unknown");
  await Promise.all(servers.map((each) => each.untilAvailable()));
  const third = await sendEach(servers, ids, 30);
  for (const i of ids.keys()) expectTheLimit([first, second, third].flatMap((each) => each[i] ?? []));
});

test("PostgreSQL is killed during bursts, and the limit holds for everything that was answered", async () => {
  // What was committed in these seconds is lost.
  const postgres = await startPostgres({ settings: { wal_writer_delay: "10s" } });
  await using opened = new AsyncDisposableStack();
  opened.defer(postgres.stop);
  const servers = await openServers(opened, { url: postgres.url, timeoutMs: 10_000 });
  const ids = [1, 2, 3, 4, 5];
  const first = await sendEach(servers, ids, 5);
  const during = sendEach(servers, ids, 5);
  await postgres.kill();
  const second = await during;
  await postgres.restart();
  await Promise.all(servers.map((each) => each.untilAvailable()));
  const third = await sendEach(servers, ids, 30);
  for (const i of ids.keys()) expectTheLimit([first, second, third].flatMap((each) => each[i] ?? []));
}, 60_000);

test("a failover to a standby that had been cut off keeps bans and quotas that clients were told", async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  await using opened = new AsyncDisposableStack();
  opened.defer(standby.stop);
  const url = primary.url.replace(/(?=\/postgres$)/, `,${new URL(standby.url).host}`);
  const servers = await openServers(opened, { url, timeoutMs: 10_000, ban: AT_ONCE });
  const [one, other] = servers;
  const ids = [1, 2];
  const before = await sendEach(servers, ids, 5);
  // Whoever watches over PostgreSQL lets it go on alone.
  await standby.stop();
  await stopWaitingForStandby(primary);
  const alone = await sendEach(servers, ids, 10);
  const usedUp: Limits = { perMinute: 60, perDay: 1 };
  expect(await one?.outcome(3, usedUp)).toBe("allowed");
  await until(async () => (await one?.outcome(4, { perMinute: 1, perDay: 1 })) === "banned", 10_000);

  await primary.kill();
  await standby.restart();
  await promote(standby);
  await Promise.all(servers.map((each) => each.untilAvailable()));
  // The client of the banned key goes to a server that has not seen it.
  expect(await other?.outcome(4, { perMinute: 1, perDay: 1 })).toBe("banned");
  expect(await other?.outcome(3, usedUp)).toBe("limited");
  const after = await sendEach(servers, ids, 10);
  for (const i of ids.keys()) expectTheLimit([before, alone, after].flatMap((each) => each[i] ?? []));
  // Its audit entry is there once; the other bans are new.
  const { items = [] } = (await one?.bansInTrail()) ?? {};
  expect(items.filter(({ target }) => target?.id === 4n)).toHaveLength(1);
}, 90_000);
