import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { get, respond, TestConnection } from "./test-connection.ts";

const CONNECTIONS = 500;

/**
 * The fewest bytes in three attempts: what other tests of the process leave to the garbage collector changes the size
 * of the heap now and then, and what a connection holds is there each time.
 */
function fewestBytesPerConnection(headerLines: (number: number) => string[], idleSeconds: number): number {
  return Math.min(...[1, 2, 3].map(() => bytesPerConnection(headerLines, idleSeconds)));
}

/** Bytes of the heap that a connection holds after it has received a request. */
function bytesPerConnection(headerLines: (number: number) => string[], idleSeconds: number): number {
  const handle = () => respond("ok");
  Bun.gc(true);
  const before = heapSize();
  const clients = Array.from({ length: CONNECTIONS }, (_, i) => {
    const client = new TestConnection(handle).receive(get("/", ...headerLines(i)));
    return client.passSeconds(idleSeconds);
  });
  Bun.gc(true);
  const bytes = (heapSize() - before) / clients.length;
  expect(clients.every(({ statuses }) => statuses.join() === "200")).toBe(true);
  return bytes;
}

function heapSize(): number {
  const { heapSize, extraMemorySize } = heapStats();
  return heapSize + extraMemorySize;
}

const fields = (count: number, value: string) => (connection: number) =>
  Array.from({ length: count }, (_, i) => `X-${connection}-${i}: ${value}`);

test("a connection does not hold a head of 15 KiB after the response", () => {
  expect(fewestBytesPerConnection(fields(120, "x".repeat(115)), 0)).toBeLessThan(8 * 1024);
});

test("a connection that is idle for 3 seconds does not hold many small header fields", () => {
  expect(fewestBytesPerConnection(fields(120, ""), 3)).toBeLessThan(8 * 1024);
});
