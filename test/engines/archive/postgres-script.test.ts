import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { contentsIn } from "../../../trials/harness/contents.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { executable, PG_DUMP, PG_RESTORE } from "../../../trials/harness/programs.ts";
import { openStores } from "../../../src/adapters.ts";
import { storageIn } from "../../data-directory.ts";
import { postgresTables } from "../../../src/store/postgres/tables.ts";
import { cleanUp, failure, InProcessCli, resultOf, spawnTracked, cliDirectory } from "../../cli/cli.ts";
import { fillData } from "../../archive/sample-data.ts";
import { BY } from "../../key-store-arguments.ts";

const SCRIPT = join(import.meta.dir, "../../../deploy/postgres/backup");
const PATH = `${dirname(executable(PG_DUMP))}:${process.env.PATH}`;

const database = await postgresUrl();
const cli = new InProcessCli();
await fillData(cli.dataDir);
await cli.run(["copy", "--to", database]);
const stores = await openStores({ ...storageIn(""), databaseUrl: database });
await stores.serverReports.report("one", "{}");
await stores.questions.ask([{ id: "1", operation: "getSettings", query: "" }]);
const hash = (digit: string) => digit.repeat(64);
const token = { hash: hash("4"), hint: "" };
const operator = await stores.operators.createOperator({ name: "zoe", role: "admin" }, token, BY);
const ends = { operatorId: "id" in operator ? operator.id : 0, endsAt: Date.now() + 3_600_000 };
await stores.operators.createCode({ codeHash: hash("1"), ...ends }, Date.now());
const session = {
  cookieHash: hash("2"),
  secretHash: hash("3"),
  tokenHash: token.hash,
  createdAt: Date.now(),
};
await stores.operators.createSession({ ...session, ...ends }, { ...BY, action: "admin.signed-in" });
await stores.close();
afterAll(cleanUp);

let directory: string;
beforeEach(() => void (directory = cliDirectory()));

const backUp = (changes: Record<string, string> = {}) => {
  const variables = { PATH, PETSTORE_DATABASE_URL: database, ...changes };
  return resultOf(spawnTracked([SCRIPT, directory], { cwd: "/", variables }));
};

const dumps = () =>
  readdirSync(directory)
    .filter((name) => name.startsWith("production"))
    .toSorted();

const contents = (url: string) => contentsIn(postgresTables({ url, schema: "production" }));

