import { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { Unavailable } from "../../../src/api/errors.ts";
import { messageOf } from "../../../src/runtime/message-of.ts";
import { laterOf, type Timeline, UNKNOWN_TIMELINE } from "../../../src/domain/timeline.ts";
import { createLog } from "../../../src/observe/log.ts";
import { openPostgres } from "../../../src/store/postgres/open-postgres.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { storePolicy, UNLIMITED } from "../../../trials/harness/policy.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { bearer } from "../../bearer.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { until, untilFound } from "../../timing.ts";

const servers: Server[] = [];
afterAll(async () => {
  await cleanUp();
  await Promise.all(servers.map((server) => server.stop()));
});

/** A primary with a standby that it does not wait for, and their URL. */
async function startPair() {
  const primary = await startPostgres();
  servers.push(primary);
  const standby = await startAsyncStandby(primary);
  return { primary, standby, url: urlOf(primary, standby) };
}

async function startAsyncStandby(primary: Server): Promise<Server> {
  const standby = await startStandby(primary, { isSynchronous: false });
  servers.push(standby);
  return standby;
}

/** The URL of several servers, in this order. */
const urlOf = (first: Server, ...others: Server[]) =>
  first.url.replace(/@([^/]+)/, `@${[first, ...others].map(hostOf).join(",")}`);

const hostOf = ({ url }: Server) => new URL(url).host;

async function petsIn({ url }: Server): Promise<string[]> {
  await using sql = new SQL(url, { max: 1 });
  const pets = await sql<{ name: string }[]>`SELECT name FROM production.pets ORDER BY id`;
  return pets.map(({ name }) => name);
}

async function countIn({ url }: Server, table: string): Promise<number> {
  await using sql = new SQL(url, { max: 1 });
  const [found] = await sql.unsafe<[{ count: number }]>(`SELECT count(*)::int FROM production.${table}`);
  return found.count;
}

/** The sessions of servers of Petstore, with the times at which they began; undefined if there are none. */
async function sessionsOn({ url }: Server): Promise<readonly unknown[] | undefined> {
  await using sql = new SQL(url, { max: 1 });
  const sessions = await sql`
    SELECT pid, backend_start FROM pg_stat_activity WHERE application_name LIKE 'petstore %' ORDER BY pid`;
  return sessions.length > 0 ? [...sessions] : undefined;
}

/** The standby gets nothing more of its primary. */
async function detach({ url }: Server): Promise<void> {
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe("ALTER SYSTEM SET primary_conninfo = ''");
  await sql`SELECT pg_reload_conf()`;
  await until(async () => (await sql`SELECT FROM pg_stat_wal_receiver`).length === 0, 10_000);
}

/** Why a command cannot open the database. */
const refusal = (cli: InProcessCli, argv: readonly string[]) =>
  cli.run(argv).then(
    ({ code }) => `exit status ${code}`,
    (error: unknown) => messageOf(error),
  );

const create = (name: string) => ["keys", "create", "--plan", "free", "--name", name];

test("no process that starts uses a primary that was replaced, until somebody accepts it", async () => {
  const { primary, standby, url } = await startPair();
  const [here, stranger] = [new InProcessCli(), new InProcessCli()];
  const alone = ["--database-url", url];
  await (await here.serve(alone)).stop();
  await primary.kill();
  await promote(standby);
  // The directory keeps it for all processes on this machine.
  expect((await here.run([...create("late"), ...alone])).code).toBe(0);
  await primary.restart();
  await standby.kill();

  const replaced = `${hostOf(primary)}/postgres was the primary before another server was promoted (its timeline is 1, and 2 was seen)`;
  expect(await refusal(here, ["keys", "revoke", "1", "--yes", ...alone])).toContain(replaced);
  expect(await refusal(here, ["serve", "--port", "0", ...alone])).toContain(replaced);
  expect(await refusal(here, ["export", "keys", ...alone])).toContain(replaced);
  expect(await here.out(["doctor", ...alone])).toContain(replaced);
  const unknown = `${hostOf(primary)}/postgres accepts writes, but another server may have replaced it (${hostOf(standby)}/postgres: `;
  expect(await refusal(stranger, ["keys", "list", ...alone])).toContain(unknown);
  expect(await refusal(stranger, ["serve", "--port", "0", ...alone])).toContain(unknown);

  // An operator knows that the new primary will not come back.
  expect((await here.run(["keys", "list", "--accept-primary", ...alone])).code).toBe(0);
  expect((await here.run(["keys", "list", ...alone])).code).toBe(0);
}, 60_000);

test("of two standbys that were promoted independently, all processes use the one that was used first", async () => {
  const { primary, standby: one } = await startPair();
  const other = await startAsyncStandby(primary);
  const url = urlOf(primary, other, one);
  const cli = new InProcessCli();
  // All processes are on one machine.
  const storage = ["--database-url", url, "--data", cli.dataDir];
  await storePolicy(storage, UNLIMITED);
  const server = await cli.serve(storage);
  const post = async (name: string) => {
    const headers = { ...bearer(server.secret), "Content-Type": "application/json" };
    const body = JSON.stringify({ name, categoryId: 1 });
    return (await fetch(`${server.url}/pets`, { method: "POST", headers, body })).status;
  };
  await until(async () => (await post("before")) === 201, 10_000);
  for (const each of [one, other]) await until(async () => (await petsIn(each)).includes("before"), 10_000);
  await primary.kill();
  await promote(one);
  await until(async () => (await post("one")) === 201, 10_000);
  await promote(other);

  const independent = `${hostOf(other)}/postgres and another server were promoted independently (both have timeline 2)`;
  const [here, elsewhere] = [new InProcessCli(), new InProcessCli()];
  // Both accept writes, and the other one comes first.
  expect((await elsewhere.run([...create("ann"), ...storage])).code).toBe(0);
  expect(await countIn(one, "api_keys")).toBe(2);
  await one.kill();
  expect(await refusal(cli, ["keys", "list", "--database-url", url])).toContain(independent);
  expect(await refusal(here, [...create("lost"), ...storage])).toContain(independent);
  expect(await refusal(here, ["serve", "--port", "0", ...storage])).toContain(independent);
  expect(await post("lost")).toBe(503);
  expect(await petsIn(other)).toEqual(["before"]);
  await one.restart();
  await until(async () => (await post("again")) === 201, 10_000);
  expect((await petsIn(one)).slice(-1)).toEqual(["again"]);

  // Nothing is known of them, so none of them is used.
  const several = `${hostOf(other)}/postgres and ${hostOf(one)}/postgres accept writes and were promoted independently`;
  const stranger = new InProcessCli();
  const alone = ["--database-url", urlOf(other, one)];
  expect(await refusal(stranger, ["keys", "list", ...alone])).toContain(several);
  expect(await refusal(stranger, ["keys", "list", ...alone, "--accept-primary"])).toContain(several);
  // An operator chooses the other one. The server that is running follows.
  await one.kill();
  expect((await elsewhere.run(["keys", "list", ...storage, "--accept-primary"])).code).toBe(0);
  await one.restart();
  await until(async () => (await post("chosen")) === 201 && (await petsIn(other)).includes("chosen"), 10_000);
  await server.stop();
}, 60_000);

test("a server on a primary that was replaced leaves it as soon as it finds the new one", async () => {
  const { primary, standby, url } = await startPair();
  const storage = ["--database-url", url];
  await storePolicy(storage, UNLIMITED);
  const server = await new InProcessCli().serve(storage);
  /** Repeats the request on 503, as the client library does. */
  const post = (name: string) =>
    until(async () => {
      const headers = {
        ...bearer(server.secret),
        "Content-Type": "application/json",
        "Idempotency-Key": name,
      };
      const body = JSON.stringify({ name, categoryId: 1 });
      return (await fetch(`${server.url}/pets`, { method: "POST", headers, body })).status === 201;
    }, 10_000);
  await post("before");
  await until(async () => (await petsIn(standby)).includes("before"), 10_000);
  const asking = await untilFound(() => sessionsOn(standby), 10_000);
  await Bun.sleep(2_500);
  // It keeps its connection to the standby.
  expect(await sessionsOn(standby)).toEqual(asking);
  await promote(standby);
  // Its connections to the old primary work, and no other process has seen the promotion.
  await post("lost");
  await until(() => server.lines.some((line) => line.includes('"database.available"')), 10_000);
  expect(server.lines.find((line) => line.includes('"database.unavailable"'))).toContain(
    "was the primary before another server was promoted",
  );
  await post("after");
  expect(await petsIn(standby)).toEqual(["before", "after"]);
  expect(await petsIn(primary)).toEqual(["before", "lost"]);
  await server.stop();
}, 60_000);

test("a standby that is away prevents no start once the timeline of the primary is known", async () => {
  const { standby, url } = await startPair();
  const cli = new InProcessCli();
  // Nothing is known yet, and both respond.
  await (await cli.serve(["--database-url", url])).stop();
  await standby.kill();
  await (await cli.serve(["--database-url", url])).stop();
}, 60_000);

test("in an empty directory, while a standby is away: a server starts if others use the primary, and waits otherwise", async () => {
  const { standby, url } = await startPair();
  const storage = ["--database-url", url, "--admin-address", "127.0.0.1:0"];
  const running = await new InProcessCli().serve(storage);
  await standby.kill();
  await (await new InProcessCli().serve(storage)).stop();
  expect((await new InProcessCli().run(["keys", "list", ...storage.slice(0, 2)])).code).toBe(0);

  await running.stop();
  const stranger = new InProcessCli();
  const command = ["keys", "list", ...storage.slice(0, 2)];
  const answer = () => refusal(stranger, command);
  // The reports of the last seconds are from a server that has stopped.
  await until(async () => (await answer()).includes("another server may have replaced it"), 10_000);
  const lines: string[] = [];
  const printed = Promise.withResolvers<string>();
  const stopping = Promise.withResolvers<"SIGTERM">();
  const ended = stranger.run(
    ["serve", "--port", "0", ...storage],
    {},
    {
      print: async (text) => printed.resolve(String(text)),
      openLog: (options) => createLog({ ...options, format: "json", write: (line) => void lines.push(line) }),
      stopSignal: () => stopping.promise,
    },
  );
  await until(() => lines.some((line) => line.includes('"database.primary-unknown"')), 10_000);
  await standby.restart();
  expect(await printed.promise).toContain("  API  ");
  expect(lines.filter((line) => line.includes('"database.primary-unknown"'))).toEqual([
    expect.stringContaining(`another server may have replaced it (${hostOf(standby)}/postgres: `),
  ]);
  stopping.resolve("SIGTERM");
  expect((await ended).code).toBe(0);
}, 60_000);

test("after a failover that lost changes of keys, lost keys get 401, and a key that is revoked does within a second", async () => {
  const { primary, standby, url } = await startPair();
  const cli = new InProcessCli();
  const storage = ["--database-url", url];
  await storePolicy(storage, UNLIMITED);
  const server = await cli.serve(storage);
  const statusOf = async (key: string) => {
    const headers = bearer(key);
    return (await fetch(`${server.url}/pets`, { headers })).status;
  };
  const createKey = async (name: string) =>
    (await cli.json<{ key: string }>(...create(name), ...storage)).key;
  const kept = await createKey("kept");
  const ann = ["operators", "create", "--name", "ann", "--role", "viewer"];
  const { token } = await cli.json<{ token: string }>(...ann, ...storage);
  const adminStatus = async () => {
    const headers = bearer(token);
    return (await fetch(`${server.adminUrl}/api/keys`, { headers })).status;
  };
  await until(async () => (await countIn(standby, "operators")) === 2, 10_000);
  await detach(standby);
  await cli.json("operators", "rotate", "ann", ...storage);
  await until(async () => (await adminStatus()) === 401, 10_000);
  const lost = await createKey("lost");
  for (const plan of ["pro", "business"]) await cli.json("keys", "update", "2", "--plan", plan, ...storage);
  await until(() => server.lines.some((line) => /"key.changed".*"plan":"business"/.test(line)), 10_000);
  for (const key of [kept, lost]) await until(async () => (await statusOf(key)) === 200, 10_000);
  await primary.kill();
  await promote(standby);

  await until(async () => (await statusOf(lost)) === 401, 10_000);
  await until(async () => (await statusOf(kept)) === 200, 10_000);
  // So is the rotation of the token.
  await until(async () => (await adminStatus()) === 200, 10_000);
  const isEntry = (line: string) => line.includes('"database.changes-lost"');
  await until(() => server.lines.some(isEntry), 10_000);
  const entry = JSON.parse(server.lines.find(isEntry) ?? "");
  expect(entry).toMatchObject({ level: "error", revision: 3 });
  // The server reads a key as it is now, so it may know the plan before the number of that change.
  expect([5, 6]).toContain(entry.revisionBefore);
  await cli.json("keys", "revoke", "2", "--yes", ...storage);
  const revokedAt = performance.now();
  let polls = 0;
  while ((await statusOf(kept)) !== 401) {
    // A busy machine may take long for a few requests, and not for many.
    if (performance.now() - revokedAt > 1_000 && ++polls > 100) throw new Error("the key is still valid");
    await Bun.sleep(10);
  }
  await server.stop();
}, 60_000);

test("a server that stood still acknowledges no write of a primary that was replaced meanwhile", async () => {
  const { url } = await startPair();
  let latest = UNKNOWN_TIMELINE;
  let lookMs = 0;
  const latestTimeline = {
    async raise(timeline: Timeline) {
      latest = laterOf(latest, timeline);
      await Bun.sleep(lookMs);
      return latest;
    },
    replace: async () => {},
  };
  const stores = await openPostgres(url, { schema: "production", latestTimeline });
  const write = () => stores.clientStore.createPet({ name: "Rex", categoryId: 1n }, Date.now());
  expect(await write()).toMatchObject({ id: 1n });
  // Another process has seen a promotion, and the write ends before this one has looked.
  latest = { number: latest.number + 1, mark: "other" };
  lookMs = 100;
  Bun.sleepSync(1_600);
  await expect(write()).rejects.toThrow(Unavailable);
  await stores.close();
});

test("processes that start at the same time in an empty database use the same primary", async () => {
  const { url } = await startPair();
  let latest = UNKNOWN_TIMELINE;
  const latestTimeline = {
    async raise(timeline: Timeline) {
      latest = laterOf(latest, timeline);
      return latest;
    },
    replace: async () => {},
  };
  let calls = 0;
  const stores = await openPostgres(url, {
    schema: "production",
    latestTimeline: {
      ...latestTimeline,
      // It has found no tables. Before it says so, another process creates them and stores a mark.
      async raise(timeline: Timeline) {
        if (++calls === 2) await (await openPostgres(url, { schema: "production", latestTimeline })).close();
        return latestTimeline.raise(timeline);
      },
    },
  });
  expect(await stores.clientStore.createPet({ name: "Rex", categoryId: 1n }, Date.now())).toMatchObject({
    id: 1n,
  });
  expect(latest.mark).not.toBe("");
  await stores.close();
});

test("a process that waits for a frozen primary uses the standby that is promoted meanwhile", async () => {
  const { primary, standby, url } = await startPair();
  const { clientStore, close } = await openPostgres(url, { schema: "production" });
  const write = (opened: Pick<typeof clientStore, "createPet">, name: string) =>
    opened.createPet({ name, categoryId: 1n }, Date.now());
  await write(clientStore, "before");
  await close();
  await until(async () => (await petsIn(standby)).length === 1, 10_000);
  primary.freeze();
  const opening = openPostgres(url, { schema: "production" });
  // The standby responds that it is one.
  await Bun.sleep(700);
  await promote(standby);
  primary.thaw();
  const stores = await opening;
  await write(stores.clientStore, "after");
  await stores.close();
  expect(await petsIn(standby)).toEqual(["before", "after"]);
});
