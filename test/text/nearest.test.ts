import { expect, test } from "bun:test";
import { didYouMean, nearest } from "../../src/text/nearest.ts";

test.each<[typed: string, candidates: readonly string[], meant: string | undefined]>([
  ["prot", ["data", "port"], "port"],
  ["helo", ["hello"], "hello"],
  ["hellop", ["hello"], "hello"],
  ["ca", ["abc"], undefined],
  ["a", ["b"], "b"],
  ["", ["ab"], undefined],
  ["list", ["last", "lost"], "last"],
  ["list", ["lots", "last"], "last"],
  // One edit for each three characters.
  ["abcde", ["abcxy"], undefined],
  ["abcdef", ["abcdxy"], "abcdxy"],
  ["abcdef", ["abcxyz"], undefined],
  ["abcdefghi", ["badcfeghi"], "badcfeghi"],
  ["list", [], undefined],
])("%s among %j is %p", (typed, candidates, meant) => expect(nearest(typed, candidates)).toBe(meant));

test("a message suggests what may be meant", () => {
  expect([didYouMean("--port"), didYouMean(undefined)]).toEqual(["did you mean --port?", undefined]);
});
