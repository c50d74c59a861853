import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { ReadBuffer } from "../../src/http1/request-head.ts";
import { CHUNKED_HEAD, echoBody, echoTarget, get, nextTurn, TestConnection } from "./test-connection.ts";

describe("a client that sends byte by byte costs work in proportion to the bytes", () => {
  const spies: { mockRestore(): void }[] = [];
  afterEach(() => spies.splice(0).forEach((spy) => spy.mockRestore()));

  /** The bytes that are searched, decoded or copied while a client sends. */
  function bytesTouchedBy(send: () => void): number {
    let touched = 0;
    const { indexOfLineFeed, text } = ReadBuffer.prototype;
    const { concat } = Buffer;
    const { set, copy } = Buffer.prototype;
    spies.push(
      spyOn(ReadBuffer.prototype, "indexOfLineFeed").mockImplementation(function (this: ReadBuffer, from) {
        touched += this.length - from;
        return indexOfLineFeed.call(this, from);
      }),
      spyOn(ReadBuffer.prototype, "text").mockImplementation(function (this: ReadBuffer, from, to) {
        const result = text.call(this, from, to);
        touched += result.length;
        return result;
      }),
      spyOn(Buffer.prototype, "set").mockImplementation(function (
        this: Buffer,
        bytes: Buffer,
        offset?: number,
      ) {
        touched += bytes.length;
        return set.call(this, bytes, offset);
      }),
      spyOn(Buffer.prototype, "copy").mockImplementation(function (
        this: Buffer,
        target: Buffer,
        ...range: number[]
      ) {
        const copied = copy.call(this, target, ...range);
        touched += copied;
        return copied;
      }),
      spyOn(Buffer, "concat").mockImplementation((parts) => {
        const joined = concat(parts);
        touched += joined.length;
        return joined;
      }),
    );
    send();
    return touched;
  }

  const sendBytes = (client: TestConnection, text: string) => {
    const bytes = Buffer.from(text, "latin1");
    return () => {
      for (let i = 0; i < bytes.length; i++) client.connection.onData(bytes.subarray(i, i + 1));
    };
  };

  test.each([
    ["a head of 16 KiB in one line", get("/", `A: ${"a".repeat(16_000)}`)],
    [
      "a head of 16 KiB in 120 lines",
      get("/", ...Array.from({ length: 120 }, () => `A: ${"a".repeat(120)}`)),
    ],
    ["a request line of 8 KiB", get(`/${"a".repeat(8_000)}`)],
    ["short heads", get("/a").repeat(500)],
  ])("%s", (_, text) => {
    const client = new TestConnection(echoTarget);
    const touched = bytesTouchedBy(sendBytes(client, text));
    expect(client.statuses.every((status) => status === 200)).toBe(true);
    expect(touched / text.length).toBeLessThan(6);
  });

  test("chunk extensions of 1 KiB", async () => {
    const client = new TestConnection(echoBody(100));
    const text = `${CHUNKED_HEAD}${`1;a=${"b".repeat(1_000)}\r\nx\r\n`.repeat(20)}0\r\n\r\n`;
    const touched = bytesTouchedBy(sendBytes(client, text));
    await nextTurn();
    expect(client.statuses).toEqual([200]);
    expect(touched / text.length).toBeLessThan(6);
  });
});
