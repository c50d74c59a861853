import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type Config,
  configOf,
  configurationTables,
  DEFAULT_URL,
  expectedUrl,
  KEY_OPTIONS,
  OPTIONS,
  pathsOf,
  serversOf,
  SETTINGS,
  whereIs,
} from "../src/config.ts";
import { listenUrl } from "../src/config/addresses.ts";
import { duration, writeDuration } from "../src/config/kinds.ts";
import { limitPair } from "../src/config/limits.ts";
import { network } from "../src/config/networks.ts";
import { type Given, type Option, readOptions, variableOf, type Variables } from "../src/config/option.ts";
import { Problem, quoted } from "../src/config/problem.ts";
import { DEFAULT_BAN } from "../src/domain/rate-limit.ts";
import { DEFAULT_PLANS } from "../src/domain/plans.ts";

function config(given: Given = {}, variables: Variables = {}): Config {
  const read = readOptions(SETTINGS, given, variables);
  if (read instanceof Problem) throw new Error(read.message);
  return configOf(read);
}

function problem(given: Given, variables: Variables = {}): string {
  const read = readOptions(SETTINGS, given, variables);
  if (read instanceof Problem) return read.message;
  throw new Error("the settings were accepted");
}

describe("defaults", () => {
  test("nothing set serves production on loopback with the published plans", () => {
    expect(config()).toEqual({
      environment: "production",
      host: "127.0.0.1",
      port: 8080,
      dataDir: "./data",
      trustedProxies: [],
      drainDelayMs: 0,
      plans: DEFAULT_PLANS,
      ban: DEFAULT_BAN,
    });
  });

  test("staging listens beside production on the same machine", () => {
    expect(config({ env: ["staging"] }).port).toBe(8081);
    expect(config({ env: ["staging"], port: ["9000"] }).port).toBe(9000);
  });

  test.each(Object.entries<Option>(OPTIONS).filter(([, option]) => option.default !== undefined))(
    "the default of --%s can be typed",
    (_flag, { kind, default: value }) => {
      const typed = kind.write(value);
      if (typed !== "") expect(kind.read(typed)).toEqual(value);
    },
  );

  test("environments share a folder and no file", () => {
    const files = (["production", "staging"] as const).flatMap((environment) =>
      Object.values(pathsOf({ environment, dataDir: "/srv/pets" })),
    );
    expect(files).toEqual([
      "/srv/pets/production.db",
      "/srv/pets/production-limits.db",
      "/srv/pets/production.lock",
      "/srv/pets/staging.db",
      "/srv/pets/staging-limits.db",
      "/srv/pets/staging.lock",
    ]);
  });
});

describe("where a value comes from", () => {
  test("a flag wins over a variable, a variable over the default", () => {
    expect(config({}, { PETSTORE_PORT: "9001" }).port).toBe(9001);
    expect(config({ port: ["9000"] }, { PETSTORE_PORT: "9001" }).port).toBe(9000);
  });

  test("a wrong variable is not looked at when the flag is given", () => {
    expect(config({ port: ["9000"] }, { PETSTORE_PORT: "many" }).port).toBe(9000);
  });

  test("an empty variable counts as not set, an empty flag does not", () => {
    expect(config({}, { PETSTORE_PORT: "", PETSTORE_DATA: "" })).toEqual(config());
    expect(problem({ port: [""] })).toBe('--port is ""; it should be a whole number from 0 to 65535');
  });

  test("every option has a variable of its own", () => {
    const variables = Object.keys(OPTIONS).map(variableOf);
    expect(new Set(variables).size).toBe(variables.length);
    expect(variables).toContain("PETSTORE_TRUST_PROXY");
  });

  test("a problem names the flag or the variable, whichever was wrong", () => {
    const should = "it should be a whole number from 0 to 65535";
    expect(problem({ port: ["65536"] })).toBe(`--port is "65536"; ${should}`);
    expect(problem({}, { PETSTORE_PORT: "many" })).toBe(`PETSTORE_PORT is "many"; ${should}`);
  });

  test("a port that Kubernetes has set is told as such, with two ways out", () => {
    expect(problem({}, { PETSTORE_PORT: "tcp://10.0.0.1:80" })).toBe(
      'PETSTORE_PORT is "tcp://10.0.0.1:80"; it should be a whole number from 0 to 65535 (Kubernetes sets this for a service named petstore; set enableServiceLinks: false, or give --port)',
    );
  });

  test("a flag given twice is refused, unless it may be repeated", () => {
    expect(problem({ port: ["1", "2"] })).toBe("--port is given twice");
    expect(config({ "trust-proxy": ["10.0.0.0/8", "192.0.2.1"] }).trustedProxies).toEqual([
      "10.0.0.0/8",
      "192.0.2.1/32",
    ]);
  });
});

