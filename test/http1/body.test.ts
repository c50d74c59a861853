import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { Body, type Progress } from "../../src/http1/body-reader.ts";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";

const MAX = 1_000;

/** Gives the text to a body as it comes; what is left over is what follows the body. */
function arrive(length: number | "chunked", pieces: readonly (string | Uint8Array)[], maxBytes = MAX) {
  const readBuffer = new ReadBuffer();
  const body = new Body(length);
  let progress: Progress = "more";
  for (const piece of pieces) {
    readBuffer.add(Buffer.from(piece as string, "latin1"));
    progress = body.gather(readBuffer, maxBytes);
  }
  return { progress, bytes: Buffer.from(body.bytes), left: readBuffer.peek(10_000) };
}

/** Cuts bytes at the given places, whatever these are. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b);
  return ends.map((end, i) => bytes.subarray(i === 0 ? 0 : ends[i - 1], end));
}

const chunk = (part: Uint8Array, extension = "") =>
  Buffer.concat([Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from("\r\n")]);

test("a body of a length is the same however it arrives, and what follows is left", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1 }), fc.string(), fc.array(fc.nat()), (bytes, after, places) => {
      const tail = Buffer.from(after);
      const came = arrive(bytes.length, cut(Buffer.concat([bytes, tail]), places));
      expect([came.progress, came.bytes, came.left]).toEqual([
        "done",
        Buffer.from(bytes),
        tail.toString("latin1"),
      ]);
    }),
  );
});

test("a body in many chunks is whole", () => {
  const parts = Array.from({ length: 1_000 }, (_, i) => Buffer.from([i % 256]));
  const { bytes } = arrive("chunked", [Buffer.concat(parts.map((part) => chunk(part))), "0\r\n\r\n"]);
  expect(bytes).toEqual(Buffer.concat(parts));
});

test("a body in chunks is the same however it is cut and arrives, and what follows is left", () => {
  const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 8 });
  fc.assert(
    fc.property(
      parts,
      fc.constantFrom("", ";a", " ; a=b"),
      fc.array(fc.nat()),
      (chunks, extension, places) => {
        const sent = [...chunks.map((part) => chunk(part, extension)), Buffer.from("0\r\nT: x\r\n\r\nGET")];
        const came = arrive("chunked", cut(Buffer.concat(sent), places));
        expect([came.progress, came.bytes, came.left]).toEqual(["done", Buffer.concat(chunks), "GET"]);
      },
    ),
  );
});

describe("chunks that are broken", () => {
  test.each([
    ["no size", "\r\n"],
    ["a size that is no number", "zz\r\n"],
    ["a size with a sign", "+1\r\na\r\n"],
    ["a size in C's way", "0x1\r\na\r\n"],
    ["a size beyond all sizes", "fffffffff\r\n"],
    ["a line that ends with LF alone", "1\na\n0\n\n\r\n"],
    ["more than the size", "1\r\nab\r\n0\r\n\r\n"],
    ["an extension with a control character", "1;\0\r\na\r\n"],
    ["a line without an end", `1;${"a".repeat(2_000)}`],
    ["a trailer that is no field", "0\r\nabc\r\n\r\n"],
    ["trailers without end", `0\r\n${"A: b\r\n".repeat(20_001)}\r\n`],
    ["chunks without end", "1\r\na\r\n".repeat(10_001)],
  ])("%s", (_, text) => {
    expect(arrive("chunked", [text], 100_000).progress).toBe("broken");
    expect(arrive("chunked", text.match(/[^]{1,7}/g) ?? [], 100_000).progress).toBe("broken");
  });
});

describe("a body that is too large", () => {
  test("is known by its length before any of it comes", () => {
    expect(arrive(MAX + 1, [""]).progress).toBe("large");
    expect(arrive(MAX, ["a".repeat(MAX)]).progress).toBe("done");
  });

  test("in chunks is known when it has become so", () => {
    const part = chunk(Buffer.alloc(400)).toString("latin1");
    expect(arrive("chunked", [part, part]).progress).toBe("more");
    expect(arrive("chunked", [part, part, part]).progress).toBe("large");
    // One chunk is known by its size.
    expect(arrive("chunked", ["ffffff\r\n", "a"]).progress).toBe("large");
  });

  test("can be dropped up to a larger bound", () => {
    const readBuffer = new ReadBuffer();
    const body = new Body("chunked");
    readBuffer.add(Buffer.concat([chunk(Buffer.alloc(MAX + 1)), Buffer.from("0\r\n\r\nGET")]));
    expect(body.gather(readBuffer, MAX)).toBe("large");
    expect(body.discard(readBuffer, 2 * MAX)).toBe("done");
    expect(readBuffer.peek(9)).toBe("GET");
  });
});
