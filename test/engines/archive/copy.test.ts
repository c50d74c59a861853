import { afterAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { Database } from "bun:sqlite";
import { bearer } from "../../bearer.ts";
import { version } from "../../../package.json";
import { existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { contentsIn, postgresIn, sqliteIn } from "../../../trials/harness/contents.ts";
import { startPetstore } from "../../../trials/harness/petstore.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import type { Contents } from "../../../src/archive/contents.ts";
import type { WorkProgress } from "../../../src/archive/progress.ts";
import { copyTables } from "../../../src/archive/copy-tables.ts";
import type { NewAuditEntry } from "../../../src/domain/audit.ts";
import { newQuota } from "../../../src/domain/rate-limit.ts";
import { openQuotaStore } from "../../../src/store/sqlite/quota-store.ts";
import { acquireLock } from "../../../src/store/sqlite/process-lock.ts";
import type { TableStore } from "../../../src/store/sql/table-store.ts";
import { recordDurableSteps } from "../../archive/durable-steps.ts";
import { fillData, NOW } from "../../archive/sample-data.ts";
import { cleanUp, InProcessCli, petstore, cliDirectory, wrongUsage } from "../../cli/cli.ts";

const PETS = 2_100;
const filled = new InProcessCli();
await fillData(filled.dataDir, PETS);
const original = await contentsIn(sqliteIn(filled.dataDir));
afterAll(cleanUp);

/** The times of windows and bans in PostgreSQL are moved to our clock, give or take the time of a command. */
function withTimes(keys: unknown, time: (ms: number) => unknown): unknown {
  return JSON.parse(JSON.stringify(keys), (name, value) =>
    /^(?:resetsAt|bannedUntil)$/.test(name) && typeof value === "string" ? time(Date.parse(value)) : value,
  );
}

const placeOf = (url: string) => `PostgreSQL at ${new URL(url).host}${new URL(url).pathname}`;
describe("petstore copy", () => {
  test("to PostgreSQL and back: the same rows, identifiers, counts and bans, and one audit entry for each copy", async () => {
    const url = await postgresUrl();
    await using sql = new SQL(url, { max: 1 });
    // An administrator makes the schema who grants the server no more than it needs.
    await sql`CREATE SCHEMA production`;
    // PostgreSQL counts by the machine's clock, and so do the commands that show its counts.
    const listKeys = (cli: InProcessCli, ...flags: string[]) => {
      cli.clock.now = cli.clock.steadyNow = () => Date.now();
      return cli.json("keys", "list", ...flags);
    };
    const before = await listKeys(filled);
    const to = await filled.run(["copy", "--to", url]);
    expect(to).toMatchObject({ code: 0, err: "" });
    expect(to.out).toMatch(/^pets +2,099  [\da-f]{16}$/m);
    expect(to.out).toEndWith("Copied the used quotas of 2 keys.\n");
    expect(await contentsIn(postgresIn(url), original.counters)).toEqual(original);
    const usage = ["usage", "--since", "2026-10-01"];
    const usageBefore = await filled.json(...usage);
    expect(usageBefore).toMatchObject([{ admitted: 9, limited: 2 }, { admitted: 9 }]);
    expect(await filled.json(...usage, "--database-url", url)).toEqual(usageBefore);
    const inPostgres = new InProcessCli();
    inPostgres.clock.time = filled.clock.time;
    const shared = await listKeys(inPostgres, "--database-url", url);
    expect(withTimes(shared, (ms) => ms)).toEqual(withTimes(before, (ms) => expect.closeTo(ms, -4)));

    const again = await filled.run(["copy", "--to", url]);
    expect(again).toMatchObject({ code: 0, out: expect.stringContaining("there is nothing to copy") });

    const back = new InProcessCli({ hasData: false });
    back.clock.time = filled.clock.time;
    mkdirSync(back.dataDir, { recursive: true });
    const quotas = openQuotaStore(join(back.dataDir, "production-limits.db"));
    quotas.save([[{ kind: "key", id: 4_711 }, newQuota()]]);
    quotas.close();
    writeFileSync(join(back.dataDir, "production-limits.db.copy"), "left by an interrupted copy");
    const steps = recordDurableSteps();
    for (let i = 0; i < 2; i++) expect(await back.run(["copy", "--from", url])).toMatchObject({ code: 0 });
    steps[Symbol.dispose]();
    // What is moved away had its name before.
    expect(steps.faults().filter((fault) => !fault.includes(".before-"))).toEqual([]);
    expect(steps.named).toContain("production-limits.db");
    const inPostgresNow = await contentsIn(postgresIn(url));
    expect(await contentsIn(sqliteIn(back.dataDir), inPostgresNow.counters)).toEqual(inPostgresNow);
    expect(await listKeys(back)).toEqual(before);
    expect(await back.json(...usage)).toEqual(usageBefore);
    expect(existsSync(join(back.dataDir, "production.db.copy"))).toBeFalse();
    const kept = readdirSync(back.dataDir).find((name) => /^production-limits\.db\.before-.*Z$/.test(name));
    const keptQuotas = openQuotaStore(join(back.dataDir, kept ?? ""));
    expect([...keptQuotas.load()].map(([subject]) => subject.id)).toEqual([4_711]);
    keptQuotas.close();

    // One entry for each copy, none for a repetition.
    const place = placeOf(url);
    const copies = async (cli: InProcessCli, ...flags: string[]) =>
      (await cli.json<{ after: unknown }[]>("audit", "--action", "data.copied", ...flags)).map(
        ({ after }) => after,
      );
    const first = { from: `SQLite in ${filled.dataDir}`, to: place };
    expect(await copies(filled)).toEqual([]);
    expect(await copies(filled, "--database-url", url)).toEqual([first]);
    const second = { from: place, to: `SQLite in ${back.dataDir}` };
    expect(new Set(await copies(back))).toEqual(new Set([first, second]));
  });

  test("a server serves the copy; while it does, and after it has written, nothing is copied", async () => {
    const url = await postgresUrl();
    const cli = new InProcessCli();
    const { key } = await cli.json<{ key: string }>("keys", "create", "--name", "app", "--plan", "pro");
    expect((await cli.run(`copy --to ${url}`)).code).toBe(0);
    const storage = ["--data", cli.dataDir, "--database-url", url];
    const server = await startPetstore(["--port", "0", "--admin-address", "off", ...storage]);
    const headers = { ...bearer(key), "Content-Type": "application/json" };
    const body = '{"name":"Rex","categoryId":1}';
    expect((await fetch(`${server.url}/pets`, { method: "POST", headers, body })).status).toBe(201);
    const running = await petstore(`copy --from ${url} --data ${join(cli.dataDir, "other")}`);
    expect(running.err).toMatch(/^petstore: \d+ sessions? of Petstore in production use PostgreSQL at /);
    expect(await server.stop("SIGTERM")).toBe(0);
    expect(await cli.err(`copy --to ${url}`)).toEndWith(
      " has other data of production, and a copy overwrites nothing; choose another database, or remove that data first if nothing of it is needed",
    );
  });

  test("wrong usage and obstacles are one line each", async () => {
    const cli = new InProcessCli({ hasData: false });
    const url = await postgresUrl();
    const neither = "copy needs --to or --from: one of them, the PostgreSQL database to copy to or from";
    expect(await cli.run("copy")).toEqual(wrongUsage(neither));
    expect(await cli.err(`copy --to ${url} --from ${url}`)).toBe(neither);
    const database = join(cli.dataDir, "production.db");
    expect(await cli.err(`copy --to ${url}`)).toBe(`${database} does not exist; see --data and --env`);
    const empty = await cli.err(`copy --from ${url}`);
    expect(empty).toEndWith(" has no data of production; see --from and --env");
    expect(await filled.err("copy --to postgres://ann:s3cret@127.0.0.1:1/pets")).toBe(
      "PostgreSQL at 127.0.0.1:1/pets has no complete copy yet: Failed to connect; the same command begins again",
    );
    const lock = acquireLock(join(filled.dataDir, "production.lock"));
    expect(await filled.err(`copy --to ${url}`)).toBe(
      `a server or another copy is running on ${filled.dataDir} (production); stop it first`,
    );
    lock?.release();
  });
});

test("tables of a newer release are not copied, because the copy would lack what is new", async () => {
  const { from, fromData } = await newSource(10);
  const url = await postgresUrl();
  await copyTables({ from, to: postgresIn(url), ...rest });
  const step = (oldestRelease: string) =>
    `INSERT INTO production.schema_migrations (version, name, oldest_release)
     VALUES (${oldestRelease === "1.0.0" ? 900 : 901}, 'later', '${oldestRelease}')`;
  await using postgres = new SQL(url, { max: 1 });
  const expectRejected = async (oldestRelease: string, reason: string) => {
    const sqlite = new Database(join(fromData, "production.db"));
    sqlite.run(step(oldestRelease).replace("production.", ""));
    sqlite.close();
    await postgres.unsafe(step(oldestRelease));
    const way = "; copy with the newest release that has run on it";
    const to = await petstore(["copy", "--to", await postgresUrl(), "--data", fromData]);
    expect(to.err).toBe(`petstore: SQLite in ${fromData} has tables of a newer release: ${reason}${way}\n`);
    const back = await petstore(["copy", "--from", url, "--data", cliDirectory()]);
    expect(back.err).toBe(`petstore: ${placeOf(url)} has tables of a newer release: ${reason}${way}\n`);
  };
  await expectRejected("1.0.0", `a copy by this petstore ${version} would lack what is new`);
  await expectRejected("999.1.0", `the tables need petstore 999.1.0 or newer; this is petstore ${version}`);
});

const entry: NewAuditEntry = { actor: { kind: "command line" }, at: NOW, action: "data.copied" };
const rest = { entry, beforePublish: async () => {} };

async function newSource(pets: number) {
  const fromData = cliDirectory();
  await fillData(fromData, pets);
  return { from: sqliteIn(fromData), fromData };
}

/** Fails after some batches, as a process that is killed between two transactions. */
async function interrupt(from: TableStore, to: TableStore, batches: number): Promise<void> {
  let left = batches;
  const onProgress = ({ step }: WorkProgress) => {
    if (step === "copying" && --left === 0) throw new Error("interrupted");
  };
  await expect(copyTables({ from, to, ...rest, onProgress })).rejects.toThrow("interrupted");
  expect(await to.exists()).toBeFalse();
}

/** Copies what is left, and compares the copy with its source. */
async function expectCopied(from: TableStore, to: TableStore): Promise<Contents> {
  expect((await copyTables({ from, to, ...rest })).outcome).toBe("copied");
  const contents = await contentsIn(from);
  expect(await contentsIn(to, contents.counters)).toEqual(contents);
  return contents;
}

describe.each(["PostgreSQL", "SQLite"])("a copy to %s that was interrupted", (engine) => {
  async function newEnds(pets = 2_100) {
    const toData = cliDirectory();
    const { from, fromData } = await newSource(pets);
    const url = engine === "PostgreSQL" ? await postgresUrl() : undefined;
    const to = url === undefined ? sqliteIn(toData) : postgresIn(url);
    return { from, to, fromData, toData, url };
  }

  test("is seen by nobody, and begins again", async () => {
    const { from, to } = await newEnds();
    for (const batches of [1, 3, 4]) await interrupt(from, to, batches);
    await expectCopied(from, to);
  });

  test("by something in its place has one audit entry when it is repeated", async () => {
    const { from, to, toData, url } = await newEnds(10);
    const run = async (statement: string) => {
      await using sql = new SQL(url ?? "", { max: 1 });
      await sql.unsafe(statement);
    };
    const place = join(toData, "production.db");
    const obstruct = () =>
      url === undefined ? mkdirSync(place) : run("CREATE SCHEMA production; CREATE TABLE production.x ()");
    const failed = copyTables({ from, to, entry, beforePublish: async () => obstruct() });
    await expect(failed).rejects.toThrow();
    await (url === undefined ? rmdirSync(place) : run("DROP SCHEMA production CASCADE"));
    const contents = await expectCopied(from, to);
    expect((await copyTables({ from, to, ...rest })).outcome).toBe("same");
    const entries = Number(contents.tables["audit"]?.rows);
    expect((await contentsIn(to)).tables["audit"]?.rows).toBe(entries + 1);
  });
});

test("a copy that differs from its source is not published", async () => {
  const url = await postgresUrl();
  const [from, postgres] = [sqliteIn(filled.dataDir), postgresIn(url)];
  const to: TableStore = {
    ...postgres,
    async create() {
      const target = await postgres.create();
      return {
        ...target,
        async complete(counters) {
          await target.complete(counters);
          await using sql = new SQL(url, { max: 1 });
          await sql`UPDATE production_copy.pets SET name = 'another name' WHERE id = 1`;
        },
      };
    },
  };
  await expect(copyTables({ from, to, ...rest })).rejects.toThrow("the copy differs from its source in pets");
  expect(await to.exists()).toBeFalse();
});
