import { expect, test } from "bun:test";
import { type ValkeyConnection, Reconnector } from "../../src/rate-limit/valkey/connection.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { key } from "../subjects.ts";

useFakeTimers();

/** A server that a test makes available, and the connections to it. */
function setUp() {
  const server = { isAvailable: true, attempts: 0, lastSubject: key(-1) };
  const connections: ValkeyConnection[] = [];
  const closed = new Set<ValkeyConnection>();
  const changes: string[] = [];
  const reconnector = new Reconnector({
    async connect(subject) {
      server.attempts++;
      server.lastSubject = subject;
      if (!server.isAvailable) throw new Error("away");
      const connection: Pick<ValkeyConnection, "close" | "onEnd"> = {
        close: () => void closed.add(connection as ValkeyConnection),
        onEnd() {},
      };
      return connection as ValkeyConnection;
    },
    onConnection: (connection) => void (connection && connections.push(connection)),
    onStateChange: (state, cause) =>
      changes.push(cause instanceof Error ? `${state}: ${cause.message}` : state),
  });
  const fail = (subject = key(7)) => {
    const connection = connections.at(-1);
    if (connection) reconnector.connectionFailed(connection, new Error("no reply"), subject);
  };
  return { server, connections, closed, changes, reconnector, fail };
}

test("a server that works again is used again within 250 ms, and each change is reported once", async () => {
  const { server, connections, changes, reconnector } = setUp();
  server.isAvailable = false;
  await reconnector.start();
  for (let i = 0; i < 3; i++) await advance(250);
  expect([server.attempts, connections.length]).toEqual([4, 0]);
  server.isAvailable = true;
  await advance(249);
  expect(connections).toHaveLength(0);
  await advance(1);
  expect(connections).toHaveLength(1);
  expect(changes).toEqual(["unavailable: away", "available"]);
});

test("a connection that fails is closed; one that lasted a second is replaced at once, another after 250 ms", async () => {
  const { server, connections, closed, changes, reconnector, fail } = setUp();
  await reconnector.start();
  await advance(1_000);
  fail();
  expect(closed.size).toBe(1);
  await advance(0);
  expect(connections).toHaveLength(2);
  expect(server.lastSubject).toEqual(key(7));
  await advance(999);
  fail();
  fail();
  await advance(249);
  expect(connections).toHaveLength(2);
  await advance(1);
  expect(connections).toHaveLength(3);
  const both = ["unavailable: no reply", "available"];
  expect(changes).toEqual([...both, ...both]);
});

test("nothing is tried after close, and a connection that was being opened is closed", async () => {
  const { server, connections, closed, changes, reconnector, fail } = setUp();
  await reconnector.start();
  await advance(1_000);
  fail();
  await advance(0);
  fail();
  reconnector.close();
  await advance(10_000);
  expect([server.attempts, connections.length, closed.size]).toEqual([2, 2, 2]);
  expect(changes).toHaveLength(3);

  const other = setUp();
  const started = other.reconnector.start();
  other.reconnector.close();
  await started;
  expect([other.connections.length, other.closed.size]).toEqual([0, 1]);
});
