import { afterEach, describe, expect, jest, test } from "bun:test";
import { ConnectionScheduler } from "../../src/http1/connection-scheduler.ts";
import { slowRejectedClients } from "../../src/http1/slow-rejected-clients.ts";
import { echoTarget, get, nextIteration, respond, TestConnection } from "./test-connection.ts";

afterEach(() => void jest.useRealTimers());

/** ConnectionScheduler with a clock that the test sets. */
class TestScheduler extends ConnectionScheduler {
  ms = 0;

  constructor() {
    super(() => this.ms);
  }

  countRequests(count: number): this {
    for (let i = 0; i < count; i++) this.countRequest();
    return this;
  }

  pass(ms: number): this {
    this.ms += ms;
    return this;
  }
}

/** ConnectionScheduler of an event loop that has handled requests for 5 milliseconds. */
const busyScheduler = () => new TestScheduler().countRequests(16).pass(5);

describe("a time slice of a connection", () => {
  test("ends after 64 KiB of responses, of text or of bytes, or with one that is larger", async () => {
    const handled = (body: string | Uint8Array) => {
      const client = new TestConnection(() => ({ status: 200, headerLines: "", body }));
      return client.receive(get("/").repeat(20));
    };
    const client = handled("x".repeat(10 * 1024));
    expect(client.statuses.length).toBe(7);
    await nextIteration();
    expect(client.statuses.length).toBe(14);
    expect(handled(new Uint8Array(10 * 1024)).statuses.length).toBe(7);
    expect(handled("x".repeat(100_000)).statuses.length).toBe(1);
    const scheduler = new TestScheduler();
    const isOver = ([0, 1] as const).map((requests) =>
      [65_535, 65_536].map((bytes) => scheduler.isSliceOver(requests, bytes)),
    );
    expect(isOver).toEqual([
      [false, false],
      [false, true],
    ]);
  });

  test("ends when the iteration of the event loop has taken 4 milliseconds", () => {
    const scheduler = new TestScheduler().countRequests(16);
    const client = new TestConnection(() => (scheduler.pass(1), respond("ok")), { scheduler });
    client.receive(get("/").repeat(32));
    expect(client.statuses.length).toBe(8);
  });
});

describe("an iteration of the event loop", () => {
  test("is over for responses that settle one after the other, too", async () => {
    const scheduler = new TestScheduler();
    const client = new TestConnection(async () => (scheduler.pass(1), respond("ok")), { scheduler });
    let atEndOfIteration = 0;
    setImmediate(() => (atEndOfIteration = client.statuses.length));
    client.receive(get("/").repeat(200));
    await nextIteration();
    expect(atEndOfIteration).toBe(16 + 4);
  });

  test("is not over before 16 requests, or before 4 milliseconds, and the next one begins anew", async () => {
    const scheduler = new TestScheduler();
    for (let iteration = 0; iteration < 2; iteration++) {
      expect(scheduler.countRequests(15).pass(100).isBusy).toBe(false);
      expect(scheduler.countRequests(1).pass(4).isBusy).toBe(false);
      expect(scheduler.pass(0.1).isBusy).toBe(true);
      await nextIteration();
    }
  });

  test("that is over leaves requests to the next one", async () => {
    const client = new TestConnection(echoTarget, { scheduler: busyScheduler() });
    expect(client.receive(get("/1")).events).toEqual(["pause"]);
    client.receive(get("/2"));
    expect([client.statuses, client.events]).toEqual([[], ["pause"]]);
    await nextIteration();
    expect(client.statuses).toEqual([200]);
    await nextIteration();
    expect([client.bodies, client.events]).toEqual([
      ["GET /1 ", "GET /2 "],
      ["pause", "resume"],
    ]);
  });

  test("begins with one pipelining connection, then all new requests, then the other pipelining ones", async () => {
    const scheduler = busyScheduler();
    const taken: string[] = [];
    const taker = (name: string) => ({ runTimeSlice: (max: number) => void taken.push(`${name} ${max}`) });
    for (const name of ["pipelined 1", "pipelined 2"]) scheduler.queuePipelined(taker(name));
    for (const name of ["new 1", "new 2"]) scheduler.queueNewRequests(taker(name));
    await nextIteration();
    expect(taken).toEqual(["pipelined 1 32", "new 1 1", "new 2 1", "pipelined 2 32"]);
  });

  test.each([
    ["ends after 1 millisecond if only pipelining connections are left", "queuePipelined", 0.4, [3, 6]],
    ["stops after 4 milliseconds, also with more in the queue", "queueNewRequests", 1, [5, 10, 12]],
  ] as const)("%s", async (_, queue, ms, takenByTurn) => {
    const scheduler = busyScheduler();
    let taken = 0;
    for (let i = 0; i < (takenByTurn.at(-1) ?? 0); i++)
      scheduler[queue]({ runTimeSlice: () => void (taken++, scheduler.pass(ms)) });
    for (const expected of takenByTurn) {
      await nextIteration();
      expect(taken).toBe(expected);
    }
  });
});

