import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateSecret, hintOf } from "../../src/domain/api-keys.ts";
import { isKeyFailure, type KeyFailure, KeyManagement } from "../../src/domain/key-management.ts";
import type { Subject } from "../../src/domain/rate-limit.ts";
import { openSqlite, type SqliteStores } from "../../src/store/sqlite/store.ts";
import { temporaryFolder } from "../store/temporary-folder.ts";
import { TestClock } from "../test-clock.ts";

const HOUR_MS = 3_600_000;
const actor = { kind: "admin API", name: "192.0.2.1" } as const;
const draft = { name: "shop", plan: "free" } as const;

let folder: ReturnType<typeof temporaryFolder>;
let stores: SqliteStores;
let clock: TestClock;
let unbans: [Subject, number][];
let management: KeyManagement;

beforeEach(() => {
  folder = temporaryFolder();
  stores = openSqlite(folder.path("store.db"));
  clock = new TestClock();
  unbans = [];
  management = new KeyManagement({
    keys: stores.keys,
    clock,
    environment: "production",
    actor,
    rateLimiter: { unban: (subject, agoMs) => void unbans.push([subject, agoMs]) },
  });
});

afterEach(async () => {
  await stores.close();
  folder.remove();
});

function succeeded<T extends object>(result: T | KeyFailure): T {
  if (isKeyFailure(result)) throw new Error(result.message);
  return result;
}

const create = async (more: object = {}) => succeeded(await management.create({ ...draft, ...more }));
const actions = async () =>
  (await stores.audit.listAudit({ limit: 100 })).items.map(({ action }) => action).toReversed();

test("create: the key, and a secret that finds it and of which only hash and hint are stored", async () => {
  const { key, secret } = await create({ owner: "ann", labels: ["a", "b"], access: "read" });
  expect(key).toMatchObject({
    id: 1,
    owner: "ann",
    labels: ["a", "b"],
    access: "read",
    createdAt: clock.now(),
  });
  expect(succeeded(await management.findBySecret(secret))).toEqual({ key });
  expect((await stores.keys.listSecrets([1])).get(1)).toEqual([
    { hint: hintOf(secret), createdAt: clock.now() },
  ]);
});

test("each change is recorded once, in the name of the actor and with the time of the clock", async () => {
  await create();
  await management.update(1, { name: "store" });
  await management.rotate(1, 0);
  await management.unban(1);
  await management.revoke(1);
  await management.revoke(1);
  expect(await actions()).toEqual([
    "key.created",
    "key.updated",
    "key.rolled",
    "key.unbanned",
    "key.revoked",
  ]);
  for (const entry of (await stores.audit.listAudit({ limit: 9 })).items) {
    expect(entry).toMatchObject({ actor, at: clock.now() });
  }
});

describe("fields", () => {
  const long = "x".repeat(2_001);
  test.each<[string, object]>([
    ["name must be 1 to 100 characters on one line, not all of them blank", { name: " " }],
    ["name must be 1 to 100 characters on one line, not all of them blank", { name: long.slice(0, 101) }],
    ["name must be 1 to 100 characters on one line, not all of them blank", { name: "a\nb" }],
    ["owner must be 1 to 200 characters on one line, not all of them blank", { owner: long.slice(0, 201) }],
    ["owner must be 1 to 200 characters on one line, not all of them blank", { owner: "" }],
    [
      "notes must be 1 to 2,000 characters, not all of them blank, without control characters",
      { notes: long },
    ],
    [
      "notes must be 1 to 2,000 characters, not all of them blank, without control characters",
      { notes: "a\0" },
    ],
    ["expiresAt must be in the future", { expiresAt: 0 }],
    ["limits must be given for the enterprise plan: each key has its own limits", { plan: "enterprise" }],
    [
      "limits must be given for the enterprise plan only; the plan is free",
      { limits: { perMinute: 1, perDay: 1 } },
    ],
  ])("create and update: %s (%#)", async (message, fields) => {
    expect(await management.create({ ...draft, ...fields })).toMatchObject({
      code: "invalid_field",
      message,
    });
    await create();
    const field = message.split(" ")[0];
    expect(await management.update(1, fields)).toMatchObject({ code: "invalid_field", field, message });
    expect(await actions()).toEqual(["key.created"]);
  });

  test.each<[string, string[]]>([
    ["more than 20", Array.from({ length: 21 }, (_, n) => `${n}`)],
    ["twice the same", ["a", "A"]],
    ["with a comma", ["a,b"]],
    ["of 51 characters", ["x".repeat(51)]],
    ["blank", [" "]],
  ])("labels: %s", async (_, labels) => {
    expect(await management.create({ ...draft, labels })).toEqual({
      code: "invalid_field",
      field: "labels",
      message:
        "labels must be at most 20 different labels, each 1 to 50 characters on one line, not all of them blank, without commas",
    });
  });

  test("the longest that are valid, counted in code points", async () => {
    const { key } = await create({
      name: "🐈".repeat(100),
      owner: "🐈".repeat(200),
      notes: "🐈\n\t".repeat(666),
      labels: Array.from({ length: 20 }, (_, n) => "🐈".repeat(48) + String(n).padStart(2, "0")),
    });
    expect(key.labels).toHaveLength(20);
    expect(await stores.keys.getKey(1)).toEqual(key);
  });

  test("an Enterprise key keeps its limits when another field changes, and can change them", async () => {
    await create({ plan: "enterprise", limits: { perMinute: 1, perDay: 2 } });
    succeeded(await management.update(1, { name: "x" }));
    const updated = succeeded(await management.update(1, { limits: { perMinute: 3, perDay: 4 } }));
    expect(updated.limits).toEqual({ perMinute: 3, perDay: 4 });
    expect(succeeded(await management.update(1, { plan: "pro" })).limits).toBeUndefined();
  });
});

