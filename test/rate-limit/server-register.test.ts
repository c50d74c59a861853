import { expect, test } from "bun:test";
import { DEFAULT_BAN } from "../../src/domain/rate-limit.ts";
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { HeartbeatRegister, parseServerStates } from "../../src/rate-limit/server-register.ts";
import { SimulatedValkey, ValkeyModel } from "../../trials/simulation/valkey.ts";
import { Process, World } from "../../trials/simulation/world.ts";

function setUp() {
  const time = new World();
  const server = new Process(time, "server");
  const { clock } = server;
  const model = new ValkeyModel(() => time.now, DEFAULT_BAN);
  const open = () => new SimulatedValkey(time, model).open(server);
  const counts: number[] = [];
  const registerOf = (id: string, lastCount?: number, name = id) => {
    const activity = () => ({ ...NO_ACTIVITY, adminUrl: `http://${name}:8090`, requests: 7 });
    return new HeartbeatRegister(
      { id, name, version: "1.0.0", startedAt: clock.now() },
      { clock, activity, lastCount, onCount: (servers) => void counts.push(servers) },
    );
  };
  return { time, clock, model, open, registerOf, counts };
}

test("a server without Valkey is alone, and knows what it does", () => {
  const { clock, registerOf } = setUp();
  const one = registerOf("one");
  expect(one.count).toBe(1);
  expect(one.list()).toMatchObject([{ id: "one", requests: 7, seenAt: clock.now() }]);
});

test("each server learns of the others, and forgets one that stops", async () => {
  const { open, registerOf } = setUp();
  const link = await open();
  const [one, other] = [registerOf("one"), registerOf("other")];
  for (const register of [one, other, one]) await register.beat(link);
  expect([one.count, other.count]).toEqual([2, 2]);
  expect(one.list()).toMatchObject([
    { id: "one", adminUrl: "http://one:8090" },
    { id: "other", adminUrl: "http://other:8090", requests: 7, latencies: [] },
  ]);
  await other.leave(link);
  await one.beat(link);
  expect(one.list()).toMatchObject([{ id: "one" }]);
});

test("a server that was killed is lost after 15 seconds, is not counted, and is forgotten when it starts again", async () => {
  const { time, clock, open, registerOf } = setUp();
  const link = await open();
  const [one, other] = [registerOf("one"), registerOf("other")];
  for (const register of [other, one]) await register.beat(link);
  expect(one.lost()).toEqual([]);
  const seenAt = clock.now();
  time.run(15_001);
  for (let i = 0; i < 4; i++) await one.beat(link);
  expect([one.count, one.list().map(({ id }) => id)]).toEqual([1, ["one"]]);
  expect(one.lost()).toMatchObject([{ id: "other", requests: 7 }]);
  expect(Math.abs((one.lost()[0]?.seenAt ?? 0) - seenAt)).toBeLessThan(100);
  const again = registerOf("again", undefined, "other");
  await again.beat(link);
  await one.beat(link);
  expect([one.count, one.lost()]).toEqual([2, []]);
  await again.leave(link);
  await one.beat(link);
  expect([one.list().length, one.lost()]).toEqual([1, []]);
});

test("the number of servers is the greatest of four heartbeats: an empty Valkey learns of them again", async () => {
  const { model, open, registerOf } = setUp();
  const link = await open();
  const one = registerOf("one");
  for (const register of [registerOf("two"), registerOf("three"), one]) await register.beat(link);
  expect(one.count).toBe(3);
  model.flush();
  for (const count of [3, 3, 3, 1]) {
    await one.beat(link);
    expect(one.count).toBe(count);
  }
});

test("a Valkey that has lost its data: the others stay listed until they have reported again", async () => {
  const { model, open, registerOf } = setUp();
  const link = await open();
  const [one, other] = [registerOf("one"), registerOf("other")];
  for (const register of [one, other, one]) await register.beat(link);
  model.flush();
  await one.beat(link);
  expect(one.list().map(({ id }) => id)).toEqual(["one", "other"]);
  await other.beat(link);
  await one.beat(link);
  expect(one.list().map(({ id }) => id)).toEqual(["one", "other"]);
  model.flush();
  // The other one is gone.
  for (let i = 0; i < 2; i++) await one.beat(link);
  expect(one.list().map(({ id }) => id)).toEqual(["one"]);
});

test("a server that starts in an outage divides by the number of before, and each change is reported once", async () => {
  const { open, registerOf, counts } = setUp();
  const one = registerOf("one", 4);
  expect(one.count).toBe(4);
  const link = await open();
  for (let i = 0; i < 5; i++) await one.beat(link);
  expect(one.count).toBe(1);
  expect(counts).toEqual([1]);
});

test("without a reply the number stays as it was", async () => {
  const { time, open, registerOf } = setUp();
  const link = await open();
  const one = registerOf("one");
  for (const register of [registerOf("two"), one]) await register.beat(link);
  link.close();
  time.run(3_600_000);
  await one.beat(link);
  expect(one.count).toBe(2);
});

test("a server of another release counts, and is listed if it is understood", async () => {
  const { open, registerOf } = setUp();
  const link = await open();
  const one = registerOf("one");
  await link.servers({ id: "old", text: "not JSON" });
  await link.servers({ id: "new", text: JSON.stringify({ id: "new" }) });
  const newer = { ...NO_ACTIVITY, id: "newer", name: "n", version: "2.0.0", startedAt: 1, more: true };
  await link.servers({ id: "newer", text: JSON.stringify(newer) });
  await one.beat(link);
  expect(one.count).toBe(4);
  expect(one.list().map(({ id }) => id)).toEqual(["newer", "one"]);
});

test.each<[string | null, string | null | undefined]>([
  ["https://192.0.2.7:8090", "https://192.0.2.7:8090"],
  ["http://192.0.2.7:8090/latest/meta-data?a=#", "http://192.0.2.7:8090"],
  ["http://user:secret@192.0.2.7", "http://192.0.2.7"],
  [null, null],
  ["file:///etc/passwd", undefined],
  ["no URL", undefined],
])("a server that reports %s is asked at %s", (adminUrl, expected) => {
  const told = { id: "one", name: "one", version: "1.0.0", startedAt: 0, ...NO_ACTIVITY, adminUrl };
  expect(parseServerStates([JSON.stringify(told)], 0).map((each) => each.adminUrl)).toEqual([expected]);
  const wrong = [{ startedAt: 8.64e15 + 1 }, { adminUrl: `http://${"x".repeat(300)}` }];
  const texts = wrong.map((each) => JSON.stringify(Object.assign({ ...told }, each)));
  expect(parseServerStates(texts, 0)).toEqual([]);
  // Whoever can write to Valkey can repeat an entry.
  expect(parseServerStates([JSON.stringify(told), JSON.stringify(told)], 0)).toHaveLength(1);
});
