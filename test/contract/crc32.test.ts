import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { crc32 } from "../../src/contract/crc32.ts";

test("the check value of CRC-32 is cbf43926", () => expect(crc32("123456789").toString(16)).toBe("cbf43926"));

test("the empty text has zero", () => expect(crc32("")).toBe(0));

test("agrees with the runtime's own on any ASCII text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary-ascii" }), (text) =>
      expect(crc32(text)).toBe(Bun.hash.crc32(text)),
    ),
  );
});
