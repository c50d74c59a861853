import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { chmodSync } from "node:fs";
import { selfSigned } from "../../../trials/harness/certificates.ts";
import {
  postgresUrl,
  startPostgres,
  startStandby,
  stopWaitingForStandby,
} from "../../../trials/harness/postgres.ts";
import { cleanUp, InProcessCli, cliDirectory } from "../../cli/cli.ts";
import { diagnose } from "../../doctor/diagnose.ts";
import { until } from "../../timing.ts";

afterAll(cleanUp);

let cli: InProcessCli;
beforeEach(() => void (cli = new InProcessCli()));

describe("TLS files", () => {
  const directory = cliDirectory();
  const { certFile, keyFile } = selfSigned(directory, "server");
  const flags = (cert: string, key: string) => ["--tls-cert", cert, "--tls-key", key];

  test("that expire within 14 days, or are for another host, are warnings", async () => {
    cli.clock.time = Date.now();
    const publicUrl = ["--public-url", "https://api.example.com"];
    const { code, of } = await diagnose(cli, ...flags(certFile, keyFile), ...publicUrl);
    expect(code).toBe(0);
    expect(of("TLS").map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the certificate expires on /),
      "the certificate is not for api.example.com, the host of --public-url",
    ]);
  });

  test("that have expired, or that do not belong together, are errors", async () => {
    cli.clock.time = Date.now() + 3 * 86_400_000;
    expect((await diagnose(cli, ...flags(certFile, keyFile))).of("TLS")[0]).toMatchObject({ level: "error" });
    const other = selfSigned(directory, "other");
    const { code, of } = await diagnose(cli, ...flags(certFile, other.keyFile));
    expect(code).toBe(1);
    expect(of("TLS")[0]?.message).toContain("is not the private key of");
  });

  test("a key that everybody can read is a warning, one for a group is not", async () => {
    cli.clock.time = Date.now();
    const open = selfSigned(directory, "open");
    const found = async () =>
      (await diagnose(cli, ...flags(open.certFile, open.keyFile))).of("settings files");
    chmodSync(open.keyFile, 0o644);
    expect(await found()).toMatchObject([{ level: "warning", remedy: `chmod o= ${open.keyFile}` }]);
    chmodSync(open.keyFile, 0o640);
    expect(await found()).toMatchObject([{ level: "ok" }]);
  });
});

describe("PostgreSQL", () => {
  test("reachable engines are ok, and clocks that differ are warnings", async () => {
    const storage = ["--database-url", await postgresUrl()];
    cli.clock.now = () => Date.now();
    const { code, of } = await diagnose(cli, ...storage);
    expect(code).toBe(0);
    // The server of the tests runs without fsync.
    expect(of("PostgreSQL")).toMatchObject([
      { level: "warning", remedy: "set fsync = on and synchronous_commit = on" },
    ]);
    expect(of("clock")).toMatchObject([{ level: "ok" }]);
    cli.clock.now = () => Date.now() + 60_000;
    const clocks = (await diagnose(cli, ...storage)).of("clock").map(({ message }) => message);
    expect(clocks[0]).toMatch(
      /^the clock of PostgreSQL at 127.0.0.1:\d+ is [56]\d\.\d s behind this machine's$/,
    );
  });

  test("the clocks of all servers in the URL are compared, also those of standbys", async () => {
    const primary = await startPostgres();
    const standby = await startStandby(primary, { isSynchronous: false });
    const hosts = [primary, standby].map(({ url }) => new URL(url).host);
    cli.clock.now = () => Date.now() + 60_000;
    const { of } = await diagnose(cli, "--database-url", `postgres://petstore@${hosts.join()}/postgres`);
    const compared = of("clock").map(({ message }) => /^the clock of PostgreSQL at (\S+)/.exec(message)?.[1]);
    expect(compared).toEqual(hosts);
    await Promise.all([primary, standby].map((each) => each.stop()));
  });

  test("what the SQL needs is tried: what is missing is an error with its cost, and a comfort a warning", async () => {
    const url = await postgresUrl();
    await using sql = new SQL(url, { max: 1 });
    const missing = async (storage: string) => {
      const { of } = await diagnose(cli, "--database-url", storage);
      return of("PostgreSQL").flatMap(({ level, message }) =>
        message.includes("without it") ? `${level}: ${message}` : [],
      );
    };
    // In an empty database, and with tables.
    expect(await missing(url)).toEqual([]);
    expect(await sql`SELECT FROM pg_namespace WHERE nspname = 'production'`).toHaveLength(0);
    await (await cli.serve(["--database-url", url])).stop();
    expect(await missing(url)).toEqual([]);

    await sql.unsafe(`
      CREATE ROLE doctor_${process.pid} LOGIN PASSWORD 'pass';
      GRANT USAGE ON SCHEMA production TO doctor_${process.pid};
      GRANT ALL ON ALL TABLES IN SCHEMA production TO doctor_${process.pid};
      REVOKE EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, text) FROM PUBLIC;
      REVOKE SELECT ON pg_stat_replication FROM PUBLIC`);
    expect(await missing(url.replace(/\/\/[^@]*@/, `//doctor_${process.pid}:pass@`))).toEqual([
      "error: messages in the log of writes: permission denied for function pg_logical_emit_message; without it, operators can change nothing, and no ban outlasts a crash",
      "warning: the views of replication: permission denied for view pg_stat_replication; without it, writes that wait for a standby that is away time out, and nothing says why",
    ]);
  });

  test("unreachable engines are errors without passwords", async () => {
    const storage = ["--database-url", "postgres://ann:s3cret@127.0.0.1:1/pets"];
    const { code, of } = await diagnose(cli, ...storage);
    expect(code).toBe(1);
    for (const finding of of("PostgreSQL")) {
      expect(finding).toMatchObject({ level: "error" });
      expect(finding?.message).toContain("127.0.0.1:1");
      expect(JSON.stringify(finding)).not.toContain("s3cret");
    }
  });
});

