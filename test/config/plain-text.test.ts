import { expect, test } from "bun:test";
import { plainTextConnections } from "../../src/config/config.ts";
import type { Flags } from "../../src/config/parse-options.ts";
import { parseConfig } from "./parsing.ts";

const plainText = (flags: Flags, variables = {}) => plainTextConnections(parseConfig(flags), variables);

test.each(["127.0.0.1", "127.1.2.3", "::1", "localhost"])(
  "clients in plain text: no warning on loopback: %s",
  (host) => {
    expect(plainText({ host: [host] })).toEqual([]);
  },
);

test.each(["0.0.0.0", "::", "192.0.2.1", "pets.example"])(
  "clients in plain text: a warning on %s",
  (host) => {
    expect(plainText({ host: [host] })).toEqual(["clients"]);
  },
);

test("clients in plain text: no warning with TLS, or behind a proxy", () => {
  const host = ["0.0.0.0"];
  expect(plainText({ host, "tls-cert": ["a"], "tls-key": ["b"] })).toEqual([]);
  expect(plainText({ host, "trust-proxy": ["10.0.0.1"] })).toEqual([]);
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

test("Valkey elsewhere in plain text, also as one of several nodes", () => {
  expect(plainText({ "limits-url": ["redis://a.example"] })).toEqual(["valkey"]);
  expect(plainText({ "limits-url": ["rediss://a.example", "redis://b.example"] })).toEqual(["valkey"]);
  expect(plainText({ "limits-url": ["rediss://a.example"] })).toEqual([]);
  expect(plainText({ "limits-url": ["redis://localhost"] })).toEqual([]);
});