describe("limits and bans", () => {
  test("plans and bans are settings", () => {
    const { plans, ban } = config({
      "free-limits": ["1/2"],
      "pro-limits": ["3/4"],
      "business-limits": ["5/6"],
      "anonymous-limits": ["7/8"],
      "ban-strikes": ["3"],
      "ban-grace": ["0"],
      "ban-length": ["90s"],
    });
    expect(plans).toEqual({
      free: { perMinute: 1, perDay: 2 },
      pro: { perMinute: 3, perDay: 4 },
      business: { perMinute: 5, perDay: 6 },
      anonymous: { perMinute: 7, perDay: 8 },
    });
    expect(ban).toEqual({ strikes: 3, graceMs: 0, lengthMs: 90_000 });
  });

  test("a day's limit may be smaller than the minute's", () => {
    expect(config({ "free-limits": ["60/5"] }).plans.free).toEqual({ perMinute: 60, perDay: 5 });
  });

  test.each([
    "60",
    "60/",
    "/60",
    "0/10",
    "10/0",
    "1/2/3",
    "1000000001/1",
    "1/1000000001",
    "1e3/1",
    "-1/5",
    "06/5",
  ])("limits of %s are refused", (text) => {
    expect(problem({ "free-limits": [text] })).toBe(
      `--free-limits is "${text}"; it should be requests per minute and per day such as 60/1000, from 1 to 1,000,000,000 each`,
    );
  });

  test("limits are read as they are written", () => {
    const count = fc.integer({ min: 1, max: 1_000_000_000 });
    fc.assert(
      fc.property(count, count, (perMinute, perDay) => {
        expect(limitPair.read(limitPair.write({ perMinute, perDay }))).toEqual({ perMinute, perDay });
      }),
    );
  });

  test.each([
    ["500ms", 500],
    ["90s", 90_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["30d", 2_592_000_000],
    ["0", 0],
    ["0s", 0],
  ])("%s is %d milliseconds", (text, ms) => {
    expect(duration({ min: 0, max: 30 * 86_400_000 }).read(text)).toBe(ms);
  });

  test("times are read as they are written", () => {
    const kind = duration({ min: 0, max: 3_650 * 86_400_000 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 3_650 * 86_400_000 }), (ms) => {
        expect(kind.read(writeDuration(ms))).toBe(ms);
      }),
    );
    expect([86_400_000, 90_000, 1_500].map(writeDuration)).toEqual(["1d", "90s", "1500ms"]);
  });

  test.each(["", "5", "5 m", "5M", "1.5h", "-1s", "05s", "s", "1h30m", "31d"])(
    "a ban of %p is refused",
    (text) => {
      expect(problem({ "ban-length": [text] })).toStartWith(
        `--ban-length is "${text}"; it should be a time from 1s to 30d`,
      );
    },
  );

  test("a time without a unit is refused with a guess at it", () => {
    expect(problem({ "ban-length": ["300"] })).toEndWith("(did you mean 300s, with a unit?)");
    expect(problem({ "limits-timeout": ["25"] })).toEndWith("(did you mean 25ms, with a unit?)");
    expect(problem({ "limits-timeout": ["2000"] })).not.toContain("did you mean");
  });

  test.each(Object.entries<Option>(OPTIONS).filter(([, { kind }]) => kind.placeholder === "TIME"))(
    "the examples for --%s can be given",
    (_flag, { kind }) => {
      const [, examples = ""] = /such as (.+)$/.exec(kind.expected) ?? [];
      const times = examples.split(/, | or /);
      expect(times.length).toBeGreaterThan(1);
      expect(times.filter((time) => kind.read(time) === undefined)).toEqual([]);
    },
  );

  test("a guess at a unit can always be given", () => {
    const bounds = fc.integer({ min: 0, max: 100_000_000 });
    fc.assert(
      fc.property(bounds, bounds, fc.nat({ max: 100_000 }), (a, b, count) => {
        const kind = duration({ min: Math.min(a, b), max: Math.max(a, b) });
        const guess = kind.hint?.(`${count}`)?.split(",")[0];
        if (guess !== undefined) expect(kind.read(guess)).toBeNumber();
      }),
    );
  });

  test.each(["0", "1000001", "1.5", "ten"])("%s strikes are refused", (text) => {
    expect(problem({ "ban-strikes": [text] })).toStartWith(
      `--ban-strikes is "${text}"; it should be a whole number`,
    );
  });
});

