import { expect, test } from "bun:test";
import { type ApiRequest, type ApiResponse, idOf, useService } from "../service.ts";

const service = await useService();
const owner = orderClient((await service.newKey()).secret);
const other = orderClient((await service.newKey()).secret);

/** Requests of one API key. */
function orderClient(key: string) {
  const send = (request: ApiRequest) => service.call({ key, ...request });
  const place = (body: unknown) => send({ method: "POST", path: "/store/orders", body });
  const onOrder = (id: number | string, request: Partial<ApiRequest> = {}) =>
    send({ path: `/store/orders/${id}`, ...request });
  return {
    send,
    place,
    /** A request to the path of an order: GET unless it says otherwise. */
    onOrder,
    update: (id: number | string, status: string) => onOrder(id, { method: "PATCH", body: { status } }),
    petStatus: async (id: number) =>
      ((await send({ path: `/pets/${id}` })).json as { status?: string }).status,
    /** Places an order for a new pet. */
    async newOrder() {
      const petId = await service.newPet();
      return { id: idOf(await place({ petId })), petId };
    },
    /** The identifiers of the orders that are listed. */
    async list() {
      return ((await send({ path: "/store/orders" })).json as { id: number }[]).map(({ id }) => id);
    },
  };
}

test.each(["0", "-1", "9223372036854775807", "9223372036854775808", "01", "1.0", "%zz", "9".repeat(4_000)])(
  "getOrder and updateOrder 404: %s",
  async (id) => {
    for (const response of [await owner.onOrder(id), await owner.update(id, "completed")])
      expect(response.json).toMatchObject({ code: "order_not_found", status: 404 });
  },
);

test("getOrder 200: the Location of a new order leads to it, and its ETag gets 304 until the order changes", async () => {
  const placed = await owner.place({ petId: await service.newPet() });
  const id = idOf(placed);
  expect(placed.headers.get("location")).toBe(`${service.url}/store/orders/${id}`);
  const first = await owner.onOrder(id);
  expect([first.status, first.text]).toEqual([200, placed.text]);
  const conditional = { headers: { "If-None-Match": first.headers.get("etag") ?? "" } };
  expect((await owner.onOrder(id, conditional)).status).toBe(304);
  await owner.update(id, "completed");
  expect((await owner.onOrder(id, conditional)).json).toMatchObject({ id, status: "completed" });
});

test("placeOrder and updateOrder: the ETag is the one of getOrder, so If-Match needs no GET", async () => {
  const placed = await owner.place({ petId: await service.newPet() });
  const id = idOf(placed);
  const current = async () => (await owner.onOrder(id)).headers.get("etag");
  const first = placed.headers.get("etag") ?? "none";
  expect(await current()).toBe(first);
  const completed = await owner.onOrder(id, patch({ status: "completed" }, { "If-Match": first }));
  expect([completed.status, completed.headers.get("etag")]).toEqual([200, await current()]);
  expect(await current()).not.toBe(first);
});

test("placeOrder: a replay has the ETag of the first response, also after the order has changed", async () => {
  const petId = await service.newPet();
  const request = { body: { petId }, headers: { "Idempotency-Key": crypto.randomUUID() } };
  const place = () => owner.send({ method: "POST", path: "/store/orders", ...request });
  const first = await place();
  const placed = await place();
  await owner.update(idOf(first), "completed");
  const late = await place();
  for (const replay of [placed, late])
    expect([replay.text, replay.headers.get("etag"), replay.headers.get("idempotent-replayed")]).toEqual([
      first.text,
      first.headers.get("etag"),
      "true",
    ]);
  const headers = { "If-Match": late.headers.get("etag") ?? "" };
  expect((await owner.onOrder(idOf(first), patch({ status: "cancelled" }, headers))).status).toBe(412);
});

