import { keyLine, clientOf, HOST, message } from "../message.ts";
import type { Step } from "../play.ts";

const main = clientOf("main");
const reader = clientOf("reader");

/** A request for a pet with these headers and no other than `Host`. */
const list = (...headers: string[]) => message("GET /v1/pets?id=1 HTTP/1.1", [HOST, ...headers]);

/** Authentication, and what each plan is told of its limits. */
export const keys: readonly Step[] = [
  ["any 200: a key of the Free plan", clientOf("free").get("/pets?id=1")],
  ["any 200: a key of the Pro plan", clientOf("pro").get("/pets?id=1")],
  ["any 200: a key of the Enterprise plan", clientOf("enterprise").get("/pets?id=1")],
  ["any 200: a read-only key may GET", reader.get("/pets?id=1")],
  ["getKey 200: a key of the Free plan", clientOf("free").get("/key")],
  ["getKey 200: a read-only key", reader.get("/key")],
  ["HEAD getKey 200: no body", clientOf("enterprise").head("/key")],
  ["OPTIONS 204: /key", main.options("/key")],
  ["method_not_allowed 405: DELETE /key", main.bare("DELETE", "/key")],
  ["any 403: a read-only key may not POST", reader.post("/pets", { name: "Rex", categoryId: 1 })],
  ["any 403: a read-only key, before the path and the body", reader.post("/nothing", "{")],
  ["any 200: bearer in small letters, and blanks", list("authorization:  bearer   {{main}} ")],
  ["any 200: the request has an identifier", list(keyLine("main"), "X-Request-Id: abc-123")],

  ["missing_api_key 401: no Authorization", list()],
  ["HEAD missing_api_key 401: no body", message("HEAD /v1/pets HTTP/1.1", [HOST])],
  ["missing_api_key 401: before the path and the method", message("DELETE /v1/nothing HTTP/1.1", [HOST])],
  [
    "missing_api_key 401: Expect: 100-continue without a key",
    message("POST /v1/pets HTTP/1.1", [HOST, "Expect: 100-continue", "Content-Length: 5"]),
  ],
  ["invalid_api_key 401: not a key", list("Authorization: Bearer abc")],
  ["invalid_api_key 401: two Authorizations", list(keyLine("main"), keyLine("main"))],
  ["invalid_api_key 401: a revoked key", clientOf("revoked").get("/pets")],
  ["HEAD invalid_api_key 401: an expired key", clientOf("expired").head("/pets")],
  ["invalid_api_key 401: an expired key", clientOf("expired").get("/pets")],
  ["listPets 200: an encoded path", main.get("/%70ets?id=1")],
  ["not_found 404: an encoded slash", main.get("/pets%2F1")],
];