describe("addresses", () => {
  test.each([
    ["https://api.example.com", "https://api.example.com/v1"],
    ["https://api.example.com/", "https://api.example.com/v1"],
    ["https://api.example.com/v1", "https://api.example.com/v1"],
    ["https://api.example.com/v1/", "https://api.example.com/v1"],
    ["https://api.example.com:443/pets-api", "https://api.example.com/pets-api/v1"],
    ["HTTP://Example.COM:8080/a/v1//", "http://example.com:8080/a/v1"],
    ["http://[2001:DB8::1]:80/v1", "http://[2001:db8::1]/v1"],
  ])("--public-url %s becomes %s", (text, url) => {
    expect(config({ "public-url": [text] }).publicUrl).toBe(url);
  });

  test.each([
    "api.example.com",
    "ftp://example.com",
    "https://",
    "https:/example.com",
    "https://user:secret@example.com",
    "https://user@example.com",
    "https://example.com/v1?x=1",
    "https://example.com/v1?",
    "https://example.com/v1#top",
    "https://exa mple.com",
    "https://example.com/a\\b",
    "https://example.com:99999",
  ])("--public-url %s is refused", (text) => {
    expect(problem({ "public-url": [text] })).toStartWith("--public-url is ");
  });

  test("a normalised base address stays as it is", () => {
    fc.assert(
      fc.property(fc.webUrl(), (url) => {
        const once = config({ "public-url": [url] }).publicUrl ?? "";
        expect(once).toMatch(/^https?:.*[^/]\/v1$/);
        expect(config({ "public-url": [once] }).publicUrl).toBe(once);
      }),
    );
  });

  test.each(["127.0.0.1", "0.0.0.0", "::", "::1", "localhost", "my-host.example.com", "fe80::1"])(
    "--host %s is taken",
    (host) => {
      expect(config({ host: [host] }).host).toBe(host);
    },
  );

  test("--host takes IPv6 in brackets, as addresses show it", () => {
    expect(config({ host: ["[::1]"] }).host).toBe("::1");
  });

  test.each([
    "",
    "127.0.0.1:80",
    "1.2.3.999",
    "10.1",
    "a b",
    "-a",
    "http://x",
    "[127.0.0.1]",
    "x".repeat(64),
  ])("--host %p is refused", (host) => {
    expect(problem({ host: [host] })).toStartWith("--host is ");
  });

  test("a server that listens everywhere is reached over loopback", () => {
    expect(listenUrl("0.0.0.0", 80)).toBe("http://127.0.0.1:80/v1");
    expect(listenUrl("::", 80)).toBe("http://[::1]:80/v1");
    expect(listenUrl("192.0.2.1", 80)).toBe("http://192.0.2.1:80/v1");
  });

  test("each environment knows the other's address, by default that on the same machine", () => {
    const own = "https://api.example.com/v1";
    expect(serversOf({ environment: "production" }, own)).toEqual({
      production: own,
      staging: "http://127.0.0.1:8081/v1",
    });
    expect(serversOf({ environment: "staging" }, own)).toEqual({
      production: DEFAULT_URL.production,
      staging: own,
    });
    expect(serversOf({ environment: "staging", twinUrl: "http://a/v1" }, own).production).toBe("http://a/v1");
  });
});

