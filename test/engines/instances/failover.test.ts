import { SQL } from "bun";
import { afterAll, expect, test } from "bun:test";
import { messageOf, Unavailable } from "../../../src/api/errors.ts";
import { openPostgres } from "../../../src/store/postgres/store.ts";
import { promote, startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import type { Server } from "../../../trials/harness/server.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { cleanUp, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";

const servers: Server[] = [];
afterAll(async () => {
  await cleanUp();
  await Promise.all(servers.map((server) => server.stop()));
});

/** A primary with a standby that it does not wait for, and their URL. */
async function startPair() {
  const primary = await startPostgres();
  servers.push(primary);
  const standby = await startStandby(primary, { isSynchronous: false });
  servers.push(standby);
  const url = primary.url.replace(/@([^/]+)/, `@$1,${hostOf(standby)}`);
  return { primary, standby, url };
}

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

/** The standby gets nothing more of its primary. */
async function detach({ url }: Server): Promise<void> {
  await using sql = new SQL(url, { max: 1 });
  await sql.unsafe("ALTER SYSTEM SET primary_conninfo = ''");
  await sql`SELECT pg_reload_conf()`;
  await until(async () => (await sql`SELECT FROM pg_stat_wal_receiver`).length === 0);
}

const UNLIMITED = ["--free-limits", "1000000/1000000", "--business-limits", "1000000/1000000"];

/** Why a command cannot open the database. */
const refusal = (cli: InProcessCli, argv: readonly string[]) =>
  cli.run(argv).then(
    ({ code }) => `exit status ${code}`,
    (error: unknown) => messageOf(error),
  );

const create = (name: string) => ["keys", "create", "--plan", "free", "--name", name];

test("no process that starts uses a primary that was replaced, until somebody accepts it", async () => {
  const { primary, standby, url } = await startPair();
  const [here, elsewhere, stranger] = [new InProcessCli(), new InProcessCli(), new InProcessCli()];
  const alone = ["--database-url", url];
  const shared = [...alone, "--limits-url", await valkeyUrl()];
  await (await here.serve(alone)).stop();
  await primary.kill();
  await promote(standby);
  // The commands without Valkey know it by the directory, those elsewhere by Valkey.
  expect((await here.run([...create("late"), ...shared])).code).toBe(0);
  await primary.restart();
  await standby.kill();

  const replaced = `${hostOf(primary)}/postgres was the primary before another server was promoted (its timeline is 1, and 2 was seen)`;
  for (const storage of [alone, shared]) {
    expect(await refusal(here, ["keys", "revoke", "1", "--yes", ...storage])).toContain(replaced);
    expect(await refusal(here, ["serve", "--port", "0", ...storage])).toContain(replaced);
  }
  expect(await refusal(elsewhere, ["keys", "revoke", "1", "--yes", ...shared])).toContain(replaced);
  expect(await refusal(here, ["export", "keys", ...shared])).toContain(replaced);
  expect(await here.out(["doctor", ...shared])).toContain(replaced);
  const unknown = `${hostOf(primary)}/postgres accepts writes, but another server may have replaced it (${hostOf(standby)}/postgres: `;
  expect(await refusal(stranger, ["keys", "list", ...alone])).toContain(unknown);
  expect(await refusal(stranger, ["serve", "--port", "0", ...alone])).toContain(unknown);

  // An operator knows that the new primary will not come back.
  expect((await here.run(["keys", "list", "--accept-primary", ...shared])).code).toBe(0);
  for (const [cli, storage] of [
    [here, alone],
    [elsewhere, shared],
  ] as const) {
    expect((await cli.run(["keys", "list", ...storage])).code).toBe(0);
  }
}, 60_000);

test("a server on a primary that was replaced leaves it as soon as another process knows the new one", async () => {
  const { primary, standby, url } = await startPair();
  const storage = ["--database-url", url, "--limits-url", await valkeyUrl()];
  const server = await new InProcessCli().serve([...storage, ...UNLIMITED]);
  /** Repeats the request on 503, as the client library does. */
  const post = (name: string) =>
    until(async () => {
      const headers = {
        Authorization: `Bearer ${server.secret}`,
        "Content-Type": "application/json",
        "Idempotency-Key": name,
      };
      const body = JSON.stringify({ name, categoryId: 1 });
      return (await fetch(`${server.url}/pets`, { method: "POST", headers, body })).status === 201;
    });
  await post("before");
  await until(async () => (await petsIn(standby)).includes("before"));
  await promote(standby);
  // Its connections to the old primary work, so it has no reason to look for another one.
  await post("lost");
  expect((await new InProcessCli().run([...create("late"), ...storage])).code).toBe(0);
  await until(() => server.lines.some((line) => line.includes('"database.available"')));
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
  const limits = ["--limits-url", await valkeyUrl()];
  const [first, second] = [new InProcessCli(), new InProcessCli()];
  // Nothing is known yet, and both respond.
  await (await first.serve(["--database-url", url])).stop();
  await (await first.serve(["--database-url", url, ...limits])).stop();
  await standby.kill();
  await (await first.serve(["--database-url", url])).stop();
  await (await second.serve(["--database-url", url, ...limits])).stop();
}, 60_000);

test("after a failover that lost changes of keys, lost keys get 401, and a key that is revoked does within a second", async () => {
  const { primary, standby, url } = await startPair();
  const cli = new InProcessCli();
  const storage = ["--database-url", url];
  const server = await cli.serve([...storage, ...UNLIMITED]);
  const statusOf = async (key: string) => {
    const headers = { Authorization: `Bearer ${key}` };
    return (await fetch(`${server.url}/pets`, { headers })).status;
  };
  const createKey = async (name: string) =>
    (await cli.json<{ key: string }>(...create(name), ...storage)).key;
  const kept = await createKey("kept");
  const ann = ["operators", "create", "--name", "ann", "--role", "viewer"];
  const { token } = await cli.json<{ token: string }>(...ann, ...storage);
  const adminStatus = async () => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${server.adminUrl}/api/keys`, { headers })).status;
  };
  await until(async () => (await countIn(standby, "operators")) === 2);
  await detach(standby);
  await cli.json("operators", "rotate", "ann", ...storage);
  await until(async () => (await adminStatus()) === 401);
  const lost = await createKey("lost");
  for (const plan of ["pro", "business"]) await cli.json("keys", "update", "2", "--plan", plan, ...storage);
  await until(() => server.lines.some((line) => /"key.changed".*"plan":"business"/.test(line)));
  for (const key of [kept, lost]) await until(async () => (await statusOf(key)) === 200);
  await primary.kill();
  await promote(standby);

  await until(async () => (await statusOf(lost)) === 401);
  await until(async () => (await statusOf(kept)) === 200);
  // So is the rotation of the token.
  await until(async () => (await adminStatus()) === 200);
  const isEntry = (line: string) => line.includes('"database.changes-lost"');
  await until(() => server.lines.some(isEntry));
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
  let highest = 0;
  let lookMs = 0;
  const highestTimeline = {
    async raise(timeline: number) {
      highest = Math.max(highest, timeline);
      await Bun.sleep(lookMs);
      return highest;
    },
    replace: async () => {},
  };
  const stores = await openPostgres(url, { schema: "production", highestTimeline });
  const write = () => stores.store.createPet({ name: "Rex", categoryId: 1n }, Date.now());
  expect(await write()).toMatchObject({ id: 1n });
  // Another process has seen a promotion, and the write ends before this one has looked.
  highest++;
  lookMs = 100;
  Bun.sleepSync(1_600);
  await expect(write()).rejects.toThrow(Unavailable);
  await stores.close();
});
