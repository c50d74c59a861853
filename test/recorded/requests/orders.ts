import { bearer, clientOf, contentLength, HOST, JSON_TYPE, message, ORIGIN } from "../message.ts";
import type { Scenario } from "../play.ts";

const { bare, send, get, head, options, post, patch } = clientOf("main");
const other = clientOf("other");

const pet = (status?: string) => post("/pets", { name: "Rex", categoryId: 1, status });
const order = (petId: unknown, ...headers: string[]) => post("/store/orders", { petId }, ...headers);
const end = (id: string, status: unknown) => patch(`/store/orders/${id}`, { status });
const next = message("GET {{next}} HTTP/1.1", [HOST, bearer("main")]);

const under = (key: string) => `Idempotency-Key: ${key}`;
const REX = { name: "Rex", categoryId: 1 };

/** Orders, their pets, and writes that are repeated. */
export const orders: Scenario = {
  keys: { main: ["--plan", "business"], other: ["--plan", "pro"] },
  flags: ["--public-url", ORIGIN],
  steps: [
    ["listOrders 200: there are none", get("/store/orders")],
    ["createPet 201: to be ordered, without a status", pet()],
    ["createPet 201: to be ordered, available", pet("available")],
    ["createPet 201: to be ordered, pending", pet("pending")],
    ["createPet 201: to be ordered, sold", pet("sold")],
    ["placeOrder 201: a pet without a status", order(1)],
    ["getPet 200: ordered, so it is pending", get("/pets/1")],
    ["placeOrder 201: an available pet", order(2)],
    ["placeOrder 409: a pet that is pending by an order", order(2)],
    ["placeOrder 409: a pet that was added as pending", order(3)],
    ["placeOrder 409: a pet that was added as sold", order(4)],
    ["placeOrder 404: no such pet", order(999)],
    ["placeOrder 404: a negative petId", order(-1)],
    ["placeOrder 404: the greatest int64", post("/store/orders", '{"petId":9223372036854775807}')],
    ["placeOrder 400: beyond int64", post("/store/orders", '{"petId":9223372036854775808}')],
    ["placeOrder 400: petId given as a string", order("1")],
    ["placeOrder 400: petId is null", order(null)],
    ["placeOrder 400: petId is absent", post("/store/orders", {})],
    ["placeOrder 400: an array", post("/store/orders", "[1]")],
    ["placeOrder 400: not JSON", post("/store/orders", "petId=1")],
    ["placeOrder 400: no body", bare("POST", "/store/orders")],
    [
      "placeOrder 415: a form",
      send("POST", "/store/orders", ["Content-Type: application/x-www-form-urlencoded"], "petId=1"),
    ],
    ["placeOrder 413: more than 16 KiB", post("/store/orders", `{"petId":1${" ".repeat(16_384)}}`)],

    ["updateOrder 200: completed", end("1", "completed")],
    ["getPet 200: its order is completed, so it is sold", get("/pets/1")],
    ["placeOrder 409: a pet that is sold by an order", order(1)],
    ["updateOrder 200: cancelled, and the pet is available", end("2", "cancelled")],
    ["getPet 200: its order is cancelled, so it is available", get("/pets/2")],
    ["placeOrder 201: a pet whose order was cancelled", order(2)],
    ["updateOrder 409: completed already", end("1", "completed")],
    ["updateOrder 409: completed, and to be cancelled", end("1", "cancelled")],
    ["updateOrder 409: cancelled already", end("2", "cancelled")],
    ["updateOrder 404: no such order", end("999", "completed")],
    ["updateOrder 404: 01", end("01", "completed")],
    ["updateOrder 404: +1", end("+1", "completed")],
    ["updateOrder 404: 1.0", end("1.0", "completed")],
    ["updateOrder 404: abc", end("abc", "completed")],
    ["updateOrder 404: beyond int64", end("9223372036854775808", "completed")],
    ["updateOrder 404: before what is wrong with the body", patch("/store/orders/abc", "{")],
    ["updateOrder 400: placed", end("3", "placed")],
    ["updateOrder 400: status is unknown", end("3", "sold")],
    ["updateOrder 400: status is null", end("3", null)],
    ["updateOrder 400: status is absent", patch("/store/orders/3", {})],
    ["updateOrder 400: not JSON", patch("/store/orders/3", "")],
    ["updateOrder 400: no body", bare("PATCH", "/store/orders/3")],
    [
      "updateOrder 415: text/plain",
      send("PATCH", "/store/orders/3", ["Content-Type: text/plain"], '{"status":"completed"}'),
    ],
    ["updateOrder 413: more than 16 KiB", patch("/store/orders/3", " ".repeat(16_385))],
    [
      "updateOrder 200: Idempotency-Key is ignored",
      patch("/store/orders/3", { status: "completed" }, under("a b")),
    ],

    ["createPet 201: one more to be ordered", pet("available")],
    ["placeOrder 201: a fourth order", order(5)],
    ["listOrders 200: all", get("/store/orders")],
    ["listOrders 304: the ETag that was given", get("/store/orders", "If-None-Match: {{etag}}")],
    ["HEAD listOrders 200: no body", head("/store/orders")],
    ["listOrders 200: placed", get("/store/orders?status=placed")],
    ["listOrders 200: completed", get("/store/orders?status=completed")],
    ["listOrders 200: cancelled", get("/store/orders?status=cancelled")],
    ["listOrders 200: a page of 1", get("/store/orders?limit=1")],
    ["listOrders 200: the second page of 1", next],
    ["listPets 400: a cursor of orders", get("/pets?cursor={{cursor}}")],
    ["listOrders 200: a page of 1 of those completed", get("/store/orders?status=completed&limit=1")],
    ["listOrders 200: the last of those completed", next],
    ["listOrders 400: limit=0", get("/store/orders?limit=0")],
    ["listOrders 400: limit=101", get("/store/orders?limit=101")],
    ["listOrders 400: status=sold, which pets have", get("/store/orders?status=sold")],
    ["listOrders 400: a cursor that nobody gave", get("/store/orders?cursor=1")],
    ["OPTIONS 204: /store/orders", options("/store/orders")],
    ["OPTIONS 204: /store/orders/{orderId}", options("/store/orders/1")],
    ["method_not_allowed 405: GET /store/orders/{orderId}", get("/store/orders/1")],
    ["method_not_allowed 405: PUT /store/orders/{orderId}", bare("PUT", "/store/orders/1")],
    ["method_not_allowed 405: DELETE /store/orders", bare("DELETE", "/store/orders")],
    ["not_found 404: /store", get("/store")],

    ["createPet 201: under an Idempotency-Key", post("/pets", REX, under("a"))],
    ["createPet 201: the repeat gets the first response again", post("/pets", REX, under("a"))],
    ["createPet 201: the same key in quotes", post("/pets", REX, under('"a"'))],
    ["createPet 422: the same key and another body", post("/pets", { ...REX, categoryId: 2 }, under("a"))],
    [
      "createPet 422: the same key and other white space",
      post("/pets", '{"name":"Rex", "categoryId":1}', under("a")),
    ],
    ["createPet 201: the same key from another client", other.post("/pets", REX, under("a"))],
    ["placeOrder 201: the same key and another operation", order(6, under("a"))],
    ["placeOrder 201: the repeat, though the pet is pending", order(6, under("a"))],
    ["placeOrder 422: the same key and another pet", order(7, under("a"))],
    ["placeOrder 409: a failure is not stored", order(6, under("b"))],
    ["updateOrder 200: cancelled, for the repeat to succeed", end("5", "cancelled")],
    ["placeOrder 201: the repeat of what failed tries again", order(6, under("b"))],
    ["createPet 400: an invalid body is reported before the key", post("/pets", {}, under("a"))],
    ["createPet 400: an empty Idempotency-Key", post("/pets", REX, under(""))],
    ["createPet 400: an Idempotency-Key of two quotes", post("/pets", REX, under('""'))],
    ["createPet 400: an Idempotency-Key with a blank", post("/pets", REX, under("a b"))],
    ["createPet 400: an Idempotency-Key beyond ASCII", post("/pets", REX, under("\xe9"))],
    ["createPet 400: an Idempotency-Key of 256 characters", post("/pets", REX, under("k".repeat(256)))],
    ["createPet 201: an Idempotency-Key of 255 characters", post("/pets", REX, under("k".repeat(255)))],
    ["createPet 400: two Idempotency-Keys", post("/pets", REX, under("a"), under("b"))],
    ["placeOrder 400: an Idempotency-Key with a blank", order(7, under("a b"))],
    [
      "createPet 201: a replay over a keep-alive connection of HTTP/1.0",
      message(
        "POST /v1/pets HTTP/1.0",
        [
          HOST,
          bearer("main"),
          JSON_TYPE,
          under("a"),
          "Connection: keep-alive",
          contentLength(JSON.stringify(REX)),
        ],
        JSON.stringify(REX),
      ),
    ],
  ],
};
