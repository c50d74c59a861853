import { afterEach, describe, expect, mock, spyOn, test } from "bun:test";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";
import { CHUNKED_HEAD, echoBody, get, nextIteration, TestConnection } from "./test-connection.ts";

describe("a client that sends byte by byte costs work in proportion to the bytes", () => {
  afterEach(() => mock.restore());

  /** The bytes that are searched, decoded or copied while a client sends. */
  function bytesTouchedBy(send: () => void): number {
    let touched = 0;
    const { indexOfLineFeed, text } = ReadBuffer.prototype;
    const { concat } = Buffer;
    const { set, copy } = Buffer.prototype;
    const counted = <T>(result: T, bytes: number): T => ((touched += bytes), result);
    spyOn(ReadBuffer.prototype, "indexOfLineFeed").mockImplementation(function (this: ReadBuffer, from) {
      return counted(indexOfLineFeed.call(this, from), this.length - from);
    });
    spyOn(ReadBuffer.prototype, "text").mockImplementation(function (this: ReadBuffer, from, to) {
      const result = text.call(this, from, to);
      return counted(result, result.length);
    });
    spyOn(Buffer.prototype, "set").mockImplementation(function (this: Buffer, bytes: Buffer, at?: number) {
      return counted(set.call(this, bytes, at), bytes.length);
    });
    spyOn(Buffer.prototype, "copy").mockImplementation(function (this: Buffer, to: Buffer, ...at: number[]) {
      const copied = copy.call(this, to, ...at);
      return counted(copied, copied);
    });
    spyOn(Buffer, "concat").mockImplementation((parts) => {
      const joined = concat(parts);
      return counted(joined, joined.length);
    });
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
    ["a head of 16 KiB in 120 lines", get("/", ...Array<string>(120).fill(`A: ${"a".repeat(120)}`))],
    ["a request line of 8 KiB", get(`/${"a".repeat(8_000)}`)],
    ["short heads", get("/a").repeat(500)],
    [
      "chunk extensions of 1 KiB",
      `${CHUNKED_HEAD}${`1;a=${"b".repeat(1_000)}\r\nx\r\n`.repeat(20)}0\r\n\r\n`,
    ],
  ])("%s", async (_, text) => {
    const client = new TestConnection(echoBody(100));
    const touched = bytesTouchedBy(sendBytes(client, text));
    await nextIteration();
    expect(new Set(client.statuses)).toEqual(new Set([200]));
    expect(touched / text.length).toBeLessThan(6);
  });
});
