import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync } from "node:fs";
import { selfSigned } from "../../../trials/harness/certificates.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { sendToValkey, startValkey, valkeyUrl } from "../../../trials/harness/valkey.ts";
import { cleanUp, InProcessCli, cliDirectory } from "../../cli/cli.ts";
import { diagnose } from "../../doctor/diagnose.ts";

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

  test("a key that others can read is a warning", async () => {
    cli.clock.time = Date.now();
    const open = selfSigned(directory, "open");
    chmodSync(open.keyFile, 0o644);
    const { of } = await diagnose(cli, ...flags(open.certFile, open.keyFile));
    expect(of("TLS").at(-1)?.remedy).toBe(`chmod 600 ${open.keyFile}`);
  });
});

describe("PostgreSQL and Valkey", () => {
  test("reachable engines are ok, and clocks that differ are warnings", async () => {
    const storage = ["--database-url", await postgresUrl(), "--limits-url", await valkeyUrl()];
    cli.clock.now = () => Date.now();
    const { code, of } = await diagnose(cli, ...storage);
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
    const clocks = (await diagnose(cli, ...storage)).of("clock").map(({ message }) => message);
    expect(clocks[0]).toMatch(/^the clock of PostgreSQL is [56]\d\.\d s behind this machine's$/);
    expect(clocks[1]).toMatch(/^the clock of Valkey is [56]\d\.\d s behind this machine's$/);
  });

  test("unreachable engines are errors without passwords", async () => {
    const storage = ["--database-url", "postgres://ann:s3cret@127.0.0.1:1/pets"];
    const { code, of } = await diagnose(cli, ...storage, "--limits-url", "redis://:s3cret@127.0.0.1:1");
    expect(code).toBe(1);
    for (const finding of [of("PostgreSQL")[0], of("Valkey")[0]]) {
      expect(finding).toMatchObject({ level: "error" });
      expect(finding?.message).toContain("127.0.0.1:1");
      expect(JSON.stringify(finding)).not.toContain("s3cret");
    }
  });

  test("a Valkey that may drop keys is a warning, a replica and a user without permissions are errors", async () => {
    const valkey = await startValkey({ settings: { maxmemory: "100mb", "maxmemory-policy": "allkeys-lru" } });
    await sendToValkey(valkey.url, "ACL", "SETUSER", "ann", "on", ">s3cret", "~*", "+get");
    const user = valkey.url.replace("//", "//ann:s3cret@");
    // On a busy machine Valkey may take longer than the 500 ms that the doctor waits.
    const findingOf = async (url: string) => {
      for (;;) {
        const finding = (await diagnose(cli, "--limits-url", url)).of("Valkey")[0];
        if (!finding?.message.includes("no response within")) return finding;
      }
    };
    expect(await findingOf(valkey.url)).toMatchObject({
      level: "warning",
      remedy: "set maxmemory-policy noeviction",
    });
    expect((await findingOf(user))?.message).toContain("NOPERM");
    await sendToValkey(valkey.url, "REPLICAOF", "127.0.0.1", "1");
    expect(await findingOf(valkey.url)).toMatchObject({ level: "error", remedy: "connect to the primary" });
    await valkey.stop();
  });
});
