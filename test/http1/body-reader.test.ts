import { describe, expect, test } from "bun:test";
import { type BodyProgress, BodyReader } from "../../src/http1/body-reader.ts";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";

const MAX_BYTES = 1_000;

/** Reads a body that arrives in these pieces; `rest` is what follows it in the buffer. */
function readBody(length: number | "chunked", pieces: readonly (string | Buffer)[], maxBytes = MAX_BYTES) {
  const readBuffer = new ReadBuffer();
  const body = new BodyReader(length);
  let progress: BodyProgress = "incomplete";
  for (const piece of pieces) {
    readBuffer.append(typeof piece === "string" ? Buffer.from(piece, "latin1") : piece);
    progress = body.read(readBuffer, maxBytes);
  }
  return { progress, bytes: Buffer.from(body.bytes), rest: readBuffer.text(0, 10_000) };
}

const chunk = (data: Uint8Array) =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}\r\n`), data, Buffer.from("\r\n")]);

test("a body of a thousand chunks is complete", () => {
  const parts = Array.from({ length: 1_000 }, (_, i) => Buffer.from([i % 256]));
  const { bytes } = readBody("chunked", [Buffer.concat(parts.map((data) => chunk(data))), "0\r\n\r\n"]);
  expect(bytes).toEqual(Buffer.concat(parts));
});

describe("a chunked body is malformed:", () => {
  test.each([
    ["trailer lines", (count: number) => `0\r\n${"A: b\r\n".repeat(count - 2)}\r\n`],
    ["chunks", (count: number) => `${"1\r\na\r\n".repeat(count - 2)}0\r\n\r\n`],
  ])("more than 20,000 lines, but not 20,000: %s", (_, lines) => {
    expect(readBody("chunked", [lines(20_000)], 100_000).progress).toBe("complete");
    expect(readBody("chunked", [lines(20_001)], 100_000).progress).toBe("malformed");
  });

  test("a line of more than 1 KiB, but not of 1 KiB", () => {
    const sizeLine = (bytes: number) => `1;${"a".repeat(bytes - 4)}\r\n`;
    expect(readBody("chunked", [`${sizeLine(1_024)}x\r\n0\r\n\r\n`]).progress).toBe("complete");
    expect(readBody("chunked", [`${sizeLine(1_025)}x\r\n0\r\n\r\n`]).progress).toBe("malformed");
  });
});

describe("a body that is too large", () => {
  test("is recognised by its Content-Length before it arrives", () => {
    expect(readBody(MAX_BYTES + 1, [""]).progress).toBe("too large");
    expect(readBody(MAX_BYTES, ["a".repeat(MAX_BYTES)]).progress).toBe("complete");
  });

  test("is recognised by the sum of its chunks", () => {
    const part = chunk(Buffer.alloc(400));
    expect(readBody("chunked", [part, part]).progress).toBe("incomplete");
    expect(readBody("chunked", [part, part, part]).progress).toBe("too large");
  });

  test("is recognised by the size of one chunk before its data arrives", () => {
    expect(readBody("chunked", ["fff", "fff\r\n"]).progress).toBe("too large");
  });

  test("can be discarded up to a larger bound", () => {
    const readBuffer = new ReadBuffer();
    const body = new BodyReader("chunked");
    readBuffer.append(Buffer.concat([chunk(Buffer.alloc(MAX_BYTES + 1)), Buffer.from("0\r\n\r\nGET")]));
    expect(body.read(readBuffer, MAX_BYTES)).toBe("too large");
    expect(body.discard(readBuffer, 2 * MAX_BYTES)).toBe("complete");
    expect(readBuffer.text(0, 9)).toBe("GET");
  });
});
