import { afterAll, expect, test } from "bun:test";
import { generateSecret, toNewSecret } from "../../src/domain/api-keys.ts";
import { type ApiRequest, type ApiResponse, type Service, startService } from "../service.ts";
import { BY } from "../key-store-arguments.ts";

const service = await startService();
const owner = await newClient();
const other = await newClient();
afterAll(() => service.stop());

async function newClient(): Promise<OrderClient> {
  return orderClient((await service.newKey()).secret);
}

interface OrderClient {
  readonly newPet: () => Promise<number>;
  readonly petStatus: (id: number) => Promise<string | undefined>;
  readonly place: (petId: number, headers?: Record<string, string>) => ReturnType<Service["call"]>;
  /** Places an order for a new pet. */
  readonly newOrder: () => Promise<{ id: number; petId: number }>;
  /** Sends a request to the path of an order: GET unless it says otherwise. */
  readonly onOrder: (id: number | string, request?: Partial<ApiRequest>) => ReturnType<Service["call"]>;
  readonly update: (id: number | string, status: string) => ReturnType<Service["call"]>;
  /** The identifiers of the orders that are listed. */
  readonly list: (query?: string) => Promise<number[]>;
}

/** Requests of one API key. */
function orderClient(key: string): OrderClient {
  const send = (request: ApiRequest) => service.call({ key, ...request });
  const client: OrderClient = {
    newPet: async () =>
      idOf(await send({ method: "POST", path: "/pets", body: { name: "Rex", categoryId: 1 } })),
    petStatus: async (id) => ((await send({ path: `/pets/${id}` })).json as { status?: string }).status,
    place: (petId, headers = {}) => send({ method: "POST", path: "/store/orders", body: { petId }, headers }),
    async newOrder() {
      const petId = await client.newPet();
      return { id: idOf(await client.place(petId)), petId };
    },
    onOrder: (id, request) => send({ path: `/store/orders/${id}`, ...request }),
    update: (id, status) => client.onOrder(id, { method: "PATCH", body: { status } }),
    async list(query = "?limit=100") {
      const { json } = await send({ path: `/store/orders${query}` });
      return (json as { id: number }[]).map(({ id }) => id);
    },
  };
  return client;
}

function idOf({ json }: { json: unknown }): number {
  return (json as { id: number }).id;
}

test("getOrder 200: the Location of a new order leads to it, with the body of the 201", async () => {
  const placed = await owner.place(await owner.newPet());
  const location = placed.headers.get("location") ?? "";
  expect(location).toBe(`${service.url}/store/orders/${idOf(placed)}`);
  const fetched = await owner.onOrder(location.slice(location.lastIndexOf("/") + 1));
  expect([fetched.status, fetched.text]).toEqual([200, placed.text]);
});

test("getOrder: HEAD has the headers of GET, and a known ETag gets 304 until the order changes", async () => {
  const { id } = await owner.newOrder();
  const first = await owner.onOrder(id);
  const etag = first.headers.get("etag") ?? "";
  expect(etag).toMatch(/^"[^"]+"$/);
  const head = await owner.onOrder(id, { method: "HEAD" });
  expect([head.status, head.text, head.headers.get("etag")]).toEqual([200, "", etag]);
  expect(head.headers.get("content-length")).toBe(`${first.text.length}`);
  const conditional = { headers: { "If-None-Match": etag } };
  expect((await owner.onOrder(id, conditional)).status).toBe(304);
  await owner.update(id, "completed");
  const changed = await owner.onOrder(id, conditional);
  expect(changed.status).toBe(200);
  expect(changed.json).toMatchObject({ id, status: "completed" });
});

test("getOrder 404: another key's ETag gets no 304", async () => {
  const { id } = await owner.newOrder();
  const etag = (await owner.onOrder(id)).headers.get("etag") ?? "";
  for (const value of [etag, "*"]) {
    expect((await other.onOrder(id, { headers: { "If-None-Match": value } })).status).toBe(404);
  }
});

test("OPTIONS and 405: an order allows GET, HEAD and PATCH, whoever placed it", async () => {
  const { id } = await owner.newOrder();
  for (const client of [owner, other]) {
    const options = await client.onOrder(id, { method: "OPTIONS" });
    expect(options.headers.get("allow")).toBe("GET, HEAD, PATCH, OPTIONS");
    expect((await client.onOrder(id, { method: "DELETE" })).status).toBe(405);
  }
});

