import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import { SETTINGS } from "../../../src/config/options.ts";
import type { Options } from "../../../src/config/parse-options.ts";
import { file } from "../../../src/config/value-types.ts";
import { CertificateAuthority } from "../../../trials/harness/certificates.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
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
  for (const [flag, { isFollowed, help }] of fileOptions.filter(([flag]) => !WRITTEN.has(flag))) {
    const when = isFollowed === true ? "read again when it changes" : "read at the start only";
    expect([flag, isFollowed === undefined]).toEqual([flag, false]);
    expect(help).toEndWith(`; ${when}`);
  }
  expect(Object.keys(options).filter((flag) => flag.endsWith("-file"))).toEqual(
    fileOptions.flatMap(([flag]) => (flag.endsWith("-file") ? flag : [])),
  );
});

describe("on a server", async () => {
  const authority = new CertificateAuthority();
  const [database, valkey] = await Promise.all([postgresUrl(), valkeyUrl()]);
  const [one, two] = [authority.issue("DNS:localhost"), authority.issue("DNS:localhost")];
  const [firstCa = "", secondCa = ""] = rootCertificates;
  const contents = (path: string) => readFileSync(path, "utf8");
  /** For each followed setting, the contents at the start and others that are usable. */
  const values: Readonly<Record<string, readonly [string, string]>> = {
    "database-url-file": [database, `${database}?application_name=changed`],
    "limits-url-file": [valkey, `${valkey}\n\n`],
    "limits-ca": [firstCa, secondCa],
    "admin-token-file": ["the-first-token-of-all-operators", "the-second-token-of-all-operators"],
    "metrics-token-file": ["the-first-token-for-metrics-only", "the-second-token-for-metrics-only"],
    "webhook-secret-file": [WEBHOOK_SECRET, `${WEBHOOK_SECRET}\n${WEBHOOK_SECRET.replace("MfKQ", "AAAA")}`],
    "tls-cert": [contents(one.certFile), contents(two.certFile)],
    "tls-key": [contents(one.keyFile), contents(two.keyFile)],
  };
  const directory = temporaryDirectory("followed");
  const pathOf = (flag: string) => join(directory, flag);
  for (const [flag, [first]] of Object.entries(values)) writeFileSync(pathOf(flag), first, { mode: 0o600 });
  const flags = followed.flatMap((flag) => [`--${flag}`, pathOf(flag)]);
  const webhook = ["--webhook-url", "http://127.0.0.1:1/", "--log-format", "json"];
  const server = await new InProcessCli().serve([...flags, ...webhook]);
  /** The events about the files after the first lines of the log. */
  const eventsSince = (from: number) => {
    const lines = server.lines
      .slice(from)
      .filter((line) => line.includes(directory) || line.includes("imported"));
    return lines.map((line): string => JSON.parse(line).event);
  };

  test("the table of this test has every followed setting", () => {
    expect(Object.keys(values).toSorted()).toEqual(followed.toSorted());
  });

  test.each(followed)("a bad --%s changes nothing and is logged, and a good one is used", async (flag) => {
    const before = server.lines.length;
    writeFileSync(pathOf(flag), "");
    await until(() => eventsSince(before).some((event) => /invalid|unreadable/.test(event)), 5_000);
    const bad = server.lines.length;
    expect(
      (await fetch(server.url.replace("/v1", "/healthz"), { tls: { rejectUnauthorized: false } })).status,
    ).toBe(200);
    const [first = "", second = ""] = values[flag] ?? [];
    // A certificate and its key change together.
    const other = { "tls-cert": "tls-key", "tls-key": "tls-cert" }[flag];
    const isSecond = other === undefined || readFileSync(pathOf(other), "utf8") === values[other]?.[0];
    if (other !== undefined) writeFileSync(pathOf(other), values[other]?.[isSecond ? 1 : 0] ?? "");
    writeFileSync(pathOf(flag), isSecond ? second : first);
    await until(() => eventsSince(bad).some((event) => /changed|imported/.test(event)), 5_000);
    const text = server.lines.slice(before).join("\n");
    for (const secret of [new URL(database).password, WEBHOOK_SECRET, "token-of-all", "token-for-metrics"])
      if (secret !== "") expect(text).not.toContain(secret);
  });
});