describe("replication of PostgreSQL", () => {
  test("without a standby nothing is wrong; with a lost synchronous one, every write is", async () => {
    const primary = await startPostgres();
    await using sql = new SQL(primary.url, { max: 1 });
    await sql.unsafe("CREATE ROLE plain LOGIN; GRANT CREATE ON DATABASE postgres TO plain");
    // An ordinary role sees no more of other sessions than that they exist.
    const url = primary.url.replace("petstore@", "plain@");
    const doctor = () => diagnose(cli, "--database-url", url);
    const found = async () => (await doctor()).of("replication");
    await cli.run(["migrate", "--database-url", url]);
    expect(await found()).toMatchObject([
      { level: "ok", message: expect.stringContaining("there is no standby") },
    ]);
    const standby = await startStandby(primary, { isSynchronous: false });
    expect(await found()).toMatchObject([
      {
        level: "ok",
        message: expect.stringContaining("no commit waits for a standby (connected: walreceiver)"),
      },
    ]);
    const setNames = async (names: string) => {
      await sql.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
      await sql`SELECT pg_reload_conf()`;
      await until(
        async () => (await sql`SHOW synchronous_standby_names`)[0].synchronous_standby_names === names,
        2_000,
      );
    };
    await setNames("ANY 1 (walreceiver, other)");
    expect(await found()).toMatchObject([{ level: "warning", remedy: expect.stringContaining("ANY 1 (…)") }]);
    const second = await startStandby(primary, { isSynchronous: false });
    expect(await found()).toMatchObject([{ level: "ok", message: "a commit waits for 1 of 2 standbys" }]);
    await setNames("FIRST 2 (*)");
    expect(await found()).toMatchObject([
      {
        level: "warning",
        message: expect.stringContaining("waits for 2 standbys, and no more are connected"),
      },
    ]);
    await second.stop();
    await until(async () => (await found())[0]?.level === "error", 5_000);
    const lost = await doctor();
    expect(lost.code).toBe(1);
    expect(lost.of("replication")).toMatchObject([
      {
        message: "a commit needs 2 synchronous standbys, and 1 of them is connected: every write gets 503",
        remedy: expect.stringContaining("(it is 'FIRST 2 (*)'; connected: walreceiver)"),
      },
    ]);
    await standby.stop();
    await using plain = new SQL(url, { max: 1 });
    const waiting = plain`CREATE SCHEMA waits`.catch(() => {});
    await until(
      async () =>
        (await found())[0]?.message === "1 commit waits for a synchronous standby: every write gets 503",
      5_000,
    );
    await stopWaitingForStandby(primary);
    await waiting;
    await primary.stop();
  }, 60_000);

  test("max_connections that is too low for the servers, and the time of the last backup", async () => {
    const postgres = await startPostgres({ settings: { max_connections: "25" } });
    const flags = ["--database-url", postgres.url];
    cli.clock.now = () => Date.now();
    const server = await cli.serve(flags);
    const tooFew = "max_connections is 25, and 1 server with what else connects may need 39";
    const found = async () => (await diagnose(cli, ...flags)).of("PostgreSQL");
    await until(async () => (await found()).some(({ message }) => message === tooFew), 20_000);
    const backup = async () => (await diagnose(cli, ...flags)).of("backup");
    expect(await backup()).toMatchObject([
      { level: "warning", message: "petstore backup has never been run on this database" },
    ]);
    expect(await cli.run(["backup", cliDirectory(), ...flags])).toMatchObject({ code: 0 });
    expect(await backup()).toMatchObject([{ level: "ok" }]);
    cli.clock.now = () => Date.now() + 3 * 86_400_000;
    expect(await backup()).toMatchObject([{ level: "warning" }]);
    await server.stop();
    await postgres.stop();
  });
});
