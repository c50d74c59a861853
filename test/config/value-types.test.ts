import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { network, serverOrigin } from "../../src/config/address-types.ts";
import { formatIpNetwork } from "../../src/runtime/ip-network.ts";
import type { SETTINGS } from "../../src/config/options.ts";
import { duration, formatValue, pointInTime, timeOf } from "../../src/config/value-types.ts";
import { parseConfig, parseValues, usageError } from "./parsing.ts";

const DAY = 86_400_000;
const NOW = Date.parse("2026-11-15T12:00:00Z");

describe("durations", () => {
  test.each([
    ["500ms", 500],
    ["90s", 90_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["30d", 2_592_000_000],
    ["0", 0],
    ["0s", 0],
  ])("%s is %d milliseconds", (text, ms) => {
    expect(duration({ min: 0, max: 30 * DAY }).parse(text)).toBe(ms);
  });

  test("parse is the inverse of format", () => {
    const type = duration({ min: 0, max: 3_650 * DAY });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_650 * DAY }), (ms) => {
        expect(type.parse(formatValue(type, ms))).toBe(ms);
      }),
    );
    expect([DAY, 90_000, 1_500].map((ms) => formatValue(type, ms))).toEqual(["1d", "90s", "1500ms"]);
  });

  test("no unit is suggested that leads beyond the bounds", () => {
    expect(duration({ min: 5, max: 1_000 }).hint?.("2000")).toBeUndefined();
  });

  test("a suggestion is always valid", () => {
    const bounds = fc.integer({ min: 0, max: 100_000_000 });
    fc.assert(
      fc.property(bounds, bounds, fc.nat({ max: 100_000 }), (a, b, count) => {
        const type = duration({ min: Math.min(a, b), max: Math.max(a, b) });
        const [, suggestion] = /^did you mean (.*)\?$/.exec(type.hint?.(`${count}`) ?? "") ?? [];
        if (suggestion !== undefined) expect(type.parse(suggestion)).toBeNumber();
      }),
    );
  });
});

test.each([
  ["admin.example.com", "did you mean https://admin.example.com?"],
  ["https://admin.example.com/console", "did you mean https://admin.example.com?"],
  ["admin", undefined],
])("the hint for %s as the URL of a server is %p", (text, hint) => {
  expect([serverOrigin.parse(text), serverOrigin.hint?.(text)]).toEqual([undefined, hint]);
});

test("the variable of a switch is true or false", () => {
  const metricsPublic = (text: string) =>
    parseValues({}, { PETSTORE_METRICS_PUBLIC: text })["metrics-public"];
  expect(["true", "1", "false", "0"].map(metricsPublic)).toEqual([true, true, false, false]);
  expect(usageError({}, { PETSTORE_METRICS_PUBLIC: "yes" })).toContain("PETSTORE_METRICS_PUBLIC");
});