describe("a key that does not work", () => {
  test("expired: its plan and access stay, unless the edit moves the expiry; it cannot be rolled", async () => {
    await create({ expiresAt: clock.now() + HOUR_MS });
    clock.advance(HOUR_MS);
    const expired = {
      code: "key_expired",
      message: "key 1 expired at 2026-11-15T13:00:00.000Z and cannot be changed; create a new key",
    } as const;
    expect(await management.update(1, { plan: "pro" })).toEqual(expired);
    expect(await management.update(1, { access: "read" })).toEqual(expired);
    expect(await management.rotate(1, 0)).toMatchObject({ code: "key_expired" });
    expect(succeeded(await management.update(1, { notes: "was for a trial" })).notes).toBe("was for a trial");
    expect(succeeded(await management.update(1, { plan: "pro", expiresAt: null }))).toMatchObject({
      plan: "pro",
    });
    expect(succeeded(await management.rotate(1, 0)).key.id).toBe(1);
  });

  test("revoked: only what describes it changes, whatever the expiry", async () => {
    await create();
    await management.revoke(1);
    for (const edit of [{ plan: "pro" }, { access: "read" }, { expiresAt: null }] as const) {
      expect(await management.update(1, edit)).toMatchObject({ code: "key_revoked" });
    }
    expect(await management.unban(1)).toMatchObject({ code: "key_revoked" });
    expect(await management.rotate(1, 0)).toMatchObject({ code: "key_revoked" });
    expect(succeeded(await management.update(1, { name: "old" })).name).toBe("old");
    const again = succeeded(await management.revoke(1));
    expect([again.wasRevoked, again.key.revokedAt]).toEqual([true, clock.now()]);
  });

  test("missing: every operation says so", async () => {
    const missing = { code: "key_not_found", message: "key 7 does not exist" } as const;
    expect(await management.update(7, { name: "x" })).toEqual(missing);
    expect(await management.rotate(7, 0)).toEqual(missing);
    expect(await management.revoke(7)).toEqual(missing);
    expect(await management.unban(7)).toEqual(missing);
  });
});

test("roll: the previous secret works until the overlap ends, and without overlap not at all", async () => {
  const { secret: first } = await create();
  const second = succeeded(await management.rotate(1, HOUR_MS));
  expect(second.overlapEndsAt).toBe(clock.now() + HOUR_MS);
  expect(succeeded(await management.findBySecret(first)).validUntil).toBe(clock.now() + HOUR_MS);
  await management.rotate(1, 0);
  expect(succeeded(await management.findBySecret(first)).validUntil).toBe(0);
  expect(succeeded(await management.findBySecret(second.secret)).validUntil).toBe(0);
});

test("unban: the rate limiter ends every ban up to now", async () => {
  await create();
  expect(succeeded(await management.unban(1)).unbannedAt).toBe(clock.now());
  expect(unbans).toEqual([[{ kind: "key", id: 1 }, 0]]);
});

test.each([
  ["no key in production has this secret", generateSecret("production")],
  ["this is an API key of staging", generateSecret("staging")],
  ["this is not an API key; it is mistyped or incomplete", generateSecret("production").slice(0, -1)],
  ["this is not an API key; it is mistyped or incomplete", ""],
])("findBySecret: %s", async (message, secret) => {
  await create();
  expect(await management.findBySecret(secret)).toEqual({ code: "unknown_secret", message });
});