describe("a connection that gets 401 or 429", () => {
  const rejecting = (status: 401 | 429) => (request: { path: string }) =>
    respond("", request.path === "/" ? status : 200);

  for (const status of [401, 429] as const) {
    test(`${status}: 20 in a row are not slowed; then it waits 10 ms after each, and closes after 1,000`, async () => {
      jest.useFakeTimers();
      const client = new TestConnection(rejecting(status), { pace: slowRejectedClients() });
      const pass = (ms: number) => (jest.advanceTimersByTime(ms), nextIteration());
      for (let i = 0; i < 21; i++) client.receive(get("/"));
      expect(client.statuses.length).toBe(21);
      client.receive(get("/").repeat(1_000));
      await pass(9);
      expect(client.statuses.length).toBe(21);
      await pass(1);
      expect(client.statuses.length).toBe(22);
      for (let i = 22; i < 1_000; i++) await pass(10);
      expect([client.statuses.length, client.events.at(-1)]).toEqual([1_000, "shutdown"]);
      expect(client.sent.match(/Connection: close/g)?.length).toBe(1);
    });
  }

  test("has, together with all others that are slowed, 2,000 responses a second", async () => {
    jest.useFakeTimers();
    const scheduler = new ConnectionScheduler(() => 0);
    let responses = 0;
    for (let connection = 0; connection < 500; connection++) {
      const client = new TestConnection(() => (responses++, respond("", 401)), {
        scheduler,
        pace: slowRejectedClients(),
      });
      for (let i = 0; i < 21; i++) client.receive(get("/"));
      client.receive(get("/").repeat(100));
    }
    expect(responses).toBe(500 * 21);
    for (let ms = 0; ms < 1_000; ms++) {
      jest.advanceTimersByTime(1);
      await nextIteration();
    }
    expect(responses - 500 * 21).toBe(2_000);
  });

  test("has no time slice once it is closed", async () => {
    jest.useFakeTimers();
    const scheduler = new ConnectionScheduler(() => 0);
    const taken: string[] = [];
    const client = new TestConnection(rejecting(401), { scheduler, pace: () => "slow down" });
    client.receive(get("/"));
    scheduler.queueSlowed({ runTimeSlice: () => void taken.push("open") });
    client.terminate();
    jest.advanceTimersByTime(10);
    expect(scheduler.queueLength).toBe(1);
    await nextIteration();
    expect(taken).toEqual(["open"]);
  });

  test("is not slowed if another response comes between", () => {
    const client = new TestConnection(rejecting(401), { pace: slowRejectedClients() });
    for (let i = 0; i < 400; i++) client.receive(get(i % 20 === 19 ? "/docs" : "/"));
    expect([client.statuses.length, client.events]).toEqual([400, []]);
  });
});