test("updateOrder 200: the status that the order already has changes nothing", async () => {
  const { id, petId } = await owner.newOrder();
  const first = await owner.update(id, "cancelled");
  await owner.place({ petId });
  const again = await owner.update(id, "cancelled");
  expect([again.status, again.text]).toEqual([200, first.text]);
  expect(await owner.petStatus(petId)).toBe("pending");
  expect((await owner.update(id, "completed")).json).toMatchObject({ code: "order_closed", status: 409 });
});

test.each<[ifMatch: (etag: string) => string, status: number]>([
  [(etag) => etag, 200],
  [() => "*", 200],
  [(etag) => `"other", W/"weak" ,${etag}`, 200],
  [(etag) => `W/${etag}`, 412],
  [() => '"other"', 412],
  [(etag) => etag.replaceAll('"', ""), 412],
  [(etag) => `w/${etag}`, 412],
  [(etag) => `"${etag}`, 412],
  [(etag) => `*, ${etag}`, 412],
  [() => "", 412],
])("updateOrder: If-Match with the ETag of the order, or any (%#)", async (ifMatch, status) => {
  const { id, petId } = await owner.newOrder();
  const etag = (await owner.onOrder(id)).headers.get("etag") ?? "";
  const headers = { "If-Match": ifMatch(etag) };
  const response = await owner.onOrder(id, patch({ status: "completed" }, headers));
  expect(response.status).toBe(status);
  expect(await owner.petStatus(petId)).toBe(status === 200 ? "sold" : "pending");
  if (status === 412) expect(response.json).toMatchObject({ code: "precondition_failed" });
});

test("updateOrder: after a change, If-Match gets 412 for another status, 200 for a repeat, and 404 without an order", async () => {
  const { id } = await owner.newOrder();
  const headers = { "If-Match": (await owner.onOrder(id)).headers.get("etag") ?? "" };
  const update = async (orderId: number, status: string) =>
    (await owner.onOrder(orderId, patch({ status }, headers))).status;
  expect(await update(id, "completed")).toBe(200);
  expect(await update(id, "completed")).toBe(200);
  expect(await update(id, "cancelled")).toBe(412);
  expect(await update(987_654_321, "cancelled")).toBe(404);
});

const patch = (body: unknown, headers = {}) => ({ method: "PATCH", body, headers });
test.each<Partial<ApiRequest>>([
  { method: "GET" },
  { method: "HEAD" },
  { method: "GET", headers: { "If-None-Match": "*" } },
  patch({ status: "completed" }),
  patch({ status: "placed" }),
  patch({}),
  patch("{"),
  patch('{"status":"completed"}', { "Content-Type": "text/plain" }),
  { method: "PATCH" },
])("another key's order responds as one that does not exist: %j", async (request) => {
  const absent = 987_654_321;
  for (const status of ["placed", "completed", "cancelled"]) {
    const { id, petId } = await owner.newOrder();
    if (status !== "placed") await owner.update(id, status);
    const petStatus = await owner.petStatus(petId);
    const foreign = comparable(await other.onOrder(id, request), id);
    expect(foreign).toEqual(comparable(await other.onOrder(absent, request), absent));
    expect((await owner.onOrder(id)).json).toMatchObject({ status });
    expect(await owner.petStatus(petId)).toBe(petStatus);
  }
});

/** The response without what differs between any two. */
function comparable({ status, headers, text }: ApiResponse, id: number): unknown[] {
  const varies = /^(date|content-length|x-ratelimit-remaining|x-request-id)$/;
  return [
    status,
    [...headers].filter(([name]) => !varies.test(name)),
    text.replace(`Order ${id} `, "Order "),
  ];
}

test("an order belongs to the key, not to its secret: a rotated key still has it", async () => {
  const key = await service.newKey();
  const { id } = await orderClient(key.secret).newOrder();
  const rotated = orderClient(await service.newSecret(key.id, service.clock.now()));
  expect(await rotated.list()).toEqual([id]);
  expect((await rotated.update(id, "completed")).status).toBe(200);
});
