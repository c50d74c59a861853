import { expect, jest, test } from "bun:test";
import { Unavailable } from "../../src/api/errors.ts";
import { watchFloods } from "../../src/observe/authentication-floods.ts";
import { createLog } from "../../src/observe/log.ts";
import type { AuthFailure } from "../../src/domain/api-keys.ts";
import { useFakeTimers } from "../fake-timers.ts";

useFakeTimers();

function setUp() {
  const events: Record<string, unknown>[] = [];
  const log = createLog({
    format: "json",
    write(line) {
      const { requests, address, requestsOfAddress } = JSON.parse(line);
      events.push({ requests, address, requestsOfAddress });
    },
  });
  const watch = watchFloods(log);
  const send = (count: number, failure: AuthFailure = "invalid_api_key", from = "192.0.2.1") => {
    for (let i = 0; i < count; i++) watch(failure, from);
  };
  return { events, send };
}

test("the hundredth request without a valid key, not one whose key cannot be looked up, is one event, with the address that sent most", () => {
  const { events, send } = setUp();
  send(1_000, new Unavailable("x"));

  send(20, "missing_api_key", "192.0.2.9");
  send(79);
  expect(events).toEqual([]);
  send(1_000);
  expect(events).toEqual([{ requests: 100, address: "192.0.2.1", requestsOfAddress: 80 }]);
});

test("a minute begins with its first request, whenever the server started", () => {
  const { events, send } = setUp();
  jest.advanceTimersByTime(59_999 - (performance.now() % 60_000));
  send(50);
  jest.advanceTimersByTime(2);
  send(50);
  expect(events).toMatchObject([{ requests: 100 }]);
});

test("the next event is a minute later, with the number since the last, and only if there are a hundred", () => {
  const { events, send } = setUp();
  send(350);
  jest.advanceTimersByTime(59_999);
  expect(events).toHaveLength(1);
  jest.advanceTimersByTime(1);
  expect(events).toEqual([
    { requests: 100, address: "192.0.2.1", requestsOfAddress: 100 },
    { requests: 250, address: "192.0.2.1", requestsOfAddress: 250 },
  ]);
  send(100);
  jest.advanceTimersByTime(60_000);
  expect(events).toHaveLength(3);
  send(99);
  jest.advanceTimersByTime(60_000);
  send(99);
  jest.advanceTimersByTime(60_000);
  send(99);
  expect(events).toHaveLength(3);
  send(1);
  expect(events).toHaveLength(4);
});

test("a thousand addresses are told apart, and all requests are counted", () => {
  const { events, send } = setUp();
  for (let i = 0; i < 99; i++) send(1, "invalid_api_key", `10.0.${i}.1`);
  send(1, "invalid_api_key", "10.0.7.1");
  expect(events).toEqual([{ requests: 100, address: "10.0.7.1", requestsOfAddress: 2 }]);
  for (let i = 0; i < 1_000; i++) send(1, "invalid_api_key", `10.1.${i}.1`);
  send(500, "invalid_api_key", "192.0.2.1");
  jest.advanceTimersByTime(60_000);
  expect(events[1]).toEqual({ requests: 1_500, address: "10.1.0.1", requestsOfAddress: 1 });
});
