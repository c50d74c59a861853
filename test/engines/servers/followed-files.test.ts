import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SETTINGS } from "../../../src/config/options.ts";
import { helpOf, type Options } from "../../../src/config/parse-options.ts";
import { file } from "../../../src/config/value-types.ts";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { WEBHOOK_SECRET } from "../../../trials/harness/webhook-receiver.ts";
import { cleanUpAfterAll, InProcessCli } from "../../cli/cli.ts";
import { until } from "../../timing.ts";

cleanUpAfterAll();

const options: Options = SETTINGS;
const fileOptions = Object.entries(options).filter(([, { type }]) => type === file);
const followed = fileOptions.flatMap(([flag, { isFollowed }]) => (isFollowed ? flag : []));

/** What servers write. */
const WRITTEN = new Set(["access-log"]);

test("every file of settings says whether it is followed, in the table and in the help", () => {
  for (const [flag, option] of fileOptions.filter(([flag]) => !WRITTEN.has(flag))) {
    const when = option.isFollowed === true ? "read again when it changes" : "read at the start only";
    expect([flag, option.isFollowed === undefined]).toEqual([flag, false]);
    expect(helpOf(option)).toEndWith(`; ${when}`);
  }
  expect(Object.keys(options).filter((flag) => flag.endsWith("-file"))).toEqual(
    fileOptions.flatMap(([flag]) => (flag.endsWith("-file") ? flag : [])),
  );
});

describe("on a server", async () => {
  const authority = new CertificateAuthority();
  const database = await postgresUrl();
  const [one, two] = [authority.issue("DNS:localhost"), authority.issue("DNS:localhost")];
  const contents = (path: string) => readFileSync(path, "utf8");
  /** For each followed setting, the contents at the start and others that are usable. */
  const values: Readonly<Record<string, readonly [string, string]>> = {
    "database-url-file": [database, `${database}?application_name=changed`],
    "admin-token-file": ["the-first-token-of-all-operators", "the-second-token-of-all-operators"],
    "metrics-token-file": ["the-first-token-for-metrics-only", "the-second-token-for-metrics-only"],
    "webhook-secret-file": [WEBHOOK_SECRET, `${WEBHOOK_SECRET}\n${WEBHOOK_SECRET.replace("MfKQ", "AAAA")}`],
    "oidc-client-secret-file": ["the-first-secret-of-the-client", "the-second-secret-of-the-client"],
    "tls-cert": [contents(one.certFile), contents(two.certFile)],
    "tls-key": [contents(one.keyFile), contents(two.keyFile)],
  };
  const directory = temporaryDirectory("followed");
  const pathOf = (flag: string) => join(directory, flag);
  for (const [flag, [first]] of Object.entries(values)) writeFileSync(pathOf(flag), first, { mode: 0o600 });
  const flags = followed.flatMap((flag) => [`--${flag}`, pathOf(flag)]);
  const destinations = ["--webhook-url", "http://127.0.0.1:1/", "--oidc-issuer", "http://127.0.0.1:1"];
  const provider = ["--oidc-client-id", "petstore", "--oidc-role", "groups=admins:admin"];
  const server = await new InProcessCli().serve([
    ...flags,
    ...destinations,
    ...provider,
    "--log-format",
    "json",
  ]);
  /** What the entries about a token name instead of its file: its operator. */
  const NAMED: Readonly<Record<string, string>> = {
    "admin-token-file": '"operator":"bootstrap"',
    "metrics-token-file": '"operator":"metrics"',
    // The certificate and its key are read together.
    "tls-key": pathOf("tls-cert"),
  };
  /** Waits until the log has such an event about each file, after the first lines. */
  async function expectEvents(from: number, event: RegExp): Promise<void> {
    const isLogged = (flag: string) =>
      server.lines.slice(from).some((line) => {
        const isAbout = line.includes(pathOf(flag)) || line.includes(NAMED[flag] ?? pathOf(flag));
        return isAbout && event.test(JSON.parse(line).event);
      });
    await until(() => followed.every(isLogged), 5_000).catch(() => {});
    expect(followed.filter((flag) => !isLogged(flag))).toEqual([]);
  }

  test("the table of this test has every followed setting", () => {
    expect(Object.keys(values).toSorted()).toEqual(followed.toSorted());
  });

  test("a bad file changes nothing and is logged, and a good one is used, whatever the setting", async () => {
    for (const flag of followed) writeFileSync(pathOf(flag), "");
    await expectEvents(0, /invalid|unreadable|incomplete/);
    const health = server.url.replace("/v1", "/healthz");
    expect((await fetch(health, { tls: { rejectUnauthorized: false } })).status).toBe(200);
    const before = server.lines.length;
    for (const [flag, [, second]] of Object.entries(values)) writeFileSync(pathOf(flag), second);
    await expectEvents(before, /changed|imported/);
    const text = server.lines.join("\n");
    const secrets = [
      new URL(database).password,
      WEBHOOK_SECRET,
      "token-of-all",
      "token-for-metrics",
      "secret-of-the",
    ];
    for (const secret of secrets.filter(Boolean)) expect(text).not.toContain(secret);
  });
});
