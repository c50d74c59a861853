import { afterAll, beforeEach, describe, expect, test, setDefaultTimeout } from "bun:test";
import { Database } from "bun:sqlite";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { selfSigned } from "../../../harness/certificates.ts";
import { postgresUrl } from "../../../harness/postgres.ts";
import { sendToValkey, startValkey, valkeyUrl } from "../../../harness/valkey.ts";
import { checkClock, checkOpenFiles } from "../../../src/doctor/machine.ts";
import { MIGRATIONS } from "../../../src/store/sqlite/migrations.ts";
import { latestVersion } from "../../../src/store/migrations.ts";
import type { Finding } from "../../../src/doctor/finding.ts";
import { fillData } from "../../backup/sample-data.ts";
import { cleanUp, InProcessCli, petstore, temporaryDirectory } from "../../cli/cli.ts";

// A busy machine takes long.
setDefaultTimeout(60_000);

afterAll(cleanUp);

let cli: InProcessCli;
beforeEach(() => {
  cli = new InProcessCli();
});

const fill = () => fillData({ environment: "production", dataDir: cli.dataDir });

/** By the name of the check. */
async function diagnose(...argv: string[]): Promise<{ code: number; of: (check: string) => Finding[] }> {
  const { code, out, err } = await cli.run(["doctor", "--json", ...argv]);
  if (code === 2) throw new Error(err);
  const findings: Finding[] = JSON.parse(out);
  return { code, of: (check) => findings.filter((finding) => finding.check === check) };
}

describe("petstore doctor", () => {
  test("on a sound store every check is ok, and nothing changes", async () => {
    await fill();
    const before = readdirSync(cli.dataDir).toSorted();
    const { code, out } = await cli.run(["doctor"]);
    expect(code).toBe(0);
    const lines = out.split("\n");
    for (const check of [
      "configuration",
      "data directory",
      "SQLite",
      "database",
      "migrations",
      "clock",
      "TLS",
    ]) {
      expect(lines.find((line) => line.includes(check))).toStartWith("ok ");
    }
    expect(out).toContain("production.db is sound: 49 pets, 1 orders, 2 keys");
    expect(out).toMatch(/\n\d+ checks: 0 errors, \d warnings?\.\n$/);
    expect(readdirSync(cli.dataDir).toSorted()).toEqual(before);
  });

  test("before the first start there is nothing to complain about", async () => {
    const { code, of } = await diagnose();
    expect(code).toBe(0);
    expect(of("data directory")[0]?.message).toBe(`${cli.dataDir} does not exist yet; the server creates it`);
  });

  test("a damaged database is an error, with exit status 1", async () => {
    await fill();
    const path = join(cli.dataDir, "production.db");
    const bytes = readFileSync(path);
    bytes.fill(0xff, 8 * 4_096, 12 * 4_096);
    writeFileSync(path, bytes);
    const { code, of } = await diagnose();
    expect(code).toBe(1);
    expect(of("database")[0]).toMatchObject({
      level: "error",
      remedy: expect.stringContaining("petstore restore --replace"),
    });
    expect((await petstore("doctor", "--data", cli.dataDir)).err).toBe("petstore: 1 error found\n");
  });

  test("references to missing rows are damage too", async () => {
    await fill();
    const database = new Database(join(cli.dataDir, "production.db"));
    database.run("PRAGMA foreign_keys = OFF");
    database.run("DELETE FROM pets WHERE id = 1");
    database.close();
    expect((await diagnose()).of("database")[0]?.message).toEndWith(
      "is damaged: 1 rows of orders refer to rows of pets that are missing",
    );
  });

  test("a schema of an earlier release is a warning, one of a later release an error", async () => {
    await fill();
    const newest = latestVersion(MIGRATIONS);
    const database = new Database(join(cli.dataDir, "production.db"));
    const setVersion = (version: number) => {
      database.run("DELETE FROM schema_migrations");
      database.run("INSERT INTO schema_migrations (version, name) VALUES (?, 'a migration')", [version]);
    };
    setVersion(newest - 1);
    expect((await diagnose()).of("migrations")).toMatchObject([
      {
        level: "warning",
        message: `the schema has version ${newest - 1}, and the next start migrates it to ${newest}`,
      },
    ]);
    setVersion(newest + 1);
    expect((await diagnose()).of("migrations")).toMatchObject([
      {
        level: "error",
        message: `the schema has version ${newest + 1}, and this release supports versions up to ${newest}`,
      },
    ]);
    database.close();
  });

  test("a directory and files that others can read are warnings with the command that helps", async () => {
    await fill();
    chmodSync(join(cli.dataDir, "production.db"), 0o644);
    expect((await diagnose()).of("data directory")).toMatchObject([
      { level: "warning", remedy: `chmod go= ${join(cli.dataDir, "production.db")}` },
    ]);
    chmodSync(cli.dataDir, 0o755);
    expect((await diagnose()).of("data directory")).toMatchObject([{ remedy: `chmod 700 ${cli.dataDir}` }]);
  });

  test("a database of another user is not called damaged", async () => {
    await fill();
    const path = join(cli.dataDir, "production.db");
    // Root reads everything, and only root can give files away.
    if (process.getuid?.() === 0) {
      chownSync(path, 65_534, 65_534);
      const { code, of } = await diagnose();
      expect(code).toBe(0);
      expect(of("data directory")[1]).toMatchObject({
        level: "warning",
        message: `${path} belongs to another user than the directory`,
        remedy: `give them to the user of the server: chown --reference=${cli.dataDir} ${path}`,
      });
    } else {
      chmodSync(path, 0);
      expect((await diagnose()).of("database")[0]?.remedy).toContain(`chown USER ${path}`);
    }
  });

  test("an interrupted restore is an error", async () => {
    await fill();
    mkdirSync(join(cli.dataDir, "production-restore"), { mode: 0o700 });
    const { code, of } = await diagnose();
    expect(code).toBe(1);
    expect(of("data directory").at(-1)).toMatchObject({
      level: "error",
      message: "a restore was interrupted",
    });
  });

  test("settings that do not go together are warnings, a wrong one is exit status 2", async () => {
    const { code, of } = await diagnose("--host", "0.0.0.0");
    expect(code).toBe(0);
    expect(of("configuration").map(({ level }) => level)).toEqual(["warning", "warning"]);
    expect(await cli.run(["doctor", "--port", "x"])).toMatchObject({ code: 2 });
    expect(await cli.run(["doctor", "--tls-cert", "x"])).toMatchObject({ code: 2 });
  });
});

