import { expect, test } from "bun:test";
import type { OperatorAccess } from "../../src/domain/operators.ts";
import { AccessReader } from "../../src/operator/sign-in/access.ts";
import { TestClock } from "../test-clock.ts";
import { until } from "../timing.ts";

const accessOf = (...names: string[]): OperatorAccess => ({
  tokens: new Map(
    names.map((name, id) => [
      name,
      { operator: { id, name, role: "admin", hint: "", createdAt: 0, issuedAt: 0 } },
    ]),
  ),
  sessions: new Map(),
  codes: new Map(),
});

test("after a change on this server, a read that began before it is not used", async () => {
  const reads: PromiseWithResolvers<OperatorAccess>[] = [];
  const store = {
    readAccess() {
      const read = Promise.withResolvers<OperatorAccess>();
      reads.push(read);
      return read.promise;
    },
  };
  const reader = new AccessReader(store, new TestClock());
  const find = () => reader.find(({ tokens }) => tokens.get("ann"));
  const before = find();
  reader.changed();
  const after = find();
  reads[0]?.resolve(accessOf("ann"));
  expect(await before).toMatchObject({ operator: { name: "ann" } });
  await until(() => reads.length >= 2, 10_000);
  reads[1]?.resolve(accessOf());
  expect(await after).toBeUndefined();
  expect(reads).toHaveLength(2);
});

test("in an outage, what was read before a change on this server is not used, and what was read after it is", async () => {
  const store = { isAvailable: true, access: accessOf("ann", "bob") };
  const clock = new TestClock();
  const readAccess = async () => {
    if (!store.isAvailable) throw new Error("unavailable");
    return store.access;
  };
  const reader = new AccessReader({ readAccess }, clock);
  const find = (name: string) => reader.findKnown(({ tokens }) => tokens.get(name));
  expect(await find("ann")).toBeDefined();
  store.isAvailable = false;
  clock.advance(59_000);
  expect(await find("ann")).toBeDefined();

  // Ann is revoked, and the database is unavailable at once or soon.
  reader.changed();
  await expect(find("ann")).rejects.toThrow("unavailable");
  Object.assign(store, { isAvailable: true, access: accessOf("bob") });
  reader.changed();
  await Bun.sleep(0);
  store.isAvailable = false;
  clock.advance(59_000);
  expect(await find("ann")).toBeUndefined();
  expect(await find("bob")).toBeDefined();
});

test("what is not known is read again at most 20 times a second: all who wait share the read, and a new token is found", async () => {
  const store = { access: accessOf("ann"), reads: 0 };
  const readAccess = async () => {
    store.reads++;
    return store.access;
  };
  const clock = new TestClock();
  const sleeps: { readonly ms: number; readonly end: () => void }[] = [];
  const sleep = (ms: number) => new Promise<void>((end) => void sleeps.push({ ms, end }));
  const reader = new AccessReader({ readAccess }, clock, sleep);
  const find = (name: string) => reader.find(({ tokens }) => tokens.get(name));
  expect(await find("ann")).toBeDefined();
  clock.advance(10);
  const flood = Array.from({ length: 1_000 }, (_, n) => find(`guess ${n}`));
  await until(() => sleeps.length > 0, 10_000);
  store.access = accessOf("ann", "bob");
  const bob = find("bob");
  await Bun.sleep(0);
  expect(store.reads).toBe(1);
  expect(sleeps.map(({ ms }) => ms)).toEqual([40]);
  clock.advance(40);
  sleeps[0]?.end();
  expect(await bob).toMatchObject({ operator: { name: "bob" } });
  expect(new Set(await Promise.all(flood))).toEqual(new Set([undefined]));
  expect(store.reads).toBe(2);
  // After a pause, the read begins at once.
  clock.advance(50);
  expect(await find("eve")).toBeUndefined();
  expect([store.reads, sleeps.length]).toEqual([3, 1]);
});
