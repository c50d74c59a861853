import { describe, expect, test } from "bun:test";
import { plainTextWarnings } from "../../src/config/plain-text.ts";
import type { Flags } from "../../src/config/parse-options.ts";
import { parseConfig } from "./parsing.ts";

const warnings = (flags: Flags, variables = {}) => plainTextWarnings(parseConfig(flags), variables);

describe("clients in plain text", () => {
  const warning = (host: string) => [
    `clients send their API keys to ${host} in plain text; serve HTTPS with --tls-cert and --tls-key, or put a proxy that does in front and name it with --trust-proxy`,
  ];

  test.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])("no warning on loopback: %s", (host) => {
    expect(warnings({ host: [host] })).toEqual([]);
  });

  test.each(["0.0.0.0", "::", "192.0.2.1", "pets.example"])("a warning on %s", (host) => {
    expect(warnings({ host: [host] })).toEqual(warning(host));
  });

  test("no warning with TLS, or behind a proxy", () => {
    const host = ["0.0.0.0"];
    expect(warnings({ host, "tls-cert": ["a"], "tls-key": ["b"] })).toEqual([]);
    expect(warnings({ host, "trust-proxy": ["10.0.0.1"] })).toEqual([]);
  });
});

describe("databases in plain text", () => {
  const POSTGRES =
    "the connection to PostgreSQL is in plain text, or may fall back to it; add ?sslmode=verify-full to its URL";
  const VALKEY = "the connection to Valkey is in plain text; use rediss:// in its URL";

  test.each(["", "?sslmode=disable", "?sslmode=allow", "?sslmode=prefer"])(
    "PostgreSQL elsewhere: %p",
    (query) => {
      expect(warnings({ "database-url": [`postgres://db.example/d${query}`] })).toEqual([POSTGRES]);
      expect(warnings({ "database-url": [`postgres://127.0.0.1/d${query}`] })).toEqual([]);
      expect(warnings({ "database-url": [`postgres://[::1]/d${query}`] })).toEqual([]);
    },
  );

  test.each(["require", "verify-ca", "verify-full"])("no warning with sslmode=%s", (mode) => {
    expect(warnings({ "database-url": [`postgres://db.example/d?sslmode=${mode}`] })).toEqual([]);
    expect(warnings({ "database-url": ["postgres://db.example/d"] }, { PGSSLMODE: mode })).toEqual([]);
  });

  test("Valkey elsewhere, also as one of several nodes", () => {
    expect(warnings({ "limits-url": ["redis://a.example"] })).toEqual([VALKEY]);
    expect(warnings({ "limits-url": ["rediss://a.example", "redis://b.example"] })).toEqual([VALKEY]);
    expect(warnings({ "limits-url": ["rediss://a.example"] })).toEqual([]);
    expect(warnings({ "limits-url": ["redis://localhost"] })).toEqual([]);
  });
});
