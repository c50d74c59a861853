import { expect, test } from "bun:test";
import { NO_ACTIVITY } from "../../src/domain/servers.ts";
import { HeartbeatRegister } from "../../src/rate-limit/server-register.ts";
import { ModelValkey } from "./model-valkey.ts";
import { VirtualTime } from "./virtual-time.ts";

function setUp() {
  const time = new VirtualTime();
  const valkey = new ModelValkey(() => time.time);
  const counts: number[] = [];
  const registerOf = (name: string, lastCount?: number) => {
    const register = new HeartbeatRegister(
      { id: name, name, version: "1.0.0", startedAt: time.now() },
      { clock: time, lastCount, onCount: (servers) => void counts.push(servers) },
    );
    register.activity = () => ({ ...NO_ACTIVITY, adminUrl: `http://${name}:8090`, requests: 7 });
    return register;
  };
  return { time, valkey, registerOf, counts };
}

test("a server without Valkey is alone, and knows what it does", () => {
  const { registerOf, time } = setUp();
  const one = registerOf("one");
  expect(one.count).toBe(1);
  expect(one.list()).toMatchObject([{ id: "one", requests: 7, seenAt: time.now() }]);
});

test("each server learns of the others, and forgets one that stops", async () => {
  const { valkey, registerOf } = setUp();
  const link = await valkey.open();
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

test("the number of servers is the greatest of the last 15 seconds: an empty Valkey learns of them again", async () => {
  const { time, valkey, registerOf } = setUp();
  const link = await valkey.open();
  const one = registerOf("one");
  for (const register of [registerOf("two"), registerOf("three"), one]) await register.beat(link);
  expect(one.count).toBe(3);
  valkey.servers.clear();
  await time.advance(14_999);
  await one.beat(link);
  expect(one.count).toBe(3);
  await time.advance(1);
  expect(one.count).toBe(3);
  await one.beat(link);
  expect(one.count).toBe(1);
});

test("a server that starts in an outage divides by the number of before, and each change is reported once", async () => {
  const { valkey, registerOf, counts } = setUp();
  const one = registerOf("one", 4);
  expect(one.count).toBe(4);
  const link = await valkey.open();
  for (let i = 0; i < 3; i++) await one.beat(link);
  expect(one.count).toBe(1);
  expect(counts).toEqual([1]);
});

test("without a reply the number stays as it was", async () => {
  const { time, valkey, registerOf } = setUp();
  const link = await valkey.open();
  const one = registerOf("one");
  for (const register of [registerOf("two"), one]) await register.beat(link);
  link.close();
  await time.advance(3_600_000);
  await one.beat(link);
  expect(one.count).toBe(2);
});

test("a server of another release counts, and is listed if it is understood", async () => {
  const { valkey, registerOf } = setUp();
  const link = await valkey.open();
  const one = registerOf("one");
  await link.servers({ id: "old", text: "not JSON" });
  await link.servers({ id: "new", text: JSON.stringify({ id: "new" }) });
  const newer = { ...NO_ACTIVITY, id: "newer", name: "n", version: "2.0.0", startedAt: 1, more: true };
  await link.servers({ id: "newer", text: JSON.stringify(newer) });
  await one.beat(link);
  expect(one.count).toBe(4);
  expect(one.list().map(({ id }) => id)).toEqual(["newer", "one"]);
});
