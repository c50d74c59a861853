import { bearer, clientOf, HOST, message, ORIGIN } from "../message.ts";
import type { Scenario } from "../play.ts";

const { get, post } = clientOf("free");
const reader = clientOf("reader");

/** A request for pets with these headers and no other than `Host`. */
const list = (...headers: string[]) => message("GET /v1/pets?limit=1 HTTP/1.1", [HOST, ...headers]);
const authorised = (value: string) => list(`Authorization: ${value}`);

const HOUR_MS = 3_600_000;
const ENTERPRISE = ["--plan", "enterprise", "--per-minute", "5", "--per-day", "7"];

/** Authentication, and what each plan is told of its limits. */
export const keys: Scenario = {
  keys: {
    free: ["--plan", "free"],
    pro: ["--plan", "pro"],
    business: ["--plan", "business"],
    enterprise: ENTERPRISE,
    revoked: ["--plan", "free"],
    reader: ["--plan", "free", "--access", "read"],
    rolled: ["--plan", "free"],
    replaced: ["--plan", "free"],
    staging: ["--plan", "free", "--env", "staging"],
  },
  async prepare(server) {
    await server.createKey("expired", ["--plan", "free", "--expires", "1s"], { offsetMs: -HOUR_MS });
    await server.createKey("expiring", ["--plan", "free", "--expires", "2h"], { offsetMs: -HOUR_MS });
    await server.changeKey("revoked", "revoke");
    await server.rollKey("rolled", "new");
    await server.rollKey("replaced", "replacement", "--overlap", "0");
  },
  flags: ["--public-url", ORIGIN],
  steps: [
    ["any 200: a key of the Free plan", get("/pets")],
    ["any 200: a second request of the same key", get("/pets")],
    ["any 400: an invalid request counts", get("/pets?limit=0")],
    ["any 404: a path that does not exist counts", get("/nothing")],
    ["any 405: a method that is not allowed counts", clientOf("free").bare("DELETE", "/pets")],
    ["any 204: OPTIONS counts", clientOf("free").options("/pets")],
    ["any 304: an unchanged response counts", get("/pets", "If-None-Match: {{etag}}")],
    ["any 201: a write counts", post("/pets", { name: "Rex", categoryId: 1 })],
    ["any 200: a key of the Pro plan", clientOf("pro").get("/pets")],
    ["any 200: a key of the Business plan", clientOf("business").get("/pets")],
    ["any 200: a key of the Enterprise plan", clientOf("enterprise").get("/pets")],
    ["any 200: a key that has not expired", clientOf("expiring").get("/pets")],
    ["any 200: a key that was rolled, by its old secret", clientOf("rolled").get("/pets")],
    ["any 200: a key that was rolled, by its new secret", clientOf("new").get("/pets")],
    [
      "any 200: a key that was rolled without overlap, by its new secret",
      clientOf("replacement").get("/pets"),
    ],
    ["any 200: a read-only key may GET", reader.get("/pets")],
    ["any 200: a read-only key may HEAD", reader.head("/pets")],
    ["any 204: a read-only key may use OPTIONS", reader.options("/pets")],
    ["any 404: a read-only key on a path that does not exist", reader.get("/nothing")],
    [
      "any 403: a read-only key may not POST, and it counts",
      reader.post("/pets", { name: "Rex", categoryId: 1 }),
    ],
    ["any 403: a read-only key, a body that is not JSON", reader.post("/pets", "{")],
    ["any 403: a read-only key, a method that is not allowed", reader.bare("DELETE", "/pets")],
    ["any 403: a read-only key, POST to a path that does not exist", reader.post("/nothing", {})],
    ["any 200: a read-only key may still GET", reader.get("/pets")],
    ["any 200: bearer in small letters", authorised("bearer {{pro}}")],
    ["any 200: BEARER in capitals", authorised("BEARER {{pro}}")],
    ["any 200: several blanks before the key", authorised("Bearer    {{pro}}")],
    ["any 200: blanks around the value", list("Authorization:   Bearer {{pro}}  ")],
    ["any 200: the header in capitals", list("AUTHORIZATION: Bearer {{pro}}")],

    ["missing_api_key 401: no Authorization", list()],
    ["HEAD missing_api_key 401: no body", message("HEAD /v1/pets?limit=1 HTTP/1.1", [HOST])],
    ["missing_api_key 401: an empty Authorization", authorised("")],
    ["missing_api_key 401: another scheme", authorised("Basic cGV0Og==")],
    ["missing_api_key 401: a scheme that begins alike", authorised("Bearers {{pro}}")],
    ["missing_api_key 401: an empty key", authorised("Bearer")],
    ["missing_api_key 401: a blank for a key", list("Authorization: Bearer ")],
    ["missing_api_key 401: a key without a scheme", authorised("{{pro}}")],
    ["missing_api_key 401: a tab before the key", authorised("Bearer\t{{pro}}")],
    ["missing_api_key 401: a path that does not exist", message("GET /v1/nothing HTTP/1.1", [HOST])],
    ["missing_api_key 401: the base address", message("GET /v1 HTTP/1.1", [HOST])],
    ["missing_api_key 401: a method that is not allowed", message("DELETE /v1/pets HTTP/1.1", [HOST])],
    ["missing_api_key 401: OPTIONS", message("OPTIONS /v1/pets HTTP/1.1", [HOST])],
    ["missing_api_key 401: a write", message("POST /v1/pets HTTP/1.1", [HOST, "Content-Length: 2"], "{}")],
    ["invalid_api_key 401: not a key", authorised("Bearer abc")],
    ["invalid_api_key 401: a key with a letter more", authorised("Bearer {{pro}}x")],
    ["invalid_api_key 401: a key with a word more", authorised("Bearer {{pro}} x")],
    ["invalid_api_key 401: a wrong checksum", authorised(`Bearer pet_live_${"0".repeat(36)}`)],
    ["invalid_api_key 401: two Authorizations", list(bearer("pro"), bearer("pro"))],
    ["invalid_api_key 401: a revoked key", clientOf("revoked").get("/pets")],
    ["invalid_api_key 401: a revoked key, once more", clientOf("revoked").get("/pets")],
    ["HEAD invalid_api_key 401: a revoked key", clientOf("revoked").head("/pets")],
    ["invalid_api_key 401: an expired key", clientOf("expired").get("/pets")],
    ["invalid_api_key 401: a key that was rolled without overlap", clientOf("replaced").get("/pets")],
    ["invalid_api_key 401: a key of staging", clientOf("staging").get("/pets")],
    ["invalid_api_key 401: a path that does not exist", clientOf("staging").get("/nothing")],
  ],
};

/** The other environment. */
export const staging: Scenario = {
  keys: { main: ["--plan", "free", "--env", "staging"], production: ["--plan", "free"] },
  flags: ["--env", "staging", "--public-url", "https://staging.petstore.example/v1/", "--twin-url", ORIGIN],
  steps: [
    ["staging, createPet 201", clientOf("main").post("/pets", { name: "Rex", categoryId: 1 })],
    ["staging, getPet 200: Link names staging", clientOf("main").get("/pets/1")],
    ["staging, invalid_api_key 401: a key of production", clientOf("production").get("/pets")],
  ],
};
