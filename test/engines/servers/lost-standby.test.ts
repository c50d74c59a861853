import { SQL } from "bun";
import { expect, test } from "bun:test";
import { messageOf } from "../../../src/runtime/message-of.ts";
import { startPostgres, startStandby } from "../../../trials/harness/postgres.ts";
import { storePolicy } from "../../../trials/harness/policy.ts";
import { bearer } from "../../bearer.ts";
import { cleanUpAfterAll, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";

cleanUpAfterAll();

test("the loss of the only synchronous standby: reads go on, and the log, /readyz, metrics and the API name it", async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  const cli = new InProcessCli();
  const flags = ["--database-url", primary.url, "--log-format", "json", "--admin-address", "127.0.0.1:0"];
  const server = await cli.serve([...flags, "--metrics-public"]);
  const { key } = JSON.parse(
    (await cli.run(["keys", "create", "--name", "app", "--plan", "business", "--json", ...flags.slice(0, 2)]))
      .out,
  );
  const headers = { ...bearer(key), "Content-Type": "application/json" };
  const create = async () => {
    const body = JSON.stringify({ name: "Rex", categoryId: 7 });
    return (await fetch(`${server.url}/pets`, { method: "POST", headers, body })).status;
  };
  const list = async () => (await fetch(`${server.url}/pets`, { headers })).status;
  const adminText = async (path: string) => (await fetch(new URL(path, server.adminUrl))).text();
  const databaseLine = async () => (await adminText("/readyz?verbose")).split("\n")[0];
  const gauge = async () =>
    /^petstore_commits_wait_for_standby (\d)$/m.exec(await adminText("/metrics"))?.[1];
  const events = (name: string) => server.lines.filter((line) => line.includes(`"${name}"`));
  await until(async () => (await create()) === 201, 5_000);
  expect(await databaseLine()).toBe("[+]database ok");

  await standby.stop();
  // The second one waits for the lock of the first.
  expect([await create(), await create(), await list()]).toEqual([503, 503, 200]);
  expect(events("database.waits-for-standby").map((line): unknown => JSON.parse(line))).toMatchObject([
    { level: "error", synchronousStandbyNames: "*", connectedStandbys: [] },
  ]);
  expect(events("database.unavailable")).toEqual([]);
  const reasons = events("request.unavailable").map((line): string => JSON.parse(line).reason);
  expect(reasons.length).toBe(2);
  for (const reason of reasons)
    expect(reason).toStartWith("PostgreSQL: commits wait for a synchronous standby (");
  expect(await databaseLine()).toBe("[+]database ok: reads; writes wait for a synchronous standby");
  await until(async () => (await gauge()) === "1", 2_000);
  // A command says it, too.
  const adding = cli.run(["pets", "add", "--name", "Rex", "--category", "7", ...flags.slice(0, 2)]);
  await expect(adding).rejects.toThrow("commits wait for a synchronous standby");

  await standby.restart();
  await until(async () => (await create()) === 201, 5_000);
  await until(() => events("database.commits-again").length === 1, 2_000);
  expect(await databaseLine()).toBe("[+]database ok");
  await server.stop();
  await Promise.all([primary.stop(), standby.stop()]);
}, 60_000);

test("the loss of the only synchronous standby: a ban, an unban and expired quotas delay no other key", async () => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  const cli = new InProcessCli();
  const storage = ["--database-url", primary.url];
  const plans = { free: { perMinute: 1, perDay: 1_000 } };
  await storePolicy(storage, { plans, ban: { strikes: 1, graceMs: 0 } });
  const server = await cli.serve([...storage, "--admin-address", "off"]);
  const createKey = async (name: string, plan: string) => {
    const { out } = await cli.run(["keys", "create", "--name", name, "--plan", plan, "--json", ...storage]);
    const { id, key }: { id: number; key: string } = JSON.parse(out);
    const request = () => fetch(`${server.url}/pets`, { headers: bearer(key) });
    return {
      id,
      list: async () => (await request()).status,
      isBanned: async () => (await (await request()).text()).includes("key_banned"),
    };
  };
  const [banned, other] = [await createKey("banned", "free"), await createKey("other", "business")];
  expect([await banned.list(), await other.list()]).toEqual([200, 200]);
  await standby.stop();

  // No response says that the key is banned before the standby has it: the ban would be lost with the primary.
  const during = Promise.all(Array.from({ length: 10 }, () => banned.list()));
  const expectNoDelay = async () => {
    for (let i = 0; i < 100; i++) expect(await other.list()).toBe(200);
  };
  await expectNoDelay();
  expect((await during).every((status) => [429, 503].includes(status))).toBeTrue();
  expect(await banned.list()).toBe(503);

  await using sql = new SQL(primary.url, { max: 1, connection: { synchronous_commit: "off" } });
  await sql`INSERT INTO production.quotas SELECT n, '{0,0,-1,0,0,0,-1,0,-1,-1}', 0 FROM generate_series(1000, 1099) AS n`;
  await expectNoDelay();
  expect(await sql`SELECT FROM production.quotas WHERE expires_at = 0`).toEqual([]);

  const unbanned = cli.run(["keys", "unban", `${banned.id}`, ...storage]);
  // The command learns it from the statement that waits for a lock, or its commit has an unknown outcome.
  expect(await unbanned.then(({ err }) => err, messageOf)).toMatch(
    /commits wait for a synchronous standby|it is not known whether/,
  );
  await expectNoDelay();
  await standby.restart();
  await until(() => banned.isBanned(), 10_000);
  await server.stop();
  await Promise.all([primary.stop(), standby.stop()]);
}, 60_000);