describe("TLS files", () => {
  const folder = temporaryDirectory();
  const { certFile, keyFile } = selfSigned(folder, "server");
  const flags = (cert: string, key: string) => ["--tls-cert", cert, "--tls-key", key];

  test("that expire within 14 days, or are for another host, are warnings", async () => {
    cli.clock.time = Date.now();
    const { code, of } = await diagnose(
      ...flags(certFile, keyFile),
      "--public-url",
      "https://api.example.com",
    );
    expect(code).toBe(0);
    expect(of("TLS").map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the certificate expires on /),
      "the certificate is not for api.example.com, the host of --public-url",
    ]);
  });

  test("that have expired, or that do not belong together, are errors", async () => {
    cli.clock.time = Date.now() + 3 * 86_400_000;
    expect((await diagnose(...flags(certFile, keyFile))).of("TLS")[0]).toMatchObject({ level: "error" });
    const other = selfSigned(folder, "other");
    const { code, of } = await diagnose(...flags(certFile, other.keyFile));
    expect(code).toBe(1);
    expect(of("TLS")[0]?.message).toContain("is not the private key of");
  });

  test("a key that others can read is a warning", async () => {
    cli.clock.time = Date.now();
    const open = selfSigned(folder, "open");
    chmodSync(open.keyFile, 0o644);
    const { of } = await diagnose(...flags(open.certFile, open.keyFile));
    expect(of("TLS").at(-1)?.remedy).toBe(`chmod 600 ${open.keyFile}`);
  });
});

describe("PostgreSQL and Valkey", () => {
  test("reachable engines are ok, and clocks that differ are warnings", async () => {
    const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
    cli.clock.now = () => Date.now();
    const { code, of } = await diagnose(...storage);
    expect(code).toBe(0);
    // The server of the tests runs without fsync.
    expect(of("PostgreSQL")).toMatchObject([
      { level: "warning", remedy: "set fsync = on and synchronous_commit = on" },
    ]);
    expect(of("Valkey")[0]?.message).toMatch(
      /^Valkey at 127\.0\.0\.1:\d+\/\d+ is reachable; version \d+\.\d+/,
    );
    expect(of("clock")).toMatchObject([{ level: "ok" }]);
    cli.clock.now = () => Date.now() + 60_000;
    const clocks = (await diagnose(...storage)).of("clock").map(({ message }) => message);
    expect(clocks[0]).toMatch(/^the clock of PostgreSQL is (?:59|60)\.\d s behind this machine's$/);
    expect(clocks[1]).toMatch(/^the clock of Valkey is (?:59|60)\.\d s behind this machine's$/);
  });

  test("unreachable engines are errors without passwords", async () => {
    const storage = ["--database-url", "postgres://ann:s3cret@127.0.0.1:1/pets"];
    const { code, of } = await diagnose(...storage, "--limits-url", "redis://:s3cret@127.0.0.1:1");
    expect(code).toBe(1);
    for (const finding of [of("PostgreSQL")[0], of("Valkey")[0]]) {
      expect(finding).toMatchObject({ level: "error" });
      expect(finding?.message).toContain("127.0.0.1:1");
      expect(JSON.stringify(finding)).not.toContain("s3cret");
    }
  });

  test("a Valkey that may drop keys is a warning, a user without permissions an error", async () => {
    const valkey = await startValkey({ settings: { maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" } });
    await sendToValkey(valkey.url, "ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "+get");
    const user = valkey.url.replace("//", "//ann:s3cret@");
    expect((await diagnose("--limits-url", valkey.url)).of("Valkey")[0]).toMatchObject({
      level: "warning",
      remedy: "set maxmemory-policy noeviction",
    });
    expect((await diagnose("--limits-url", user)).of("Valkey")[0]?.message).toContain("NOPERM");
    await valkey.stop();
  });
});

test("few open files are a warning with both numbers", () => {
  expect(checkOpenFiles({}, 960)).toMatchObject({
    level: "warning",
    message: "the limit allows 960 of 10,000 connections",
  });
  expect(checkOpenFiles({ maxConnections: 500 }, 960).level).toBe("ok");
});

test("a clock before the release, or before the newest key, is a finding", () => {
  const now = Date.parse("2026-11-15T12:00:00Z");
  expect(checkClock({ now: 0, newestTime: undefined, comparisons: [] })[0]?.level).toBe("error");
  expect(checkClock({ now, newestTime: now + 3_000, comparisons: [] })).toMatchObject([
    {
      level: "warning",
      message:
        "the data has a key of 2026-11-15T12:00:03.000Z, which is later than now (2026-11-15T12:00:00.000Z)",
    },
  ]);
  expect(checkClock({ now, newestTime: now + 1_000, comparisons: [] })[0]?.level).toBe("ok");
});
