import { expect, test } from "bun:test";
import { Availability } from "../../src/rate-limit/valkey/availability.ts";
import type { LimiterConnection } from "../../src/rate-limit/valkey/connection.ts";
import { messageOf } from "../../src/runtime/message-of.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { advance, settle, useFakeTimers } from "../fake-timers.ts";
import { key } from "../subjects.ts";

useFakeTimers();

/** The availability of a Valkey, and what happens in it. */
function setUp() {
  const events: string[] = [];
  const state = { isDown: false, isSilent: false, isWaiting: false, openMs: 0 };
  let connections = 0;
  const unused = () => Promise.reject(new Error("unused"));
  const availability = new Availability(
    {
      timeoutMs: 500,
      scheduler,
      onStateChange: (name, cause) =>
        events.push(cause === undefined ? name : `${name}: ${messageOf(cause)}`),
      async open({ id }): Promise<LimiterConnection> {
        events.push(`open for ${id}`);
        if (state.openMs > 0) await Bun.sleep(state.openMs);
        if (state.isDown) throw new Error("refused");
        const name = ++connections;
        return {
          decide: unused,
          quota: unused,
          async time() {
            events.push(`try ${name}`);
            if (state.isSilent) throw new Error("silent");
            return 0;
          },
          onEnd() {},
          close: () => void events.push(`close ${name}`),
        };
      },
    },
    {
      isWaiting: () => state.isWaiting,
      onUnavailable: () => events.push("leave"),
      onAvailable: () => events.push("return"),
      onDrop: () => events.push("drop"),
    },
  );
  const after = async (ms: number) => {
    await advance(ms);
    return events.splice(0);
  };
  const fail = (cause: string) => {
    const { connection } = availability;
    if (connection) availability.failed(connection, new Error(cause), key(7));
  };
  return { availability, state, after, fail };
}

test("an idle connection is tried every 5 s, and replaced if it is silent while no request waits", async () => {
  const { availability, state, after } = setUp();
  await availability.start();
  expect(await after(4_999)).toEqual(["open for 0", "drop"]);
  expect(await after(1)).toEqual(["try 1"]);
  state.isSilent = true;
  expect(await after(5_000)).toEqual(["try 1", "open for 0", "drop", "close 1"]);
  state.isWaiting = true;
  expect(await after(5_000)).toEqual(["try 2", "open for 0", "close 3"]);
  state.isDown = true;
  expect(await after(5_000)).toEqual(["try 2", "open for 0"]);
  expect(availability.isAvailable).toBeTrue();
  availability.beginOutage(new Error("silent"), key(7), 60_000);
  expect(await after(5_000)).toEqual(["leave", "unavailable: silent"]);
  availability.close();
  expect(await after(60_000)).toEqual(["leave", "drop", "close 2"]);
  expect(availability.connection).toBeUndefined();
});

test("in an outage a connection is opened every 250 ms, and each outage reports its causes", async () => {
  const { availability, state, after, fail } = setUp();
  await availability.start();
  await after(0);
  for (const connection of [1, 2]) {
    state.isDown = true;
    const dropped = availability.connection;
    fail("reset");
    if (dropped) availability.failed(dropped, new Error("again"));
    expect(await after(249)).toEqual(["leave", "unavailable: reset", "drop", `close ${connection}`]);
    expect(await after(1)).toEqual(["open for 7", "unavailable: refused"]);
    expect(await after(250)).toEqual(["open for 7"]);
    state.isDown = false;
    expect(await after(250)).toEqual(["open for 7", "drop", "available", "return"]);
  }
  await after(1_000);
  fail("reset");
  // The connection lasted for a second.
  const left = ["leave", "unavailable: reset", "drop", "close 3"];
  expect(await after(0)).toEqual([...left, "open for 7", "drop", "available", "return"]);
  availability.replied();
  availability.close();
  expect(await after(5_000)).toEqual(["leave", "drop", "close 4"]);
});

test("a Valkey that is down at the start is an outage, and one that opens after the end is closed", async () => {
  const down = setUp();
  down.state.isDown = true;
  await down.availability.start();
  expect(await down.after(250)).toEqual(["open for 0", "leave", "unavailable: refused", "open for 0"]);
  down.availability.close();
  expect(await down.after(5_000)).toEqual(["leave", "drop"]);
  for (const isDown of [false, true]) {
    const { availability, state, after } = setUp();
    Object.assign(state, { isDown, openMs: 100 });
    void availability.start();
    availability.close();
    await settle();
    expect(await after(5_000)).toEqual(["open for 0", "leave", "drop", ...(isDown ? [] : ["close 1"])]);
  }
});
