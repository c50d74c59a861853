import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
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

function splitAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end));
}

const chunk = (data: Uint8Array, extension = "") =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}${extension}\r\n`), data, Buffer.from("\r\n")]);

test("a body with a Content-Length is complete whatever pieces it arrives in, and what follows stays", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), fc.string(), fc.array(fc.nat()), (bytes, after, cuts) => {
      const following = Buffer.from(after);
      const read = readBody(bytes.length, splitAt(Buffer.concat([bytes, following]), cuts));
      expect(read).toEqual({
        progress: "complete",
        bytes: Buffer.from(bytes),
        rest: following.toString("latin1"),
      });
    }),
  );
});

test("a chunked body is complete whatever chunks and pieces it arrives in, and what follows stays", () => {
  const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 8 });
  const extensions = fc.constantFrom("", ";a", " ; a=b");
  fc.assert(
    fc.property(parts, extensions, fc.array(fc.nat()), (chunks, extension, cuts) => {
      const sent = [...chunks.map((data) => chunk(data, extension)), Buffer.from("0\r\nT: x\r\n\r\nGET")];
      const read = readBody("chunked", splitAt(Buffer.concat(sent), cuts));
      expect(read).toEqual({ progress: "complete", bytes: Buffer.concat(chunks), rest: "GET" });
    }),
  );
});

test("a body of a thousand chunks is complete", () => {
  const parts = Array.from({ length: 1_000 }, (_, i) => Buffer.from([i % 256]));
  const { bytes } = readBody("chunked", [Buffer.concat(parts.map((data) => chunk(data))), "0\r\n\r\n"]);
  expect(bytes).toEqual(Buffer.concat(parts));
});

describe("a chunked body is malformed:", () => {
  test.each([
    ["no size", "\r\n"],
    ["a size that is not a number", "zz\r\n"],
    ["a size with a sign", "+1\r\na\r\n"],
    ["a size with the prefix 0x", "0x1\r\na\r\n"],
    ["a size of nine digits", "fffffffff\r\n"],
    ["a line that ends with LF alone", "1\na\n0\n\n\r\n"],
    ["more data than the size", "1\r\nab\r\n0\r\n\r\n"],
    ["an extension with a control character", "1;\0\r\na\r\n"],
    ["a line without an end", `1;${"a".repeat(2_000)}`],
    ["a trailer line that is not a field", "0\r\nabc\r\n\r\n"],
    ["20,001 lines of trailers", `0\r\n${"A: b\r\n".repeat(20_000)}\r\n`],
    ["20,001 chunks", `${"1\r\na\r\n".repeat(20_000)}0\r\n`],
  ])("%s", (_, text) => {
    expect(readBody("chunked", [text], 100_000).progress).toBe("malformed");
    expect(readBody("chunked", text.match(/[^]{1,7}/g) ?? [], 100_000).progress).toBe("malformed");
  });

  test("20,001 lines, but not 20,000", () => {
    const lines = (count: number) => `0\r\n${"A: b\r\n".repeat(count - 2)}\r\n`;
    expect(readBody("chunked", [lines(20_000)]).progress).toBe("complete");
    expect(readBody("chunked", [lines(20_001)]).progress).toBe("malformed");
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
