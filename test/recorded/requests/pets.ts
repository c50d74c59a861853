import type { NewPet } from "../../../src/domain/pets-and-orders.ts";
import { clientOf, JSON_TYPE, utf8 } from "../message.ts";
import type { Step } from "../play.ts";

const { bare, send, get, head, options, post } = clientOf("main");

const create = (body: unknown, ...headers: string[]) => post("/pets", body, ...headers);
/** `text` is a JSON value as it is written out. */
const inCategory = (text: string) => create(`{"name":"Rex","categoryId":${text}}`);
const REX = { name: "Rex", categoryId: 1 };
/** The values of every field that a client sends: one that is missing does not compile. */
type EveryField = Readonly<Record<keyof NewPet, unknown>>;
const EVERY_FIELD: EveryField = { name: "Rex", categoryId: 7, status: "available" };
const EVERY_FIELD_INVALID: EveryField = { name: 5, categoryId: "7", status: null };
const under = (key: string) => `Idempotency-Key: ${key}`;

/** Pets, one by one: values, bodies, identifiers in paths, writes that are repeated. */
export const pets: readonly Step[] = [
  ["createPet 201: every field", create(EVERY_FIELD)],
  ["createPet 201: no status", create({ name: "Mia", categoryId: 7 })],
  ["createPet 201: categoryId is the greatest int64", inCategory("9223372036854775807")],
  ["createPet 201: name in many scripts", create({ ...REX, name: "Ñandú Жучка 犬 🐕‍🦺 é" })],
  [
    "createPet 201: name with all that JSON escapes",
    create({ ...REX, name: '"\\/\b\f\n\r\t\u0001\u001f\u007f\u2028' }),
  ],
  ["createPet 400: categoryId is beyond int64", inCategory("9223372036854775808")],
  ["createPet 400: categoryId given as a string", inCategory('"7"')],
  ["createPet 400: every field is invalid", create(EVERY_FIELD_INVALID)],
  ["createPet 400: an array", create("[]")],
  ["createPet 400: not JSON", create("{name: 1}")],
  ["createPet 400: a comma is missing in line 3", create('{\n  "name": "Rex"\n  "categoryId": 7\n}')],
  ["createPet 400: two fields twice", create('{"name":"Rex","categoryId":7,"name":"Max","categoryId":7}')],
  ["createPet 201: an unknown field twice", create('{"name":"Rex","x":1,"categoryId":7,"x":2}')],
  ["createPet 400: not UTF-8", send("POST", "/pets", [JSON_TYPE], '{"name":"\xff","categoryId":1}')],
  ["createPet 400: a byte order mark", send("POST", "/pets", [JSON_TYPE], utf8("\ufeff{}"))],
  ["createPet 400: no body", bare("POST", "/pets")],
  ["createPet 415: text/plain", send("POST", "/pets", ["Content-Type: text/plain"], "{}")],
  ["createPet 413: a body of 16 KiB and a byte", create(" ".repeat(16_385))],
  ["createPet 500: the store fails", create({ ...REX, name: "broken" })],
  ["createPet 503: the store is unavailable", create({ ...REX, name: "unavailable" })],

  [
    "createPet 201: the repeat under an Idempotency-Key gets the first response again",
    create(REX, under("repeat")),
    create(REX, under('"repeat"')),
  ],
  [
    "createPet 422: the same Idempotency-Key and another body",
    create(REX, under("reused")),
    create({ ...REX, categoryId: 2 }, under("reused")),
  ],
  ["createPet 409: the first is still running", create({ ...REX, name: "in progress" }, under("running"))],
  ["createPet 400: an Idempotency-Key with a blank", create(REX, under("a b"))],

  ["getPet 200: every field", get("/pets/1")],
  ["getPet 304: the ETag that was given", get("/pets/1"), get("/pets/1", "If-None-Match: {{etag}}")],
  ["getPet 200: another ETag", get("/pets/1", 'If-None-Match: "other"')],
  ["HEAD getPet 200: no body", head("/pets/1")],
  ["getPet 404: no such pet", get("/pets/9223372036854775807")],
  ["HEAD getPet 404: no body", head("/pets/999")],
  ["getPet 404: 01", get("/pets/01")],

  ["not_found 404: GET", get("/nothing")],
  ["HEAD not_found 404: no body", head("/nothing")],
  ["not_found 404: POST", post("/nothing", {})],
  ["not_found 404: something behind the identifier", get("/pets/1/")],
  ["OPTIONS 204: /pets", options("/pets")],
  ["OPTIONS 204: /pets/{petId}", options("/pets/1")],
  ["method_not_allowed 405: DELETE /pets", bare("DELETE", "/pets")],
  ["method_not_allowed 405: a method of one's own", bare("PURGE", "/pets/1")],
];
