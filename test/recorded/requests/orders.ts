import { clientOf } from "../message.ts";
import type { Step } from "../play.ts";

const { bare, get, head, options, post, patch } = clientOf("main");
const other = clientOf("other");

const order = (petId: unknown, ...headers: string[]) => post("/store/orders", { petId }, ...headers);
const end = (id: string, status: unknown, ...headers: string[]) =>
  patch(`/store/orders/${id}`, { status }, ...headers);

/** Orders and their pets; `fixtures.ts` says which ones there are. */
export const orders: readonly Step[] = [
  ["placeOrder 201: a pet without a status", order(9)],
  ["placeOrder 409: a pet that is pending", order(3)],
  ["placeOrder 404: no such pet", order(999)],
  ["placeOrder 400: petId given as a string", order("1")],
  ["placeOrder 400: not JSON", post("/store/orders", "petId=1")],
  [
    "placeOrder 201: the repeat, though the pet is pending",
    order(10, "Idempotency-Key: order"),
    order(10, "Idempotency-Key: order"),
  ],

  ["updateOrder 412: another ETag", end("3", "completed", 'If-Match: "other"')],
  ["updateOrder 200: If-Match: *", end("3", "completed", "If-Match: *")],
  ["updateOrder 200: completed already, so nothing changes", end("3", "completed")],
  ["updateOrder 200: cancelled", end("4", "cancelled")],
  ["updateOrder 409: completed already", end("2", "cancelled")],
  ["updateOrder 404: no such order", end("999", "completed")],
  ["updateOrder 404: the order of another key", other.patch("/store/orders/1", { status: "cancelled" })],
  ["updateOrder 404: before what is wrong with the body", patch("/store/orders/abc", "{")],
  ["updateOrder 400: placed", end("1", "placed")],
  ["updateOrder 400: no body", bare("PATCH", "/store/orders/1")],

  ["getOrder 200: placed", get("/store/orders/1")],
  [
    "getOrder 304: the ETag that was given",
    get("/store/orders/1"),
    get("/store/orders/1", "If-None-Match: {{etag}}"),
  ],
  ["HEAD getOrder 200: no body", head("/store/orders/1")],
  ["getOrder 404: no such order", get("/store/orders/999")],
  ["getOrder 404: the order of another key", other.get("/store/orders/1")],
  ["OPTIONS 204: /store/orders", options("/store/orders")],
  ["OPTIONS 204: /store/orders/{orderId}", options("/store/orders/1")],
  ["method_not_allowed 405: PUT /store/orders/{orderId}", bare("PUT", "/store/orders/1")],
];