const patch = (body: unknown, headers = {}) => ({ method: "PATCH", body, headers });
test.each<Partial<ApiRequest>>([
  { method: "GET" },
  { method: "HEAD" },
  { method: "GET", headers: { "If-None-Match": "*" } },
  patch({ status: "completed" }),
  patch({ status: "cancelled" }),
  patch({ status: "placed" }),
  patch({ status: null }),
  patch({}),
  patch("[]"),
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

test("getOrder 404: the message names the identifier that was asked for, and nothing else", async () => {
  const { id } = await owner.newOrder();
  expect((await other.onOrder(id)).json).toEqual({
    code: "order_not_found",
    message: `Order ${id} does not exist.`,
    status: 404,
  });
});

test("listOrders 200: a key lists its own orders, on every page and for every status", async () => {
  const clients = [await newClient(), await newClient()] as const;
  const placed: [number[], number[]] = [[], []];
  for (let i = 0; i < 4; i++) {
    placed[0].push((await clients[0].newOrder()).id);
    placed[1].push((await clients[1].newOrder()).id);
  }
  for (const [i, client] of clients.entries()) {
    const own = placed[i] ?? [];
    expect(await client.list()).toEqual(own);
    await client.update(own[1] ?? 0, "cancelled");
    expect(await client.list("?status=cancelled")).toEqual(own.slice(1, 2));
    expect(await client.list("?status=placed&limit=2")).toEqual([own[0] ?? 0, own[2] ?? 0]);
    const next = nextOf(await client.onOrder("", { path: "/store/orders?limit=3" }));
    const query = next.slice(next.indexOf("?"));
    expect(await client.list(query)).toEqual(own.slice(3));
    // A cursor is a position, so the list of the other key continues there.
    const others = placed[1 - i] ?? [];
    expect(await clients[i === 0 ? 1 : 0].list(query)).toEqual(others.filter((id) => id > (own[2] ?? 0)));
  }
  expect(await (await newClient()).list()).toEqual([]);
});

test("an order belongs to the key, not to its secret: a rotated key still has it", async () => {
  const key = await service.newKey();
  const { id } = await orderClient(key.secret).newOrder();
  const secret = generateSecret("production");
  await service.app.keys.addSecret(
    key.id,
    { ...toNewSecret(secret), overlapEndsAt: service.clock.now() },
    BY,
  );
  const rotated = orderClient(secret);
  expect((await rotated.onOrder(id)).status).toBe(200);
  expect(await rotated.list()).toEqual([id]);
  expect((await rotated.update(id, "completed")).status).toBe(200);
});

test("placeOrder: the same Idempotency-Key of two keys is two requests", async () => {
  const headers = { "Idempotency-Key": "order-1" };
  const petId = await owner.newPet();
  const own = await owner.place(petId, headers);
  const others = await other.place(await other.newPet(), headers);
  expect([own.status, others.status]).toEqual([201, 201]);
  expect((await owner.place(petId, headers)).headers.get("idempotent-replayed")).toBe("true");
  expect((await other.onOrder(idOf(own))).status).toBe(404);
  expect((await owner.onOrder(idOf(others))).status).toBe(404);
});

test("two keys order the same pet at once: one of them gets the order, and only that one sees it", async () => {
  for (let round = 0; round < 5; round++) {
    const petId = await owner.newPet();
    const clients = [owner, other, owner, other];
    const responses = await Promise.all(clients.map((client) => client.place(petId)));
    expect(responses.map(({ status }) => status).toSorted()).toEqual([201, 409, 409, 409]);
    for (const [i, response] of responses.entries()) {
      if (response.status !== 201) continue;
      expect((await clients[i]?.onOrder(idOf(response)))?.status).toBe(200);
      expect((await clients[(i + 1) % 4]?.onOrder(idOf(response)))?.status).toBe(404);
    }
  }
});

test("complete and cancel at once: one succeeds, the pet follows it, and another key's updates get 404", async () => {
  for (let round = 0; round < 5; round++) {
    const { id, petId } = await owner.newOrder();
    const [completed, cancelled, ...foreign] = await Promise.all([
      owner.update(id, "completed"),
      owner.update(id, "cancelled"),
      other.update(id, "cancelled"),
      other.update(id, "completed"),
    ]);
    expect([completed.status, cancelled.status].toSorted()).toEqual([200, 409]);
    expect(foreign.map(({ status }) => status)).toEqual([404, 404]);
    const [status, pet] = completed.status === 200 ? ["completed", "sold"] : ["cancelled", "available"];
    expect((await owner.onOrder(id)).json).toMatchObject({ status });
    expect(await owner.petStatus(petId)).toBe(pet);
  }
});

const nextOf = ({ headers }: ApiResponse) =>
  /<([^>]*)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] ?? "";

/** Without what differs between any two responses. */
function comparable({ status, headers, text }: ApiResponse, id: number): unknown[] {
  const fields = [...headers].filter(
    ([name]) => !/^(date|content-length|x-ratelimit-remaining|x-request-id)$/.test(name),
  );
  return [status, fields, text.replace(`Order ${id} `, "Order ID ")];
}
