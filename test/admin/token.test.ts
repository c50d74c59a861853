import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Sessions, TokenAttempts } from "../../src/operator/sign-in.ts";
import { AdminToken, generateToken, saveAdminUrl } from "../../src/operator/token.ts";
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

  test("after a replacement only the new one matches", () => {
    const token = new AdminToken("the old token");
    token.replace("the new token");
    expect([token.matches("the old token"), token.matches("the new token")]).toEqual([false, true]);
  });
});

describe("sessions", () => {
  test("last 12 hours", () => {
    const clock = new TestClock();
    const sessions = new Sessions(new AdminToken("token"), clock);
    const session = sessions.create();
    clock.advance(12 * HOUR - 1);
    expect(sessions.isValid(session)).toBeTrue();
    clock.advance(1);
    expect(sessions.isValid(session)).toBeFalse();
  });

  test("survive a restart with the same token, and end when the token is replaced", () => {
    const clock = new TestClock();
    const session = new Sessions(new AdminToken("token"), clock).create();
    const token = new AdminToken("token");
    const restarted = new Sessions(token, clock);
    expect(restarted.isValid(session)).toBeTrue();
    token.replace("another token");
    expect(restarted.isValid(session)).toBeFalse();
    token.replace("token");
    expect(restarted.isValid(session)).toBeTrue();
  });

  test("one that was ended stays so, and others go on", () => {
    const sessions = new Sessions(new AdminToken("token"), new TestClock());
    const [first, second] = [sessions.create(), sessions.create()];
    sessions.end(first);
    expect([sessions.isValid(first), sessions.isValid(second)]).toEqual([false, true]);
  });

  test("at most 10,000 ended ones are remembered, the latest ones", () => {
    const sessions = new Sessions(new AdminToken("token"), new TestClock());
    const all = Array.from({ length: 10_001 }, () => sessions.create());
    for (const session of all) sessions.end(session);
    expect(all.map((session) => sessions.isValid(session))).toEqual(all.map((_, i) => i === 0));
  });

  test("a value that was changed in any place is not valid", () => {
    const sessions = new Sessions(new AdminToken("token"), new TestClock());
    const session = sessions.create();
    for (let i = 0; i < session.length; i++) {
      const changed = session.slice(0, i) + (session[i] === "0" ? "1" : "0") + session.slice(i + 1);
      expect(sessions.isValid(changed)).toBeFalse();
    }
    for (const wrong of ["", ".", "..", "1.2.3", `${session}x`, ` ${session}`]) {
      expect(sessions.isValid(wrong)).toBeFalse();
    }
  });
});

describe("wrong tokens", () => {
  const attemptsOn = (clock = new TestClock(), token = new AdminToken("right")) => ({
    clock,
    token,
    attempts: new TokenAttempts(token, clock),
  });

  test("after 20 different ones within a minute, no token is compared until the minute is over", () => {
    const { clock, attempts } = attemptsOn();
    for (let i = 0; i < 20; i++) {
      expect(attempts.check(`wrong ${i}`)).toEqual({ outcome: "wrong", isNew: true });
      clock.advance(1_000);
    }
    expect(attempts.check("right")).toEqual({ outcome: "blocked", retryAfterSeconds: 40 });
    clock.advance(39_999);
    expect(attempts.check("right")).toEqual({ outcome: "blocked", retryAfterSeconds: 1 });
    clock.advance(1);
    expect(attempts.check("right")).toEqual({ outcome: "right" });
  });

  test("a token of 40 characters is compared also then, so that nobody can keep operators out", () => {
    const long = "0123456789abcdef0123456789abcdef01234567";
    const { attempts } = attemptsOn(new TestClock(), new AdminToken(long));
    for (let i = 0; i < 20; i++) attempts.check(`wrong ${i}`);
    expect(attempts.check("wrong 20")).toEqual({ outcome: "blocked", retryAfterSeconds: 60 });
    expect(attempts.check(long)).toEqual({ outcome: "right" });
    expect(new AdminToken(generateToken()).isUnguessable).toBeTrue();
    const replaced = new AdminToken(long);
    replaced.replace(long.slice(1));
    expect(replaced.isUnguessable).toBeFalse();
  });

  test("the same one again is no new guess, so a program with an old token locks nobody out", () => {
    const { attempts } = attemptsOn();
    attempts.check("old");
    for (let i = 0; i < 1_000; i++) expect(attempts.check("old")).toEqual({ outcome: "wrong", isNew: false });
    expect(attempts.check("right")).toEqual({ outcome: "right" });
  });

  test("a token that was wrong before the token was replaced can be right after it", () => {
    const { token, attempts } = attemptsOn();
    expect(attempts.check("next").outcome).toBe("wrong");
    token.replace("next");
    expect(attempts.check("next").outcome).toBe("right");
    expect(attempts.check("right").outcome).toBe("wrong");
  });

  test("setting the machine's clock does not end the wait", () => {
    const { clock, attempts } = attemptsOn();
    for (let i = 0; i < 20; i++) attempts.check(`wrong ${i}`);
    clock.step(HOUR);
    expect(attempts.check("right")).toEqual({ outcome: "blocked", retryAfterSeconds: 60 });
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
