import { afterAll, beforeAll, expect, test } from "bun:test";
import { MESSAGES } from "../contract/messages.ts";
import { type ApiRequest, type Service, startService } from "../service.ts";

let service: Service;
beforeAll(async () => {
  service = await startService();
  const pet = { name: "Rex", categoryId: 7 };
  for (let i = 0; i < 2; i++) await post("/pets", pet, { "Idempotency-Key": `pet ${i}`.replace(" ", "-") });
  for (let petId = 1; petId <= 2; petId++) await post("/store/orders", { petId });
  await service.call({ method: "PATCH", path: "/store/orders/1", body: { status: "completed" } });
});
afterAll(() => service.stop());

function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  return service.call({ method: "POST", path, body, headers });
}

const BOM = "\uFEFF{}";
const MALFORMED_ID = "must be a decimal integer from -2^63 to 2^63 - 1.";
const OTHER_KEY = "pet_test_000000000000000000000000000000000000";

/** Expected outcomes; those of a rate limit, of a removal and of internal errors have their own tests. */
const CASES: readonly [keyof typeof MESSAGES, ApiRequest, string?][] = [
  ["invalid_json", { method: "POST", path: "/pets", body: "{" }],
  [
    "invalid_json",
    { method: "POST", path: "/pets", body: BOM },
    "The request body must be UTF-8 without a byte order mark.",
  ],
  ["invalid_body", { method: "POST", path: "/pets", body: { name: "Rex", categoryId: "7" } }],
  [
    "invalid_body",
    { method: "POST", path: "/pets", headers: { "Content-Type": "application/json" } },
    "A request body is required. Send a JSON object.",
  ],
  ["invalid_body", { method: "POST", path: "/pets", body: [] }, "The request body must be a JSON object."],
  ["invalid_parameter", { path: "/pets?limit=0" }],
  ["invalid_parameter", { path: "/pets?limit=1&limit=1" }, "limit must be given only once."],
  ["missing_api_key", { path: "/pets", key: null }],
  ["invalid_api_key", { path: "/pets", key: OTHER_KEY }],
  ["not_found", { path: "/cats" }],
  ["pet_not_found", { path: "/pets/42" }],
  ["pet_not_found", { path: "/pets/042" }, `petId ${MALFORMED_ID}`],
  ["pet_not_found", { method: "POST", path: "/store/orders", body: { petId: 42 } }],
  ["order_not_found", { method: "PATCH", path: "/store/orders/42", body: { status: "completed" } }],
  ["order_not_found", { method: "PATCH", path: "/store/orders/x", body: {} }, `orderId ${MALFORMED_ID}`],
  ["method_not_allowed", { method: "DELETE", path: "/pets" }],
  [
    "method_not_allowed",
    { method: "PUT", path: "/store/orders/1" },
    "PUT is not allowed on this path. Allowed methods: GET, HEAD, PATCH, OPTIONS.",
  ],
  [
    "pet_not_available",
    { method: "POST", path: "/store/orders", body: { petId: 2 } },
    "Pet 2 is pending. Only available pets can be ordered.",
  ],
  ["order_closed", { method: "PATCH", path: "/store/orders/1", body: { status: "cancelled" } }],
  ["body_too_large", { method: "POST", path: "/pets", body: "x".repeat(16_385) }],
  [
    "unsupported_media_type",
    { method: "POST", path: "/pets", body: "{}", headers: { "Content-Type": "text/plain" } },
  ],
  [
    "idempotency_key_reused",
    {
      method: "POST",
      path: "/pets",
      body: { name: "Mia", categoryId: 7 },
      headers: { "Idempotency-Key": "pet-0" },
    },
  ],
];

for (const [code, request, message = MESSAGES[code]] of CASES) {
  test(`${code}: ${message}`, async () => {
    const { status, json } = await service.call(request);
    expect(json).toEqual({ code, message, status });
  });
}