describe("deploy/postgres/backup", () => {
  test("a dump restores to the same rows and identifiers, and its checksum is right", async () => {
    const { out, err, code } = await backUp();
    expect({ code, err }).toEqual({ code: 0, err: "" });
    const [dump = "", checksum = ""] = dumps();
    expect(out).toStartWith(`Backed up production to ${join(directory, dump)} (`);
    expect(dump).toMatch(/^production-\d{4}-\d{2}-\d{2}T\d{6}Z\.dump$/);
    expect(statSync(join(directory, dump)).mode & 0o077).toBe(0);
    const checked = Bun.spawnSync(["sha256sum", "--check", checksum], { cwd: directory });
    expect(checked.stdout.toString()).toBe(`${dump}: OK\n`);

    const restored = await postgresUrl();
    const flags = ["--exit-on-error", "--single-transaction", "--no-owner", `--dbname=${restored}`];
    const restore = Bun.spawnSync([executable(PG_RESTORE), ...flags, join(directory, dump)], {
      stderr: "pipe",
    });
    expect(restore.stderr.toString()).toBe("");
    expect(await contents(restored)).toEqual(await contents(database));
    await using recorded = new SQL(database, { max: 1 });
    const [row] = await recorded`SELECT value FROM production.server_settings WHERE name = 'last-backup'`;
    const [, date, hour, minute, second] = /(\d{4}-\d\d-\d\d)T(\d\d)(\d\d)(\d\d)Z/.exec(dump) ?? [];
    expect(row).toEqual({ value: String(Date.parse(`${date}T${hour}:${minute}:${second}Z`)) });

    const secrets = async (url: string) => {
      await using sql = new SQL(url, { max: 1 });
      const read = (table: string) => sql.unsafe(`SELECT * FROM production.${table}`).values();
      return await Promise.all(
        ["servers", "server_questions", "operator_sessions", "sign_in_codes", "quotas"].map(read),
      );
    };
    expect((await secrets(database)).map((rows) => rows.length)).toEqual([1, 1, 1, 1, 2]);
    expect(await secrets(restored)).toEqual([[], [], [], [], []]);
    const server = await new InProcessCli().serve(["--database-url", restored]);
    expect((await fetch(`${new URL(server.adminUrl).origin}/readyz`)).status).toBe(200);
    const [made, sessions] = await secrets(restored);
    await server.stop();
    expect([made?.length, sessions]).toEqual([1, []]);
    expect(made).not.toEqual((await secrets(database))[0]);
  });

  test("PETSTORE_KEEP removes the oldest dumps; what an interrupted run left is removed", async () => {
    for (const name of ["production-2020-01-01T000000Z.dump", "production-2021-01-01T000000Z.dump"]) {
      writeFileSync(join(directory, name), "");
      writeFileSync(join(directory, `${name}.sha256`), "");
    }
    writeFileSync(join(directory, ".production-2022-01-01T000000Z.dump.partial"), "");
    expect((await backUp({ PETSTORE_KEEP: "2" })).code).toBe(0);
    expect(dumps()).toHaveLength(4);
    expect(dumps()[0]).toBe("production-2021-01-01T000000Z.dump");
    expect(readdirSync(directory).filter((name) => name.endsWith(".partial"))).toEqual([]);
  });

  test("the password is not among the arguments of pg_dump, and the URL may be in a file", async () => {
    // In place of pg_dump: prints its arguments and the password, and fails.
    const fake = join(cliDirectory(), "bin");
    mkdirSync(fake);
    const text = '#!/bin/sh\necho "$@" "password: $PGPASSWORD" >&2\nexit 1\n';
    writeFileSync(join(fake, "pg_dump"), text, { mode: 0o755 });
    const file = join(fake, "url");
    writeFileSync(file, "postgres://ann:s3%40cret@db.example.com/pets\n");
    const { err, code } = await backUp({
      PATH: `${fake}:${PATH}`,
      PETSTORE_DATABASE_URL: "",
      PETSTORE_DATABASE_URL_FILE: file,
    });
    expect(code).toBe(1);
    expect(err).toEndWith("--dbname=postgres://ann@db.example.com/pets password: s3@cret\n");
    expect(dumps()).toEqual([]);
  });

  test.each([
    "postgres://ann:s3cr/et@127.0.0.1/pets",
    "postgres://ann:s3cr@et@127.0.0.1/pets",
    "postgres://ann@127.0.0.1/pets?sslmode=require&password=s3cret",
  ])("%s is refused, and nothing of the password is printed", async (url) => {
    const message =
      "backup: the URL of the database is not valid; it must be postgres://USER:PASSWORD@HOST/DATABASE, with @ as %40 and / as %2F in the password\n";
    expect(await backUp({ PETSTORE_DATABASE_URL: url })).toEqual(failure(message));
  });

  test("without a database, with wrong settings, and while another runs, it fails in one line", async () => {
    expect(await backUp({ PETSTORE_DATABASE_URL: "" })).toEqual(
      failure("backup: set PETSTORE_DATABASE_URL or PETSTORE_DATABASE_URL_FILE\n"),
    );
    const { err } = await backUp({ PETSTORE_KEEP: "0" });
    expect(err).toBe("backup: PETSTORE_KEEP must be an integer from 1 to 9999\n");
    const lock = join(directory, ".production.lock");
    const holder = spawnTracked(["flock", lock, "sh", "-c", "echo held; sleep 60"], { cwd: "/" });
    await holder.stdout.getReader().read();
    expect((await backUp()).err).toBe(`backup: another backup of production to ${directory} is running\n`);
    expect(dumps()).toEqual([]);
  });

  test("an environment without tables makes no dump", async () => {
    const { code } = await backUp({ PETSTORE_ENV: "staging" });
    expect(code).not.toBe(0);
    expect(readdirSync(directory)).toEqual([".staging.lock"]);
  });
});

test("sessions are named after the environment", async () => {
  await using sql = new SQL(database, { max: 1 });
  await using _ = await postgresTables({ url: database, schema: "production" }).read();
  const rows =
    await sql`SELECT application_name AS name FROM pg_stat_activity WHERE datname = current_database()`;
  expect(rows.map(({ name }: { name: string }) => name)).toContain("petstore production");
});
