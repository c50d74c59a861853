import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { Rejection } from "../../src/api/errors.ts";
import { ResponseCache, SharedResponses } from "../../src/public/response-cache.ts";
import type { Awaitable } from "../../src/runtime/awaitable.ts";
import { type Service, startService } from "../service.ts";

const READS = [
  "/pets",
  "/pets?limit=1",
  "/pets?limit=3",
  "/pets?status=available&limit=2",
  "/pets?status=pending",
  "/pets?categoryId=1&limit=2",
  "/pets?categoryId=1&status=sold",
  "/pets?status=sold&limit=1",
  "/pets?id=1,2,7",
  "/pets?id=3,9&limit=1",
  "/pets?id=2,8&status=sold",
  "/pets/1",
  "/pets/2",
  "/pets/7",
];

type Step =
  | { kind: "correct"; petId: number; status: "available" | "sold" | null }
  | { kind: "delete"; petId: number }
  | { kind: "create"; status: string | undefined }
  | { kind: "order"; petId: number }
  | { kind: "end"; orderId: number; status: string };

const petId = fc.integer({ min: 1, max: 9 });
const orderId = fc.integer({ min: 1, max: 5 });
const step = fc.oneof(
  fc.record({ kind: fc.constant("correct"), petId, status: fc.constantFrom("available", "sold", null) }),
  fc.record({ kind: fc.constant("delete"), petId }),
  fc.record({ kind: fc.constant("create"), status: fc.constantFrom(undefined, "available", "sold") }),
  fc.record({ kind: fc.constant("order"), petId }),
  fc.record({ kind: fc.constant("end"), orderId, status: fc.constantFrom("completed", "cancelled") }),
) as fc.Arbitrary<Step>;

const by = { actor: { kind: "console" }, at: 0 } as const;

function write(service: Service, step: Step): Promise<unknown> {
  const { operatorPetStore } = service.app;
  if (step.kind === "correct")
    return operatorPetStore.updatePet(BigInt(step.petId), { status: step.status }, by);
  if (step.kind === "delete") return operatorPetStore.deletePet(BigInt(step.petId), by);
  if (step.kind === "create")
    return service.post("/pets", { name: "Rex", categoryId: 1, status: step.status });
  if (step.kind === "order") return service.post("/store/orders", { petId: step.petId });
  const { orderId, status } = step;
  return service.call({ method: "PATCH", path: `/store/orders/${orderId}`, body: { status } });
}

/** Unknown parameters are ignored, so this is the same page under a key that is not in the cache. */
const uncached = (path: string, nonce: number) => `${path}${path.includes("?") ? "&" : "?"}nonce=${nonce}`;

test("after any sequence of writes a cached page equals the page of the store", async () => {
  const service = await startService();
  let nonce = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
      for (const step of steps) {
        await write(service, step);
        const reads = READS.map(async (path) => {
          const [first, again] = [await service.call({ path }), await service.call({ path })];
          expect(again.text).toBe(first.text);
          expect(again.headers.get("etag")).toBe(first.headers.get("etag"));
          if (path.startsWith("/pets/")) return;
          const { text, headers } = await service.call({ path: uncached(path, nonce++) });
          expect(first.text).toBe(text);
          expect(first.headers.get("link")).toBe(headers.get("link"));
        });
        await Promise.all(reads);
      }
    }),
    { numRuns: 12 },
  );
  await service.stop();
}, 60_000);

test("a cached page with a status filter has a next link while a later pet matches", async () => {
  const service = await startService();
  // The last pet is in another block than the page.
  for (let i = 0; i < 150; i++) {
    await write(service, { kind: "create", status: i < 2 || i === 149 ? "available" : "sold" });
  }
  const link = async () =>
    (await service.call({ path: "/pets?status=available&limit=2" })).headers.get("link");
  for (let i = 0; i < 3; i++) expect(await link()).toContain('rel="next"');
  await write(service, { kind: "order", petId: 150 });
  expect(await link()).toBeNull();
  await write(service, { kind: "end", orderId: 1, status: "cancelled" });
  expect(await link()).toContain('rel="next"');
  await service.stop();
});

test("a cached page has no next link after the pets that follow it are deleted", async () => {
  const service = await startService();
  // The last pet is in another block than the page.
  for (let i = 0; i < 65; i++) await write(service, { kind: "create", status: undefined });
  const link = async () => (await service.call({ path: "/pets?limit=64" })).headers.get("link");
  for (let i = 0; i < 3; i++) expect(await link()).toContain('rel="next"');
  await write(service, { kind: "delete", petId: 65 });
  expect(await link()).toBeNull();
  await service.stop();
});

