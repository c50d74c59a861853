import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Unavailable } from "../../src/api/errors.ts";
import { sha256 } from "../../src/runtime/hash.ts";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import type { Operator, OperatorAccess } from "../../src/domain/operators.ts";
import type { OperatorStore } from "../../src/domain/ports/operators.ts";
import { silentLog } from "../../src/observe/log.ts";
import { AdminAuthentication } from "../../src/operator/sign-in/admin-authentication.ts";
import { generateToken, toNewToken } from "../../src/operator/sign-in/token.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { directoryAt } from "../data-directory.ts";
import { TestClock } from "../test-clock.ts";

const HOUR = 3_600_000;

describe("tokens", () => {
  test("a generated token has 256 random bits in letters and digits, so that a double click selects all of it", () => {
    const tokens = Array.from({ length: 50 }, generateToken);
    for (const token of tokens) expect(token).toMatch(/^pet_admin_[0-9A-Za-z]{43}$/);
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  test("the hint shows four characters at each end, also of a token of release 1.1.0, and nothing of one made by hand", () => {
    const token = `pet_admin_abcd${"x".repeat(30)}_-_23wxyz`;
    expect(toNewToken(token)).toEqual({ hash: sha256(token), hint: "pet_admin_abcd…wxyz" });
    expect(toNewToken("a-token-made-by-hand").hint).toBe("made by hand");
  });
});

const TOKEN_OF_ANN = generateToken();
const ANN: Operator = { id: 7, name: "ann", role: "support", hint: "", createdAt: 0, issuedAt: 0 };

function authenticationWith(token = TOKEN_OF_ANN, clock = new TestClock()) {
  const reports: NewAuditEntry[] = [];
  const uses: number[] = [];
  const audit = { recordAudit: async (entry: NewAuditEntry) => void reports.push(entry) };
  const tokens = new Map([[sha256(token), { operator: ANN }]]);
  const database = { tokens, reads: 0, isDown: false, gate: Promise.resolve() };
  const store: Partial<OperatorStore> = {
    async readAccess(): Promise<OperatorAccess> {
      if (database.isDown) throw new Unavailable("down");
      database.reads++;
      const read = { tokens: new Map(database.tokens), sessions: new Map(), codes: new Map() };
      await database.gate;
      return read;
    },
    async recordUse(_id, at) {
      uses.push(at);
      throw new Unavailable("down");
    },
  };
  const operators = store as OperatorStore;
  const options = { operators, audit, clock, cookieName: "session", log: silentLog };
  const authentication = new AdminAuthentication(options);
  const actor = { kind: "admin API", name: "192.0.2.1" } as const;
  const check = async (candidate: string, clientAddress = "192.0.2.1") => {
    const result = await authentication.checkToken(candidate, { clientAddress }, actor);
    return "code" in result ? result : result.name;
  };
  return { check, clock, reports, uses, database, authentication };
}

describe("wrong tokens", () => {
  const blocked = (retryAfterSeconds: number) => ({ code: "too_many_attempts", retryAfterSeconds });

  test("after 20 different ones within a minute, no token is compared until the minute is over", async () => {
    const { clock, check } = authenticationWith("right");
    for (let i = 0; i < 20; i++) {
      expect(await check(`wrong ${i}`)).toMatchObject({ code: "invalid_token" });
      clock.advance(1_000);
    }
    expect(await check("right")).toMatchObject(blocked(40));
    clock.advance(39_999);
    expect(await check("right")).toMatchObject(blocked(1));
    clock.advance(1);
    expect(await check("right")).toBe("ann");
  });

  test("of one address block no other address, and 200 of all block short tokens from everywhere", async () => {
    const { clock, check } = authenticationWith("right");
    const guess = (count: number, address: string) =>
      Promise.all(Array.from({ length: count }, (_, i) => check(`${address} ${i}`, address)));
    await guess(1_000, "192.0.2.1");
    expect(await check("right", "192.0.2.1")).toMatchObject(blocked(60));
    expect(await check("right", "192.0.2.2")).toBe("ann");
    for (let i = 2; i <= 10; i++) await guess(20, `192.0.2.${i}`);
    expect(await check("right", "192.0.2.11")).toMatchObject(blocked(60));
    clock.advance(60_000);
    expect(await check("right", "192.0.2.1")).toBe("ann");
  });

  test("of 1,000 guesses that are sent together, 20 are compared", async () => {
    const { check } = authenticationWith("wrong 500");
    const results = await Promise.all(Array.from({ length: 1_000 }, (_, i) => check(`wrong ${i}`)));
    expect(results).not.toContain("ann");
    expect(results.filter((result) => Object(result).code === "invalid_token")).toHaveLength(20);
  });

  test("a short token that is right is no guess: of 1,000 requests that are sent together all get in", async () => {
    const { check, clock, reports, database } = authenticationWith("right");
    const together = async (name: string) =>
      new Set(await Promise.all(Array.from({ length: 1_000 }, () => check(name))));
    for (let i = 0; i < 19; i++) await check(`wrong ${i}`);
    expect(await together("right")).toEqual(new Set(["ann"]));
    database.tokens.set(sha256("newer"), { operator: ANN });
    expect(await together("newer")).toEqual(new Set(["ann"]));
    clock.advance(1_000);
    database.tokens.set(sha256("new"), { operator: ANN });
    expect(await together("new")).toEqual(new Set(["ann"]));
    expect(reports).toHaveLength(19);
    // Nothing was counted, and the next wrong token is the last.
    expect(await check("wrong 19")).toMatchObject({ code: "invalid_token" });
    expect(await together("right")).toEqual(new Set([expect.objectContaining(blocked(59))]));
    expect(reports).toHaveLength(20);
  });

  test("the same wrong token, 1,000 times together, is one guess", async () => {
    const { check, reports } = authenticationWith("right");
    await Promise.all(Array.from({ length: 1_000 }, () => check("old")));
    expect(await check("right")).toBe("ann");
    expect(reports).toHaveLength(1);
  });

  test("a token of 40 characters is compared also then, so that nobody can keep operators out", async () => {
    const long = "0123456789abcdef0123456789abcdef01234567";
    const { check, database } = authenticationWith(long);
    const generated = generateToken();
    database.tokens.set(sha256(generated), { operator: ANN });
    for (let i = 0; i < 20; i++) await check(`wrong ${i}`);
    expect(await check("wrong 20")).toMatchObject(blocked(60));
    expect(await check(long)).toBe("ann");
    expect(await check(generated)).toBe("ann");
    expect(await authenticationWith(long.slice(1)).check(long)).toMatchObject({ code: "invalid_token" });
  });

  test("the same one again is no new guess, so a program with an old token locks nobody out", async () => {
    const { check, reports } = authenticationWith("right");
    for (let i = 0; i < 1_000; i++) expect(await check("old")).toMatchObject({ code: "invalid_token" });
    expect(await check("right")).toBe("ann");
    expect(reports).toHaveLength(1);
  });

  test("the last 100 different ones are no new guesses, and one before them is", async () => {
    const { check, clock } = authenticationWith("right");
    const together = (name: string, from: number, to: number) =>
      Promise.all(Array.from({ length: to - from }, (_, i) => check(`${name} ${from + i}`)));
    for (let i = 0; i <= 100; i += 20) {
      clock.advance(60_000);
      await together("wrong", i, Math.min(101, i + 20));
    }
    clock.advance(60_000);
    await together("wrong", 1, 101);
    expect(await check("right")).toBe("ann");
    await together("other", 0, 19);
    expect(await check("right")).toBe("ann");
    await check("wrong 0");
    expect(await check("right")).toMatchObject(blocked(60));
  });

  test("a token that was wrong is right half a second after it was given to an operator, on every server", async () => {
    const { check, clock, database } = authenticationWith("right");
    for (let i = 0; i < 2; i++) expect(await check("next")).toMatchObject({ code: "invalid_token" });
    database.tokens = new Map([[sha256("next"), { operator: ANN }]]);
    clock.advance(500);
    expect(await check("next")).toBe("ann");
    expect(await check("right")).toMatchObject({ code: "invalid_token" });
  });

  test("setting the machine's clock does not end the wait", async () => {
    const { clock, check } = authenticationWith("right");
    for (let i = 0; i < 20; i++) await check(`wrong ${i}`);
    clock.step(HOUR);
    expect(await check("right")).toMatchObject(blocked(60));
  });
});

describe("what the database says", () => {
  test("is read again after 500 ms, and at once for what is not known", async () => {
    const { check, clock, database } = authenticationWith();
    for (let i = 0; i < 5; i++) expect(await check(TOKEN_OF_ANN)).toBe("ann");
    expect(database.reads).toBe(1);
    const created = generateToken();
    database.tokens.set(sha256(created), { operator: { ...ANN, id: 8 } });
    expect(await check(created)).toBe("ann");
    expect(database.reads).toBe(2);
    database.tokens.clear();
    clock.advance(499);
    expect(await check(TOKEN_OF_ANN)).toBe("ann");
    clock.advance(1);
    expect(await check(TOKEN_OF_ANN)).toMatchObject({ code: "invalid_token" });
  });

  test("goes on for a minute while it cannot be read; what is not known then is an outage, not a wrong token", async () => {
    const { check, clock, database, reports } = authenticationWith();
    expect(await check(TOKEN_OF_ANN)).toBe("ann");
    database.isDown = true;
    clock.advance(59_999);
    expect(await check(TOKEN_OF_ANN)).toBe("ann");
    await expect(check(generateToken())).rejects.toThrow("down");
    clock.advance(1);
    await expect(check(TOKEN_OF_ANN)).rejects.toThrow("down");
    expect(reports).toEqual([]);
  });
});

test("a token that is being compared during a change on this server is compared again afterwards", async () => {
  const { check, authentication, database } = authenticationWith();
  const gate = Promise.withResolvers<void>();
  database.gate = gate.promise;
  const before = check(TOKEN_OF_ANN);
  database.tokens.clear();
  authentication.changed();
  const after = check(TOKEN_OF_ANN);
  gate.resolve();
  expect(await before).toBe("ann");
  expect(await after).toMatchObject({ code: "invalid_token" });
});

test("the use of a token is recorded once an hour, by whichever server", async () => {
  const { check, clock, uses, database } = authenticationWith();
  const startedAt = clock.now();
  for (const ms of [0, 0, HOUR - 1, 1, HOUR - 1]) {
    clock.advance(ms);
    expect(await check(TOKEN_OF_ANN)).toBe("ann");
  }
  expect(uses).toEqual([startedAt, startedAt + HOUR]);
  database.tokens.set(sha256(TOKEN_OF_ANN), { operator: { ...ANN, lastUsedAt: clock.now() } });
  clock.advance(HOUR - 1);
  await check(TOKEN_OF_ANN);
  expect(uses).toHaveLength(2);
  clock.advance(1);
  await check(TOKEN_OF_ANN);
  expect(uses).toHaveLength(3);
});

test("a server that stops removes its URL, and not the one of a server that started after it", () => {
  const dataDir = temporaryDirectory("admin-url");
  const directory = directoryAt(dataDir);
  const file = join(dataDir, "production-url");
  const removeFirst = directory.saveUrl("http://127.0.0.1:8080");
  const removeSecond = directory.saveUrl("http://127.0.0.1:8091");
  removeFirst();
  expect(readFileSync(file, "utf8")).toBe("http://127.0.0.1:8091\n");
  removeSecond();
  expect(existsSync(file)).toBeFalse();
});
