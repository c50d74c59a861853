import { expect, test } from "bun:test";
import { etagOf, matchesEtag, matchesStrongEtag, withEtag } from "../../src/runtime/etag.ts";

const etag = etagOf("[]");

test("an ETag is strong, and says 132 bits of the SHA-256 of its text", () => {
  expect(withEtag("[]")).toEqual({ json: "[]", etag: '"T1PNoYwrqgwDVLtfmj7L5e"' });
});

test.each<[header: string, isStrong: boolean, isWeak: boolean]>([
  [etag, true, true],
  [` ${etag} `, true, true],
  [`"a", ${etag},"b"`, true, true],
  [`W/${etag}`, false, true],
  ["*", true, true],
  [" * ", true, true],
  ['"a", "b"', false, false],
  ["", false, false],
  // Not a list of ETags.
  [`a ${etag}`, false, true],
  [`"a ${etag}`, false, true],
])("%p matches as a strong ETag: %p, as a weak one: %p", (header, isStrong, isWeak) => {
  expect([matchesStrongEtag(header, etag), matchesEtag(header, etag)]).toEqual([isStrong, isWeak]);
});

test("without If-None-Match nothing matches", () => expect(matchesEtag(null, etag)).toBeFalse());
