import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AdminService, startAdminService } from "./admin-service.ts";

let service: AdminService;
beforeAll(async () => void (service = await startAdminService()));
afterAll(() => service.stop());

const LINE = "on one line that is not blank";

/** Fields of a new key, next to a name and the free plan. */
const KEYS: readonly [Record<string, unknown>, string][] = [
  [{ name: undefined }, "name is required and must be a string of 1 to 100 characters"],
  [{ name: " " }, `name must be a string of 1 to 100 characters ${LINE}.`],
  [{ name: "a\nb" }, `name must be a string of 1 to 100 characters ${LINE}.`],
  [{ plan: "Free" }, 'plan must be one of "free", "pro", "business" or "enterprise".'],
  [{ owner: 7 }, "owner must be a string of 1 to 200 characters"],
  [{ notes: [] }, "notes must be a string of 1 to 2,000 characters"],
  [{ notes: "\u0007" }, "notes must be 1 to 2,000 characters"],
  [{ labels: "x" }, "labels must be an array of at most 20 different items."],
  [{ labels: ["x", "x"] }, "labels must be an array of at most 20 different"],
  [{ labels: ["x", ""] }, "labels[1] must be a string of 1 to 50 characters"],
  [{ labels: ["x,y"] }, "labels must be at most 20 different labels"],
  [{ labels: ["x", "X"] }, "labels must be at most 20 different labels"],
  [{ labels: Array.from({ length: 21 }, String) }, "labels must be an array of at most 20"],
  [{ access: "admin" }, 'access must be one of "read" or "write".'],
  [{ expiresAt: "soon" }, "expiresAt must be a time such as"],
  [{ expiresAt: "2026-02-30T00:00:00Z" }, "expiresAt must be a time"],
  [{ expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt must be in the future."],
  [{ plan: "enterprise" }, "limits must be given for the enterprise plan"],
  [{ limits: { perMinute: 1, perDay: 1 } }, "limits must be given for the enterprise plan only"],
  [{ plan: "enterprise", limits: 5 }, "limits must be a JSON object"],
  [
    { plan: "enterprise", limits: { perMinute: 0 } },
    "limits.perMinute must be an integer from 1 to 1,000,000,000; limits.perDay is required",
  ],
  [
    { plan: "enterprise", limits: { perMinute: 1.5, perDay: "9" } },
    "limits.perMinute must be an integer from 1 to 1,000,000,000; limits.perDay must be",
  ],
];

const LIMITS = { perMinute: 1, perDay: 1 };
const OVERLAP = "overlapSeconds must be an integer from 0 to 2,592,000.";
const CATEGORY = "categoryId must be an integer from -2^63 to 2^63 - 1.";

/** Every operation with input that it rejects: the message names the field. */
const BODIES: readonly (readonly [string, string, unknown, string])[] = [
  ["POST", "/api/session", {}, "Either token or code is required."],
  ["POST", "/api/session", { token: "x", code: "x" }, "Either token or code is required."],
  ["POST", "/api/session", { token: 5 }, `token must be a string of 1 to 200 characters ${LINE}.`],
  ...KEYS.map(([fields, message]) => {
    const body = { name: "a", plan: "free", ...fields };
    return ["POST", "/api/keys", body, message] as const;
  }),
  ["POST", "/api/keys", [], "The request body must be a JSON object."],
  ["POST", "/api/keys", "{", "The request body is not valid JSON."],
  ["PATCH", "/api/keys/1", {}, "At least one of name, owner, notes, labels, plan, limits, access, expiresAt"],
  ["PATCH", "/api/keys/1", { name: null }, "name must be a string of 1 to 100 characters"],
  ["PATCH", "/api/keys/1", { labels: null }, "labels must be an array"],
  ["PATCH", "/api/keys/1", { notes: "\u0007" }, "notes must be 1 to 2,000 characters"],
  ["PATCH", "/api/keys/1", { expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt must be in the future."],
  [
    "PATCH",
    "/api/keys/1",
    { plan: "pro", limits: LIMITS },
    "limits must be given for the enterprise plan only",
  ],
  ["POST", "/api/keys/1/roll", { overlapSeconds: -1 }, OVERLAP],
  ["POST", "/api/keys/1/roll", { overlapSeconds: 2_592_001 }, OVERLAP],
  ["POST", "/api/keys/find", {}, "secret is required and must be"],
  ["PATCH", "/api/pets/1", {}, "At least one of name, categoryId, status is required."],
  ["PATCH", "/api/pets/1", { categoryId: "5" }, CATEGORY],
  ["PATCH", "/api/pets/1", { categoryId: null }, CATEGORY],
  ["PATCH", "/api/pets/1", { status: "Sold" }, 'status must be one of "available", "pending" or "sold", or'],
  ["PATCH", "/api/orders/1", { status: "placed" }, 'status must be one of "completed" or "cancelled".'],
];

describe("400 for a body", () => {
  test.each(BODIES)("%s %s %j", async (method, path, body, message) => {
    const { status, json } = await service.admin({ method, path, body });
    expect(String(json["message"])).toStartWith(message);
    expect({ status, code: json["code"], inBody: json["status"] }).toEqual({
      status: 400,
      code: body === "{" ? "invalid_json" : "invalid_body",
      inBody: 400,
    });
  });

  test("a body of another type is 415, one over 64 KiB is 413", async () => {
    const headers = { "Content-Type": "text/plain" };
    const body = { name: "a", plan: "free" };
    expect(await service.admin({ method: "POST", path: "/api/keys", body, headers })).toMatchObject({
      status: 415,
      json: { code: "unsupported_media_type" },
    });
    const large = { name: "a".repeat(64 * 1024), plan: "free" };
    expect(await service.admin({ method: "POST", path: "/api/keys", body: large })).toMatchObject({
      status: 413,
      json: { code: "body_too_large", message: "The request body must not exceed 64 KiB." },
    });
  });

  test("without a token the body is at most 2 KiB, and the longest token fits, each character escaped", async () => {
    const signIn = (body: string) =>
      service.admin({ method: "POST", path: "/api/session", body, token: null });
    expect(await signIn(`{"token":["${"a".repeat(2 * 1024)}"]}`)).toMatchObject({
      status: 413,
      json: { code: "body_too_large", message: "The request body must not exceed 2 KiB." },
    });
    expect((await signIn(`{"token":"${"\\u0061".repeat(200)}"}`)).json).toMatchObject({
      code: "invalid_token",
    });
  });

  test("the longest valid notes fit, each character escaped", async () => {
    const notes = "\\ud83d\\udc15".repeat(2_000);
    const body = `{"name":"a","plan":"free","notes":"${notes}"}`;
    const { status } = await service.admin({ method: "POST", path: "/api/keys", body });
    expect(status).toBe(201);
  });
});

const QUERIES: readonly [string, string][] = [
  ["/api/overview?range=2h", 'range must be one of "15m", "1h", "6h" or "24h".'],
  ["/api/keys?plan=gold", 'plan must be one of "free", "pro", "business" or "enterprise".'],
  ["/api/keys?state=gone", "state must be one of"],
  ["/api/keys?access=all", "access must be one of"],
  ["/api/keys?search=", "search must be a string of 1 to 200 characters"],
  ["/api/keys?label=", "label must be a string of 1 to 50 characters"],
  ["/api/keys?owner=", "owner must be a string of 1 to 200 characters"],
  ["/api/keys?unusedSince=yesterday", "unusedSince must be a time such as"],
  ["/api/keys?sort=size", "sort must be one of"],
  ["/api/keys?order=up", 'order must be one of "asc" or "desc".'],
  ["/api/keys?limit=501", "limit must be an integer from 1 to 500."],
  ["/api/keys?limit=5&limit=6", "limit must be given only once."],
  ["/api/keys?cursor=abc", "cursor must be the nextCursor of the page before."],
  ["/api/bans?limit=0", "limit must be an integer from 1 to 500."],
  ["/api/keys/1/usage?by=week", 'by must be one of "hour" or "day".'],
  ["/api/keys/1/usage?since=1", "since must be a time such as"],
  [
    "/api/keys/1/usage?since=2026-11-02T00:00:00Z&until=2026-11-01T00:00:00Z",
    "since must not be after until.",
  ],
  ["/api/usage?until=x", "until must be a time such as"],
  ["/api/usage?limit=10001", "limit must be an integer from 1 to 10000."],
  ["/api/audit?action=key.eaten", "action must be one of"],
  ["/api/audit?actor=nobody", "actor must be one of"],
  [
    "/api/audit?target=key",
    "target must be a kind and an identifier such as key:7, pet:12, order:3 or operator:2.",
  ],
  ["/api/audit?target=dog:1", "target must be a kind and an identifier"],
  ["/api/audit?cursor=!", "cursor must be the nextCursor of the page before."],
  ["/api/pets?status=gone", "status must be one of"],
  ["/api/pets?cursor=1", "cursor must be"],
  ["/api/orders?status=gone", "status must be one of"],
  ["/api/orders?keyId=x", "keyId must be a decimal integer from -2^63 to 2^63 - 1."],
  ["/api/orders?petId=01", "petId must be a decimal integer from -2^63 to 2^63 - 1."],
];

test.each(QUERIES)("400 for a query: %s", async (path, message) => {
  const { status, json } = await service.admin({ path });
  expect(String(json["message"])).toStartWith(message);
  expect({ status, code: json["code"] }).toEqual({ status: 400, code: "invalid_parameter" });
});

describe("404 for an identifier", () => {
  test.each([
    ["GET", "/api/keys/99", "key_not_found", "Key 99 does not exist."],
    ["GET", "/api/keys/abc", "key_not_found", "keyId must be a decimal integer from -2^63 to 2^63 - 1."],
    ["GET", "/api/keys/9007199254740993", "key_not_found", "Key 9007199254740993 does not exist."],
    ["GET", "/api/keys/-1", "key_not_found", "Key -1 does not exist."],
    ["GET", "/api/keys/99/usage", "key_not_found", "Key 99 does not exist."],
    ["POST", "/api/keys/99/revoke", "key_not_found", "Key 99 does not exist."],
    ["POST", "/api/keys/99/unban", "key_not_found", "Key 99 does not exist."],
    ["POST", "/api/keys/99/roll", "key_not_found", "Key 99 does not exist."],
    ["GET", "/api/pets/99", "pet_not_found", "Pet 99 does not exist."],
    ["GET", "/api/pets/1.0", "pet_not_found", "petId must be a decimal integer from -2^63 to 2^63 - 1."],
    ["DELETE", "/api/pets/99", "pet_not_found", "Pet 99 does not exist."],
    ["GET", "/api/orders/99", "order_not_found", "Order 99 does not exist."],
  ])("%s %s", async (method, path, code, message) => {
    expect((await service.admin({ method, path })).json).toEqual({ code, message, status: 404 });
  });

  test.each([
    ["/api/keys/99", { name: "x" }, "key_not_found"],
    ["/api/pets/99", { name: "x" }, "pet_not_found"],
    ["/api/orders/99", { status: "cancelled" }, "order_not_found"],
  ])("PATCH %s", async (path, body, code) => {
    expect((await service.admin({ method: "PATCH", path, body })).json).toMatchObject({ code, status: 404 });
  });
});

test("updateKey 400: an Enterprise key cannot lose its limits", async () => {
  const { id } = await service.newKey({ plan: "enterprise", limits: LIMITS });
  const response = await service.admin({ method: "PATCH", path: `/api/keys/${id}`, body: { limits: null } });
  const message = expect.stringContaining("limits must be given for the enterprise plan");
  expect(response.json).toMatchObject({ code: "invalid_body", message });
});