describe("engines", () => {
  test.each([
    "postgres://u:p%40ss%25@db.example:5432/pets",
    "postgresql://h",
    "postgres://u@[::1]/my%20pets",
  ])("--database-url %s is taken", (url) => {
    expect(config({ "database-url": [url] }).databaseUrl).toBe(url);
  });

  test.each(["redis://h", "redis://h/", "rediss://u:p%2C@h:6380/12", "redis://[::1]:6379/0"])(
    "--limits-url %s is taken",
    (url) => {
      expect(config({ "limits-url": [url] }).limitsUrls).toEqual([url]);
    },
  );

  test.each([
    ["database-url", "mysql://u:s3cret@h/d"],
    ["database-url", "postgres://u:s3cret%zz@h/d"],
    ["database-url", "postgres://s3cret%@h/d"],
    ["database-url", "postgres://u:s3cret@h/%ff"],
    ["database-url", "postgres://u:s3cret@h/a/b"],
    ["database-url", "postgres://u:s3cret@h /d"],
    ["limits-url", "redis://:s3cret%zz@h"],
    ["limits-url", "redis://s3cret%e4@h"],
    ["limits-url", "redis://:s3cret@h/abc"],
    ["limits-url", "redis://:s3cret@h/0/1"],
    ["limits-url", "redis://:s3cret@h/-1"],
    ["limits-url", "redis://:s3cret@h/%30"],
    ["limits-url", "redis://a,redis://:s3cret@"],
  ])("--%s %s is refused by name, and not repeated", (flag, url) => {
    const line = problem({ [flag]: [url] });
    expect(line).toStartWith(`--${flag} cannot be read; it should be an address such as `);
    expect(line).not.toContain("s3cret");
  });

  test.each([
    ["database-url", "postgres://u:100%@h/d"],
    ["limits-url", "redis://a,redis://:100%zz@h"],
  ])("--%s %s: how a percent sign is written is said", (flag, url) => {
    expect(problem({ [flag]: [url] })).toEndWith("(a % in a user, password or database is written %25)");
    expect(problem({ [flag]: ["http://h"] })).not.toContain("%25");
  });

  test("where everything is, without who may use it", () => {
    const place = { environment: "production", dataDir: "./data" } as const;
    expect(whereIs(place)).toEqual({ data: "./data", limits: "in process" });
    expect(
      whereIs({
        ...place,
        databaseUrl: "postgres://user:s3cret@db.example:5432/pets?sslmode=require",
        limitsUrls: ["redis://user:s3cret@a:6379/3", "rediss://:s3cret@b/"],
      }),
    ).toEqual({ data: "PostgreSQL at db.example:5432/pets", limits: "Valkey at a:6379/3, b" });
  });

  test("an address that is known once a server listens is not guessed at", () => {
    const values = { env: "staging", host: "::1", port: undefined, "public-url": undefined } as const;
    expect(expectedUrl(values)).toBe("http://[::1]:8081/v1");
    expect(expectedUrl({ ...values, port: 0 })).toBeUndefined();
    expect(expectedUrl({ ...values, port: 0, "public-url": "https://a/v1" })).toBe("https://a/v1");
  });
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
  ])("%s is the network %s", (text, cidr) => {
    expect(network.read(text)).toBe(cidr);
  });

  test.each([
    "",
    "10.0.0.0/33",
    "10.0.0.0/",
    "10.0.0.0/08",
    "10.0.0.0/+8",
    "10.0.0/8",
    "010.0.0.0/8",
    "10.0.0.0/8/8",
    "10.0.0.256",
    "fd00::/129",
    "fe80::1%eth0",
    "fd00:::1",
    "[::1]",
    "localhost",
    "*",
  ])("%p is refused", (text) => {
    expect(network.read(text)).toBeUndefined();
  });

  test.each([
    ["10.1.2.3/8", "10.0.0.0/8 or 10.1.2.3/32"],
    ["2001:db8::1/32", "2001:db8::/32 or 2001:db8::1/128"],
  ])("%s is refused for its stray bits, with what may have been meant", (text, meant) => {
    expect(problem({ "trust-proxy": [text] })).toEndWith(`(did you mean ${meant}?)`);
  });

  test("a network with its stray bits cleared is always taken", () => {
    const bits = fc.integer({ min: 0, max: 32 });
    fc.assert(
      fc.property(fc.ipV4(), bits, (address, prefix) => {
        const suggested = network.hint?.(`${address}/${prefix}`)?.split(" ")[0] ?? "";
        expect(network.read(suggested)).toBe(suggested);
      }),
    );
    fc.assert(
      fc.property(fc.ipV6(), fc.integer({ min: 0, max: 128 }), (address, prefix) => {
        const suggested = network.hint?.(`${address}/${prefix}`)?.split(" ")[0] ?? "";
        expect(network.read(suggested)).toBe(suggested);
      }),
    );
  });

  test("the variable holds several, separated by commas", () => {
    expect(config({}, { PETSTORE_TRUST_PROXY: "10.0.0.0/8, fd00::/8" }).trustedProxies).toEqual([
      "10.0.0.0/8",
      "fd00::/8",
    ]);
  });

  test("one bad network among good ones is refused", () => {
    expect(problem({ "trust-proxy": ["10.0.0.0/8", "nonsense"] })).toStartWith(
      '--trust-proxy is "10.0.0.0/8,nonsense"',
    );
    expect(problem({}, { PETSTORE_TRUST_PROXY: "10.0.0.0/8," })).toStartWith("PETSTORE_TRUST_PROXY is ");
  });
});

describe("what is said back", () => {
  test("a key that was pasted by mistake is not repeated", () => {
    expect(quoted("pet_live_0123456789abcdef")).toBe('"pet_live_…"');
    expect(problem({ port: ["pet_test_0123456789abcdef"] })).not.toContain("0123456789");
  });

  test("any text at all comes back as one short line of printable characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => {
        const line = quoted(text);
        expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
        expect(line.length).toBeLessThan(1_000);
      }),
    );
  });
});

const rows = (table: string) => table.trimEnd().split("\n").slice(2);

describe("the configuration tables", () => {
  test("every option has a row with its variable, value, default and meaning", () => {
    const { settings, keys } = configurationTables();
    expect(rows(settings)).toHaveLength(Object.keys(SETTINGS).length);
    expect(rows(keys)).toHaveLength(Object.keys(KEY_OPTIONS).length);
    for (const row of [...rows(settings), ...rows(keys)]) expect(row.split(" | ")).toHaveLength(5);
    expect(rows(settings)).toContain(
      "| `--ban-length TIME` | `PETSTORE_BAN_LENGTH` | a time from 1s to 30d, such as 90s, 15m, 24h or 30d | 5m | How long a ban lasts |",
    );
  });
});
