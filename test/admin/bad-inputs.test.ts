import { describe, expect, test } from "bun:test";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import type { JsonSchema } from "../../src/api/schema.ts";
import { useAdminService } from "./admin-service.ts";
import { PetUpdate } from "../../src/domain/pets-and-orders.ts";

const service = await useAdminService();

const LINE = "on one line that is not blank";

/** Fields of a new key, next to a name and the free plan. */
const KEYS: readonly [Record<string, unknown>, string][] = [
  [{ name: undefined }, "name is required and must be a string of 1 to 100 characters"],
  [{ name: " " }, `name must be a string of 1 to 100 characters ${LINE}.`],
  [{ name: "a\nb" }, `name must be a string of 1 to 100 characters ${LINE}.`],
  [{ plan: "Free" }, 'plan must be one of "free", "pro", "business" or "enterprise".'],
  [{ notes: "\u0007" }, "notes must be 1 to 2,000 characters"],
  [{ labels: ["x", "x"] }, "labels must be an array of at most 20 different"],
  [{ labels: ["x", ""] }, "labels[1] must be a string of 1 to 50 characters"],
  [{ labels: ["x,y"] }, "labels must be at most 20 different labels"],
  [{ labels: ["x", "X"] }, "labels must be at most 20 different labels"],
  [{ labels: Array.from({ length: 21 }, String) }, "labels must be an array of at most 20"],
  [{ expiresAt: "2026-02-30T00:00:00Z" }, "expiresAt must be a time"],
  [{ expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt must be in the future."],
  [{ plan: "enterprise" }, "limits must be given for the enterprise plan"],
  [{ limits: { perMinute: 1, perDay: 1 } }, "limits must be given for the enterprise plan only"],
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

/** What the type of a field does not say. */
const BODIES: readonly (readonly [string, string, unknown, string])[] = [
  ["POST", "/api/session", {}, "One of token, code and provider is required."],
  ["POST", "/api/session", { token: "x", code: "x" }, "One of token, code and provider is required."],
  ...KEYS.map(([fields, message]) => {
    const body = { name: "a", plan: "free", ...fields };
    return ["POST", "/api/keys", body, message] as const;
  }),
  ["POST", "/api/keys", [], "The request body must be a JSON object."],
  ["POST", "/api/keys", null, "The request body must be a JSON object."],
  ["PATCH", "/api/keys/1", {}, "At least one of name, owner, notes, labels, plan, limits, access, expiresAt"],
  ["PATCH", "/api/keys/1", { name: null }, "name must be a string of 1 to 100 characters"],
  ["PATCH", "/api/keys/1", { labels: null }, "labels must be an array"],
  ["PATCH", "/api/keys/1", { expiresAt: "2020-01-01T00:00:00Z" }, "expiresAt must be in the future."],
  [
    "PATCH",
    "/api/keys/1",
    { plan: "pro", limits: LIMITS },
    "limits must be given for the enterprise plan only",
  ],
  ["POST", "/api/keys/1/rotate", { overlapSeconds: -1 }, OVERLAP],
  ["POST", "/api/keys/1/rotate", { overlapSeconds: 2_592_001 }, OVERLAP],
  ["PATCH", "/api/pets/1", {}, `At least one of ${PetUpdate.names.join(", ")} is required.`],
  ["PATCH", "/api/pets/1", { categoryId: null }, CATEGORY],
  ["PATCH", "/api/pets/1", { status: "Sold" }, 'status must be one of "available", "pending" or "sold", or'],
];

describe("400 for a body", () => {
  test.each(BODIES)("%s %s %j", async (method, path, body, message) => {
    const response = await service.admin({ method, path, body });
    expect(String(response.json["message"])).toStartWith(message);
    expect(response).toMatchObject({ status: 400, json: { code: "invalid_body", status: 400 } });
  });

  test("without a token the body is at most 4 KiB, and the longest token fits, each character escaped", async () => {
    const signIn = (body: string) => service.admin("POST /api/session", { body, token: null });
    expect(await signIn(`{"token":["${"a".repeat(4 * 1024)}"]}`)).toMatchObject({
      status: 413,
      json: { code: "body_too_large", message: "The request body must not exceed 4 KiB." },
    });
    const { json } = await signIn(`{"token":"${"\\u0061".repeat(200)}"}`);
    expect(json).toMatchObject({ code: "invalid_token" });
  });

  test("the longest valid notes fit, each character escaped", async () => {
    const notes = "\\ud83d\\udc15".repeat(2_000);
    const body = `{"name":"a","plan":"free","notes":"${notes}"}`;
    const { status } = await service.admin("POST /api/keys", { body });
    expect(status).toBe(201);
  });
});

const OPERATIONS = Object.values<AdminOperation>(ADMIN_OPERATIONS).map(({ method, path, query, body }) => {
  return { method, path: `/api${path.replace(/\{\w+\}/, "1")}`, query, body };
});

test("400: every field of a body that is of another type is named", async () => {
  for (const { method, path, body: schema } of OPERATIONS) {
    for (const field of Object.keys(Object(schema?.json["properties"]))) {
      const { status, json } = await service.admin({ method, path, body: { [field]: true } });
      expect([path, status, json["code"]]).toEqual([path, 400, "invalid_body"]);
      expect(json["message"]).toContain(`${field} must be `);
    }
  }
});

test("400: every query parameter that is empty, or given twice, is named", async () => {
  for (const { path, query = {} } of OPERATIONS) {
    for (const name of Object.keys(query)) {
      const get = async (search: string) => (await service.admin(`${path}?${search}`)).json;
      const empty = await get(`${name}=`);
      expect([path, empty["code"]]).toEqual([path, "invalid_parameter"]);
      expect(empty["message"]).toStartWith(`${name} must be `);
      expect((await get(`${name}=5&${name}=6`))["message"]).toBe(`${name} must be given only once.`);
    }
  }
});

test.each([
  ["/api/keys?limit=501", "limit must be an integer from 1 to 500."],
  ["/api/keys?cursor=abc", "cursor must be the nextCursor of the page before."],
  ["/api/bans?limit=0", "limit must be an integer from 1 to 500."],
  [
    "/api/keys/1/usage?since=2026-11-02T00:00:00Z&until=2026-11-01T00:00:00Z",
    "since must not be after until.",
  ],
  ["/api/usage?limit=10001", "limit must be an integer from 1 to 10000."],
  [
    "/api/audit?target=dog:1",
    "target must be a kind and an identifier such as key:7, pet:12, order:3 or operator:2.",
  ],
  ["/api/orders?petId=01", "petId must be a decimal integer from -2^63 to 2^63 - 1."],
])("400 for a query: %s", async (path, message) => {
  const { status, json } = await service.admin(path);
  const [parameter = "", ...words] = message.slice(0, -1).split(" ");
  const problems = [{ path: [parameter], message: words.join(" ") }];
  expect(json).toEqual({ code: "invalid_parameter", message, status: 400, problems });
  expect(status).toBe(400);
});

function sampleOf({ type, enum: values, minimum, format }: JsonSchema): unknown {
  if (Array.isArray(values)) return values[0];
  if (type === "integer") return Math.max(Number(minimum), 1);
  if (type === "boolean") return true;
  if (type === "array") return [];
  return format === "date-time" ? "2090-01-01T00:00:00Z" : "sample";
}

/** A valid body with the fields that it needs, or with one. */
function smallestBody({ properties, required }: JsonSchema): Readonly<Record<string, unknown>> {
  const fields = Object.entries<JsonSchema>(Object(properties));
  const needed = fields.filter(([field]) => Array.isArray(required) && required.includes(field));
  const given = needed.length > 0 ? needed : fields.slice(0, 1);
  return Object.fromEntries(given.map(([field, schema]) => [field, sampleOf(schema)]));
}

test.each(Object.entries<AdminOperation>(ADMIN_OPERATIONS).filter(([, { identifier }]) => identifier))(
  "%s 404: an identifier that nothing has, and one that is no int64 in plain decimal",
  async (_id, { method, path, identifier, body: schema }) => {
    const body = schema && smallestBody(schema.json);
    const { name, notFound: code } = identifier ?? {};
    const messageFor = async (text: string) => {
      const { json } = await service.admin({ method, path: `/api${path.replace(/\{\w+\}/, text)}`, body });
      expect(json).toEqual({ code, message: json["message"], status: 404 });
      return json["message"];
    };
    for (const text of ["99", "-1", "9007199254740993"])
      expect(await messageFor(text)).toMatch(new RegExp(`^[A-Z][a-z]+ (?:${text}|0) does not exist\\.$`));
    for (const text of ["abc", "1.0", "01"])
      expect(await messageFor(text)).toBe(`${name} must be a decimal integer from -2^63 to 2^63 - 1.`);
  },
);

test("updateKey 400: an Enterprise key cannot lose its limits", async () => {
  const { id } = await service.newKey({ plan: "enterprise", limits: LIMITS });
  const response = await service.admin(`PATCH /api/keys/${id}`, { body: { limits: null } });
  const message = expect.stringContaining("limits must be given for the enterprise plan");
  expect(response.json).toMatchObject({ code: "invalid_body", message });
});

/** Integers without a bound of their own that name nothing which the store has. */
const OTHER_INTEGERS = new Set(["categoryId"]);

const isIdentifier = ([field, { type, maximum }]: [string, JsonSchema]) =>
  type === "integer" && Number(maximum) >= Number.MAX_SAFE_INTEGER && !OTHER_INTEGERS.has(field);

test("an identifier in a body that nothing has is a 404 or a 400, and no body is a 500", async () => {
  for (const [operation, { method, path, body: schema }] of Object.entries<AdminOperation>(
    ADMIN_OPERATIONS,
  )) {
    const fields = Object.entries<JsonSchema>(Object(schema?.json["properties"]));
    if (fields.length === 0) continue;
    const { id } = await service.newKey();
    const send = async (change: object) => {
      const valid = fields.map((field) => [field[0], isIdentifier(field) ? id : sampleOf(field[1])]);
      const body = { ...Object.fromEntries(valid), ...change };
      return (await service.admin({ method, path: `/api${path.replace(/\{\w+\}/, `${id}`)}`, body })).status;
    };
    expect([operation, (await send({})) < 500]).toEqual([operation, true]);
    for (const [field] of fields.filter(isIdentifier)) {
      const status = await send({ [field]: 987_654_321 });
      expect(`${operation}, ${field}: ${status}`).toMatch(/: (?:404|400)$/);
    }
  }
});
