import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { hash } from "node:crypto";
import { sha256 } from "../src/sha256.ts";

test("the digest is SHA-256, of text in UTF-8 and of bytes", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "grapheme" }), fc.uint8Array()), (data) => {
      expect(sha256(data)).toBe(hash("sha256", data, "hex"));
      expect(sha256(data, "base64url")).toBe(hash("sha256", data, "base64url"));
    }),
  );
});
