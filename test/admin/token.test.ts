import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { NewAuditEntry } from "../../src/domain/audit.ts";
import { silentLog } from "../../src/observe/log.ts";
import { AdminAuthentication, AdminToken } from "../../src/operator/sign-in.ts";
import { generateToken, saveAdminUrl } from "../../src/operator/token.ts";
import { temporaryFolder } from "../../trials/harness/cleanup.ts";
import { TestClock } from "../test-clock.ts";

const HOUR = 3_600_000;

describe("the admin token", () => {
  test("a generated token has 256 random bits in characters that a URL needs not escape", () => {
    const token = generateToken();
    expect(token).toMatch(/^pet_admin_[\w-]{43}$/);
    expect(encodeURIComponent(token)).toBe(token);
    expect(generateToken()).not.toBe(token);
  });

  test("matches itself and nothing else", () => {
    const token = new AdminToken("the right token!");
    expect(token.matches("the right token!")).toBeTrue();
    for (const wrong of ["", "the right token", "the right token!!", "The right token!", "ünïcode 🐕"]) {
      expect(token.matches(wrong)).toBeFalse();
    }
  });
});

function authenticationWith(token = "token", clock = new TestClock()) {
  const reports: NewAuditEntry[] = [];
  const recordAudit = async (entry: NewAuditEntry) => void reports.push(entry);
  const options = { token, clock, cookieName: "session", log: silentLog, recordAudit };
  const authentication = new AdminAuthentication(options);
  const actor = { kind: "admin API", name: "192.0.2.1" } as const;
  const check = (candidate: string) => authentication.checkToken(candidate, actor) ?? "right";
  return { authentication, check, clock, reports };
}

describe("sessions", () => {
  test("last 12 hours", () => {
    const { authentication, clock } = authenticationWith();
    const session = authentication.createSession();
    clock.advance(12 * HOUR - 1);
    expect(authentication.isValidSession(session)).toBeTrue();
    clock.advance(1);
    expect(authentication.isValidSession(session)).toBeFalse();
  });

  test("survive a restart with the same token, and end when the token is replaced", () => {
    const session = authenticationWith().authentication.createSession();
    const { authentication: restarted } = authenticationWith();
    expect(restarted.isValidSession(session)).toBeTrue();
    restarted.replaceToken("another token");
    expect(restarted.isValidSession(session)).toBeFalse();
    restarted.replaceToken("token");
    expect(restarted.isValidSession(session)).toBeTrue();
  });

  test("one that was ended stays so; at most 10,000 are remembered, the latest ones", () => {
    const { authentication } = authenticationWith();
    const all = Array.from({ length: 10_001 }, () => authentication.createSession());
    for (const session of all) authentication.endSession(session);
    expect(all.map((session) => authentication.isValidSession(session))).toEqual(all.map((_, i) => i === 0));
    expect(authentication.isValidSession(authentication.createSession())).toBeTrue();
  });

  test("a value that was changed in any place is not valid", () => {
    const { authentication } = authenticationWith();
    const session = authentication.createSession();
    for (let i = 0; i < session.length; i++) {
      const changed = session.slice(0, i) + (session[i] === "0" ? "1" : "0") + session.slice(i + 1);
      expect(authentication.isValidSession(changed)).toBeFalse();
    }
    for (const wrong of ["", ".", "..", "1.2.3", `${session}x`, ` ${session}`]) {
      expect(authentication.isValidSession(wrong)).toBeFalse();
    }
  });
});

describe("wrong tokens", () => {
  const blocked = (retryAfterSeconds: number) => ({ code: "too_many_attempts", retryAfterSeconds });

  test("after 20 different ones within a minute, no token is compared until the minute is over", () => {
    const { clock, check } = authenticationWith("right");
    for (let i = 0; i < 20; i++) {
      expect(check(`wrong ${i}`)).toMatchObject({ code: "invalid_token" });
      clock.advance(1_000);
    }
    expect(check("right")).toMatchObject(blocked(40));
    clock.advance(39_999);
    expect(check("right")).toMatchObject(blocked(1));
    clock.advance(1);
    expect(check("right")).toBe("right");
  });

  test("a token of 40 characters is compared also then, so that nobody can keep operators out", () => {
    const long = "0123456789abcdef0123456789abcdef01234567";
    const { check } = authenticationWith(long);
    for (let i = 0; i < 20; i++) check(`wrong ${i}`);
    expect(check("wrong 20")).toMatchObject(blocked(60));
    expect(check(long)).toBe("right");
    expect(new AdminToken(generateToken()).isUnguessable).toBeTrue();
    expect(new AdminToken(long.slice(1)).isUnguessable).toBeFalse();
  });

  test("the same one again is no new guess, so a program with an old token locks nobody out", () => {
    const { check, reports } = authenticationWith("right");
    for (let i = 0; i < 1_000; i++) expect(check("old")).toMatchObject({ code: "invalid_token" });
    expect(check("right")).toBe("right");
    expect(reports).toHaveLength(1);
  });

  test("a token that was wrong before the token was replaced can be right after it", () => {
    const { authentication, check } = authenticationWith("right");
    expect(check("next")).toMatchObject({ code: "invalid_token" });
    authentication.replaceToken("next");
    expect(check("next")).toBe("right");
    expect(check("right")).toMatchObject({ code: "invalid_token" });
  });

  test("setting the machine's clock does not end the wait", () => {
    const { clock, check } = authenticationWith("right");
    for (let i = 0; i < 20; i++) check(`wrong ${i}`);
    clock.step(HOUR);
    expect(check("right")).toMatchObject(blocked(60));
  });
});

test("a server that stops removes its URL, and not the one of a server that started after it", () => {
  const dataDir = temporaryFolder("admin-url");
  const storage = { environment: "production", dataDir } as const;
  const file = join(dataDir, "production-admin-url");
  const removeFirst = saveAdminUrl(storage, "http://127.0.0.1:8090");
  const removeSecond = saveAdminUrl(storage, "http://127.0.0.1:8091");
  removeFirst();
  expect(readFileSync(file, "utf8")).toBe("http://127.0.0.1:8091\n");
  removeSecond();
  expect(existsSync(file)).toBeFalse();
});
