import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { crc32 as reference } from "node:zlib";
import { crc32 } from "../../src/contract/crc32.ts";

test("the checksum is CRC-32", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii" }), (text) => expect(crc32(text)).toBe(reference(text))),
  );
});