test("no reader sees an older state than an acknowledged write", async () => {
  const service = await startService();
  for (let i = 0; i < 5; i++) await write(service, { kind: "create", status: undefined });
  const progress = { acknowledged: 5 };
  const writer = (async () => {
    for (; progress.acknowledged < 60; progress.acknowledged++)
      await write(service, { kind: "create", status: undefined });
  })();
  const reader = async () => {
    let seen = 0;
    while (progress.acknowledged < 60) {
      const acknowledged = progress.acknowledged;
      const count = ((await service.call({ path: "/pets?limit=100" })).json as unknown[]).length;
      expect(count).toBeGreaterThanOrEqual(Math.max(seen, acknowledged));
      seen = count;
    }
  };
  await Promise.all([writer, reader(), reader(), reader()]);
  await service.stop();
}, 60_000);

describe("ResponseCache", () => {
  const unchanged = () => 0;
  const representation = (bodyLength: number) => ({
    headerLines: "",
    body: "x".repeat(bodyLength),
    etag: '"x"',
  });
  const request = (cache: ResponseCache, key: string, bodyLength: number) =>
    cache.find(key) ?? void cache.add(key, representation(bodyLength), unchanged);

  test("has a response from the second request on", () => {
    const cache = new ResponseCache();
    request(cache, "a", 10);
    expect(cache.find("a")).toBeUndefined();
    request(cache, "a", 10);
    expect(cache.find("a")).toEqual(representation(10));
    expect(cache.find("b")).toBeUndefined();
  });

  test("forgets a response as soon as its revision is another one", () => {
    const cache = new ResponseCache();
    let revision = 0;
    for (let i = 0; i < 2; i++) cache.add("a", representation(10), () => revision);
    expect(cache.find("a")).toBeDefined();
    revision++;
    expect(cache.find("a")).toBeUndefined();
    revision--;
    expect(cache.find("a")).toBeUndefined();
  });

  test("does not take a response that was waited for, because it may be older than the revision", async () => {
    const made = { ...representation(10), revision: unchanged };
    const secondRequest = async (make: () => Awaitable<typeof made>) => {
      const cache = new ResponseCache();
      for (let i = 0; i < 2; i++) await cache.findOrMake("a", make);
      return cache.find("a");
    };
    expect(await secondRequest(() => made)).toBe(made);
    expect(await secondRequest(() => Promise.resolve(made))).toBeUndefined();
  });

  test("takes at most 8 MiB and evicts the oldest entries first", () => {
    const cache = new ResponseCache();
    const keys = Array.from({ length: 10 }, (_, i) => `key ${i}`);
    // Each entry counts as its body and 2,000 bytes: eight of them are 8 MiB.
    for (const key of keys) for (let i = 0; i < 2; i++) request(cache, key, 1_048_576 - 2_000);
    const found = keys.filter((key) => cache.find(key) !== undefined);
    expect(found).toEqual(keys.slice(2));
  });

  test("does not take a key of more than 200 characters", () => {
    const cache = new ResponseCache();
    for (const length of [200, 201]) for (let i = 0; i < 2; i++) request(cache, "x".repeat(length), 10);
    expect(cache.find("x".repeat(200))).toBeDefined();
    expect(cache.find("x".repeat(201))).toBeUndefined();
  });
});

describe("shared responses", () => {
  const representation = { headerLines: "", body: "[]", etag: '""' };

  test("a response is shared until the next reads are sent, and then forgotten", async () => {
    const source = { batch: {} };
    const shared = new SharedResponses(source);
    const other = { ...representation, body: "[1]" };
    const request = (query: string, made = representation) =>
      shared.findOrMake(query, () => Promise.resolve(made));
    expect(await request("")).toBe(representation);
    expect(await request("", other)).toBe(representation);
    expect(await request("limit=1", other)).toBe(other);
    source.batch = {};
    expect(await request("limit=1")).toBe(representation);
    expect(await request("", other)).toBe(other);
    expect(await request("limit=1", other)).toBe(representation);
  });

  test("a response that fails is not shared, nor is a rejection", async () => {
    const rejection = new Rejection("not_found", "");
    const failing = [() => Promise.reject(new Error("no connection")), () => Promise.resolve(rejection)];
    for (const make of failing) {
      const shared = new SharedResponses({ batch: {} });
      const first = shared.findOrMake("", make);
      const second = shared.findOrMake("", () => Promise.resolve(representation));
      const third = shared.findOrMake("", () => Promise.resolve(representation));
      expect(await Promise.resolve(first).catch(() => rejection)).toBe(rejection);
      expect(await second).toBe(representation);
      expect(await third).toBe(representation);
    }
  });
});
