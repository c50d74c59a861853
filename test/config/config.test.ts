import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { configOf } from "../../src/config/config.ts";
import { expectedUrl, listenUrl } from "../../src/config/listen-urls.ts";
import { plainTextConnections } from "../../src/config/plain-text.ts";
import { formatIpNetwork } from "../../src/runtime/ip-network.ts";
import { SETTINGS } from "../../src/config/options.ts";
import type { Flags } from "../../src/config/parse-options.ts";
import { DataDirectory } from "../../src/data-directory.ts";
import { WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { dataIn } from "../data-directory.ts";
import { parseConfig, parseValues, usageError } from "./parsing.ts";

test("--audit-retention: from 30 days on, or forever", () => {
  const retentionOf = (text: string) => parseConfig({ "audit-retention": [text] }).auditRetentionMs;
  expect(retentionOf("30d")).toBe(2_592_000_000);
  expect(retentionOf("forever")).toBeNull();
});

test("by default a server serves production on loopback", () => {
  expect<object>(parseConfig()).toEqual({
    data: dataIn("./data"),
    host: "127.0.0.1",
    port: 8080,
    securityContacts: [],
    trustedProxies: [],
    corsOrigins: [],
    maxConnectionsPerAddress: 256,
    drainDelayMs: 0,
    accessLogOmit: [],
    requestLogBytes: 33_554_432,
    admin: {
      host: "127.0.0.1",
      port: 8090,
      isDefault: true,
      hostnames: [],
      areMetricsPublic: false,
    },
  });
});

test("staging has its own ports, and the listener for operators its own address, names and token, or is off", () => {
  const staging = { port: 8081, admin: { port: 8091, isDefault: true } };
  expect(parseConfig({ env: ["staging"] })).toMatchObject(staging);
  expect<object | undefined>(
    parseConfig(
      {
        "admin-address": ["[::1]:9000"],
        "admin-hostname": ["Admin.example.com,other.example.com"],
        "metrics-public": ["true"],
      },
      { PETSTORE_ADMIN_TOKEN: "a-token-of-the-operators" },
    ).admin,
  ).toEqual({
    host: "::1",
    port: 9000,
    isDefault: false,
    hostnames: ["admin.example.com", "other.example.com", "::1"],
    token: "a-token-of-the-operators",
    areMetricsPublic: true,
  });
  // Other servers ask by the name of the address.
  const named = parseConfig({ "admin-address": ["Petstore-A.internal:8090"] });
  expect(named.admin?.hostnames).toEqual(["petstore-a.internal"]);
  expect(parseConfig({ "admin-address": ["off"] }).admin).toBeUndefined();
});

test.each(["short", "with blanks in it all", "ünïcode-ünïcode-ünïcode", "x".repeat(201)])(
  "PETSTORE_ADMIN_TOKEN %p is rejected and not repeated",
  (text) => {
    expect(usageError({}, { PETSTORE_ADMIN_TOKEN: text })).toBe(
      "PETSTORE_ADMIN_TOKEN is not valid; it must be 16 to 200 visible ASCII characters",
    );
  },
);

test("several proxies: the flag repeated, or one variable with commas", () => {
  const flags = parseConfig({ "trust-proxy": ["10.0.0.0/8", "192.0.2.1"] });
  expect(flags.trustedProxies.map(formatIpNetwork)).toEqual(["10.0.0.0/8", "192.0.2.1/32"]);
  const variable = parseConfig({}, { PETSTORE_TRUST_PROXY: "10.0.0.0/8, fd00::/8" });
  expect(variable.trustedProxies.map(formatIpNetwork)).toEqual(["10.0.0.0/8", "fd00::/8"]);
  expect(usageError({}, { PETSTORE_TRUST_PROXY: "10.0.0.0/8," })).toStartWith("PETSTORE_TRUST_PROXY is ");
});

/** What a setting must be, and what is rejected, separated by blanks. */
const WRONG = {
  "admin-address must be a host and a port such as 127.0.0.1:8090 or [::1]:8090, or off":
    "8090 127.0.0.1 127.0.0.1:65536 ::1:8090 :8090 http://127.0.0.1:8090 on",
  "audit-retention must be forever, or a duration from 30d to 3650d": "29d 3651d",
  "cors-origin must be the origin of a page such as https://":
    "* null https://*.example.com app.example.com ftp://a https://u:p@a file:///a",
  "drain-delay must be a duration from 0 to 5m, such as": "-1s 300001ms",
  "host must be an IP address or host name without a port": `127.0.0.1:80 1.2.3.999 10.1 -a http://x [127.0.0.1] ${"x".repeat(64)}`,
  "public-url must be an http:// or https:// URL without user, query or fragment, such as https://api.example.com/v1":
    "a.example ftp://a.example https:// https:/a.example https://user:secret@a.example https://user@a.example https://a.example/v1?x=1 https://a.example/v1? https://a.example/v1#top https://a.example/a\\b https://a.example:99999",
  "trust-proxy must be an IP address or network such as 10.0.0.0/8, 192.0.2.7 or fd00::/8":
    "10.0.0.0/8,nonsense 10.0.0.0/33 10.0.0.0/ 10.0.0.0/08 10.0.0.0/+8 10.0.0/8 010.0.0.0/8 0x0a.0.0.0/8 167772160 10.0.0.0/8/8 10.0.0.256 fd00::/129 fe80::1%eth0 ::ffff:010.0.0.0/104 fd00:::1 [::1] localhost *",
};

test.each(Object.entries(WRONG))("--%s: not %s", (rule, texts) => {
  const [flag = "", expected] = rule.split(" must be ");
  for (const text of ["", "https://exa mple.com", "5 m", ...texts.split(" ")]) {
    const message = usageError({ [flag]: [text] });
    expect(message).toStartWith(`--${flag} is "`);
    expect(message).toContain(`; it must be ${expected}`);
  }
});

test.each([
  ["admin-address", "9000", "127.0.0.1:9000"],
  ["drain-delay", "300", "300s"],
  ["cors-origin", "https://a.example/x", "https://a.example"],
  ["security-contact", "http://a.example/security", "https://a.example/security"],
  ["trust-proxy", "10.1.2.3/8", "10.0.0.0/8 or 10.1.2.3/32"],
  ["trust-proxy", "2001:db8::1/32", "2001:db8::/32 or 2001:db8::1/128"],
])("--%s %s: %s is suggested", (flag, text, suggestion) => {
  expect(usageError({ [flag]: [text] })).toEndWith(`(did you mean ${suggestion}?)`);
});

test("environments share a directory and no file", () => {
  for (const environment of ["production", "staging"] as const) {
    const files = Object.values(new DataDirectory({ path: "/srv/pets", environment }).files);
    expect(new Set(files).size).toBe(files.length);
    for (const file of files) expect(file).toStartWith(`/srv/pets/${environment}`);
  }
});

test("the address of data has no users and passwords", () => {
  const postgres = dataIn("./data", "postgres://user:s3cret@a,b:5432/pets?sslmode=require");
  expect(postgres.address).toBe("PostgreSQL at a,b:5432/pets");
  expect(postgres.name).toBe("production (data: PostgreSQL at a,b:5432/pets)");
  expect(dataIn("./data").address).toBe("./data");
});

test("a server stores files in the directory if its database is there, or several servers have the database", () => {
  const urls = [undefined, "postgres://a/pets", "postgres://a,b/pets"];
  expect(urls.map((url) => dataIn("./data", url).needsDirectory)).toEqual([true, false, true]);
});

test("a server that listens on all addresses is reached over loopback, and the URL is unknown for port 0", () => {
  expect(listenUrl("0.0.0.0", 80)).toBe("http://127.0.0.1:80/v1");
  expect(listenUrl("::", 80)).toBe("http://[::1]:80/v1");
  expect(listenUrl("192.0.2.1", 80)).toBe("http://192.0.2.1:80/v1");
  const values = {
    env: "staging",
    host: "::1",
    port: undefined,
    "tls-cert": undefined,
    "public-url": undefined,
  } as const;
  expect(expectedUrl(values)).toBe("http://[::1]:8081/v1");
  expect(expectedUrl({ ...values, port: 0 })).toBeUndefined();
  expect(expectedUrl({ ...values, port: 0, "public-url": "https://a/v1" })).toBe("https://a/v1");
});

const plainText = (flags: Flags, variables = {}) => plainTextConnections(parseConfig(flags), variables);

test.each([
  ["127.0.0.1 127.1.2.3 ::1 localhost", []],
  ["0.0.0.0 :: 192.0.2.1 pets.example", ["connections"]],
])("clients in plain text: on %s, the warnings are %p", (hosts, warnings) => {
  for (const host of hosts.split(" "))
    expect<unknown>([host, plainText({ host: [host] })]).toEqual([host, warnings]);
});

test("clients in plain text: no warning with TLS, or behind a proxy", () => {
  const host = ["0.0.0.0"];
  const tls = { "tls-cert": ["a"], "tls-key": ["b"] };
  expect(plainText({ host, ...tls })).toEqual([]);
  expect(plainText({ host, "tls-cert": ["a"] })).toEqual(["connections"]);
  expect(plainText({ host, "trust-proxy": ["10.0.0.1"] })).toEqual([]);
  const forOperators = { "admin-address": ["0.0.0.0:8090"], "trust-proxy": ["10.0.0.1"] };
  expect(plainText(forOperators)).toEqual(["admin"]);
  expect(plainText({ ...forOperators, ...tls })).toEqual([]);
});

test.each(["", "?sslmode=disable", "?sslmode=allow", "?sslmode=prefer"])(
  "PostgreSQL elsewhere in plain text: %p",
  (query) => {
    expect(plainText({ "database-url": [`postgres://db.example/d${query}`] })).toEqual(["database"]);
    expect(plainText({ "database-url": [`postgres://[::1],db.example/d${query}`] })).toEqual(["database"]);
    expect(plainText({ "database-url": [`postgres://127.0.0.1/d${query}`] })).toEqual([]);
    expect(plainText({ "database-url": [`postgres://[::1]/d${query}`] })).toEqual([]);
  },
);

test.each(["require", "verify-ca", "verify-full"])(
  "PostgreSQL elsewhere: no warning with sslmode=%s",
  (mode) => {
    expect(plainText({ "database-url": [`postgres://db.example/d?sslmode=${mode}`] })).toEqual([]);
    expect(plainText({ "database-url": ["postgres://db.example/d"] }, { PGSSLMODE: mode })).toEqual([]);
  },
);

/** The settings that the configuration does not have, and the code that reads each. */
const READ_ELSEWHERE: Readonly<Record<string, readonly [file: string, code: string]>> = {
  "env-file": ["config/variables.ts", 'sourceOf("env-file"'],
  "no-first-key": ["cli/commands/serve.ts", 'values["no-first-key"]'],
  "log-format": ["cli/commands/serve.ts", 'values["log-format"]'],
  "log-level": ["cli/commands/serve.ts", 'values["log-level"]'],
};

test("every setting is read: one that is only a row and a line of the documentation changes nothing", () => {
  const read = new Set<string>();
  const given = { "webhook-url": ["http://127.0.0.1/"], "webhook-secret": [WEBHOOK_SECRET] };
  const values = new Proxy(parseValues(given), {
    get(target, name) {
      read.add(String(name));
      return Reflect.get(target, name);
    },
  });
  configOf(values);
  const unread = Object.keys(SETTINGS).filter((name) => !read.has(name));
  expect(unread).toEqual(Object.keys(READ_ELSEWHERE));
  for (const [file, code] of Object.values(READ_ELSEWHERE)) {
    const text = readFileSync(join(import.meta.dir, "../../src", file), "utf8");
    expect([code, text.includes(code)]).toEqual([code, true]);
  }
});