describe("points in time", () => {
  test.each([
    ["2026-11-01", "2026-11-01T00:00:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
    ["2026-11-01T12:30Z", "2026-11-01T12:30:00.000Z"],
    ["2026-11-01T12:30:15Z", "2026-11-01T12:30:15.000Z"],
    ["2026-11-01T12:30:15.250+02:00", "2026-11-01T10:30:15.250Z"],
    ["30d", "2026-10-16T12:00:00.000Z"],
    ["24h", "2026-11-14T12:00:00.000Z"],
    ["0", "2026-11-15T12:00:00.000Z"],
  ])("%s", (text, time) => {
    const value = pointInTime.parse(text);
    expect(value && new Date(timeOf(value, NOW)).toISOString()).toBe(time);
    expect(value && pointInTime.parse(formatValue(pointInTime, value))).toEqual(value);
  });

  test.each([
    ..."yesterday 2026-02-29 2026-13-01 2026-11-1 2026-11-01T25:00Z 2026-11-01T12:00".split(" "),
    ..."2026-02-30T12:00:00Z 5000d -1d 2026".split(" "),
    "",
  ])("%p is none", (text) => {
    expect(pointInTime.parse(text)).toBeUndefined();
  });
});

const POSTGRES_URLS = [
  "postgres://u:p%40ss%25@db.example:5432/pets",
  "postgresql://h",
  "postgres://u@[::1]/my%20pets",
  "postgres://h/d?sslmode=verify-full&sslrootcert=/etc/ca.pem",
  "postgres://u:a,b@db1,db2:5433,[::1]:5434/d?sslmode=verify-full",
];
const HOSTS = "127.0.0.1 0.0.0.0 :: ::1 localhost my-host.example.com fe80::1 fe80::1%eth0".split(" ");
/** They may be in brackets, as in a URL. */
const IPV6_HOSTS = HOSTS.filter((host) => host.includes("::"));

type Case = [flag: keyof typeof SETTINGS, text: string, value: string];
test.each<Case>([
  ["public-url", "https://api.example.com", "https://api.example.com/v1"],
  ["public-url", "https://api.example.com/", "https://api.example.com/v1"],
  ["public-url", "https://api.example.com/v1", "https://api.example.com/v1"],
  ["public-url", "https://api.example.com/v1/", "https://api.example.com/v1"],
  ["public-url", "https://api.example.com:443/pets-api", "https://api.example.com/pets-api/v1"],
  ["public-url", "HTTP://Example.COM:8080/a/v1//", "http://example.com:8080/a/v1"],
  ["public-url", "http://[2001:DB8::1]:80/v1", "http://[2001:db8::1]/v1"],
  ["cors-origin", "https://app.example.com", "https://app.example.com"],
  ["cors-origin", "https://App.Example.com:443/", "https://app.example.com"],
  ["cors-origin", "http://localhost:3000", "http://localhost:3000"],
  ["cors-origin", "http://[::1]:3000", "http://[::1]:3000"],
  ["cors-origin", "https://bücher.example", "https://xn--bcher-kva.example"],
  ["security-contact", "security@example.com", "mailto:security@example.com"],
  ["security-contact", "mailto:security@example.com", "mailto:security@example.com"],
  ["security-contact", "https://example.com/security", "https://example.com/security"],
  ...HOSTS.map((host): Case => ["host", host, host]),
  ...IPV6_HOSTS.map((host): Case => ["host", `[${host}]`, host]),
  ...POSTGRES_URLS.map((url): Case => ["database-url", url, url]),
])("--%s %s is %s", (flag, text, value) => {
  expect(String(parseValues({ [flag]: [text] })[flag])).toBe(value);
});

const ENCODE = "write % as %25 in a user, password or database";
const SSL_MODE = "sslmode must be disable, allow, prefer, require, verify-ca or verify-full";
test.each([
  ["database-url", "mysql://u:s3cret@h/d", ""],
  ["database-url", "postgres://u:s3cret%zz@h/d", ENCODE],
  ["database-url", "postgres://s3cret%@h/d", ENCODE],
  ["database-url", "postgres://u:s3cret@h/%ff", ENCODE],
  ["database-url", "postgres://u:s3cret@h/a/b", ""],
  ["database-url", "postgres://u:s3cret@h /d", ""],
  ["database-url", "postgres://u:s3cret@h,/d", ""],
  ["database-url", "postgres://u:s3cret@h:5432,i:x/d", ""],
  ["database-url", "postgres://u:s3cret@h/d?sslmode=verify", SSL_MODE],
])("--%s %s is rejected, and the message does not repeat it", (flag, url, remark) => {
  const message = usageError({ [flag]: [url] });
  expect(message).toStartWith(`--${flag} is not valid; it must be a URL such as `);
  expect(message).not.toContain("s3cret");
  if (remark === "") expect(message).not.toContain("%25");
  else expect(message).toEndWith(`(${remark})`);
});

test("--cors-origin: there is none by default, and there can be several", () => {
  expect(parseConfig({}).corsOrigins).toEqual([]);
  expect(parseConfig({ "cors-origin": ["http://a", "http://b,http://c"] }).corsOrigins).toHaveLength(3);
});

describe("--trust-proxy", () => {
  test.each([
    ["10.0.0.0/8", "10.0.0.0/8"],
    ["192.0.2.7", "192.0.2.7/32"],
    ["0.0.0.0/0", "0.0.0.0/0"],
    ["fd00::/8", "fd00::/8"],
    ["2001:DB8::1", "2001:db8::1/128"],
    ["::/0", "::/0"],
    ["::ffff:10.0.0.0/104", "10.0.0.0/8"],
    ["::ffff:10.1.2.3", "10.1.2.3/32"],
    ["::ffff:a00:0/104", "10.0.0.0/8"],
    ["::10.0.0.0/104", "::a00:0/104"],
  ])("%s is the network %s", (text, cidr) => {
    const parsed = network.parse(text);
    expect(parsed && formatIpNetwork(parsed)).toBe(cidr);
  });

  test("for a network with bits after its prefix, both suggestions are always valid", () => {
    const ipv4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
    const ipv6 = fc.tuple(fc.ipV6(), fc.integer({ min: 0, max: 128 }));
    fc.assert(
      fc.property(fc.oneof(ipv4, ipv6), ([address, prefixLength]) => {
        const hint = network.hint?.(`${address}/${prefixLength}`) ?? "";
        const suggestions = hint.slice("did you mean ".length, -1).split(" or ");
        expect(suggestions).toHaveLength(2);
        for (const suggestion of suggestions) {
          const parsed = network.parse(suggestion);
          expect(parsed && formatIpNetwork(parsed)).toBe(suggestion);
        }
      }),
    );
  });
});
