import { expect, test } from "bun:test";
import { excerptOf, markedParts, SearchIndex } from "../../../src/docs-site/browser/search-matches.ts";
import type { SearchEntry } from "../../../src/docs-site/page-data.ts";

const ENTRIES: readonly SearchEntry[] = [
  ["Quickstart", "", "docs", "You need a key. A pet is added."],
  ["Rate limits and bans", "", "docs/rate-limits", "Every API key has two rate limits."],
  ["Rate limits and bans", "Handling 429", "docs/rate-limits#handling-429", "Wait for Retry-After."],
  ["Error codes", "rate_limited", "docs/reference/errors#rate_limited", "A rate limit is exhausted."],
  ["Pagination", "", "docs/pagination", "Pages of pets; limit sets the size."],
];

const index = new SearchIndex(ENTRIES);
const urls = (query: string, searched = index) => searched.search(query).matches.map(({ entry }) => entry[2]);

test("every word has to occur, in any order and case", () => {
  expect(urls("429 WAIT")).toEqual(["docs/rate-limits#handling-429"]);
});

test("if no section has every word, those with the most words are found", () => {
  expect(urls("429 nothing")).toEqual(["docs/rate-limits#handling-429"]);
  expect(urls("nothing whatsoever")).toEqual([]);
});

test("words that every question has do not count", () => {
  expect(urls("How do I handle a 429?")).toEqual(["docs/rate-limits#handling-429"]);
  expect(urls("what is a pagination")).toEqual(["docs/pagination"]);
});

test("of a query that is too long, ten different words count", () => {
  expect(urls(`${"429 ".repeat(11)}wait`)).toEqual(["docs/rate-limits#handling-429"]);
  const others = Array.from({ length: 10 }, (_, i) => `other${i}`);
  expect(urls([...others, "429"].join(" "))).toEqual([]);
  expect(urls([...others.slice(1), "429"].join(" "))).toEqual(["docs/rate-limits#handling-429"]);
});

test("a short word is found at the beginning of words only", () => {
  expect(urls("429 ai")).toEqual(["docs/rate-limits#handling-429"]);
  expect(urls("ai")).toEqual([]);
  expect(urls("wa")).toEqual(["docs/rate-limits#handling-429"]);
  expect(urls("ait")).toEqual(["docs/rate-limits#handling-429"]);
});

test("a word is found in its other forms", () => {
  for (const form of ["ban", "bans", "banned", "banning"])
    expect(urls(form)).toEqual(["docs/rate-limits", "docs/rate-limits#handling-429"]);
});

test("a query without words finds nothing, and at most ten results are given", () => {
  expect(urls(" .?! ")).toEqual([]);
  const many = Array.from({ length: 50 }, (_, i): SearchEntry => ["Pet", `Pet ${i}`, `docs#${i}`, ""]);
  expect(new SearchIndex(many).search("pet").matches).toHaveLength(10);
});

test("a word comes before the words that begin with it or contain it", () => {
  const entries: readonly SearchEntry[] = [
    ["Headers", "", "docs/headers", ""],
    ["Overview", "", "docs/overview", "HEAD works too."],
  ];
  expect(urls("head", new SearchIndex(entries))).toEqual(["docs/overview", "docs/headers"]);
});

test("an entry with less than a tenth of the best score is not shown", () => {
  const entries: readonly SearchEntry[] = [
    ["HEAD", "", "docs/head", ""],
    ["Overview", "", "docs/overview", "Headers are listed."],
  ];
  expect(urls("head", new SearchIndex(entries))).toEqual(["docs/head"]);
  expect(urls("headers", new SearchIndex(entries))).toEqual(["docs/overview"]);
});

test("words up to three words apart come before words further apart, in either order", () => {
  const entries: readonly SearchEntry[] = [
    ["Alpha", "", "docs/four", "one two three beta"],
    ["Alpha", "", "docs/three", "one two beta"],
  ];
  for (const query of ["alpha beta", "beta alpha"])
    expect(urls(query, new SearchIndex(entries))).toEqual(["docs/three", "docs/four"]);
});

test("a mistyped name is corrected, and the result says so", () => {
  expect(urls("pagintaion")).toEqual(["docs/pagination"]);
  // One letter may be missing, added, wrong or swapped with the next.
  for (const typed of ["paginaton", "paginnation", "paginatiom", "pagintaion"])
    expect(index.search(typed).corrections).toEqual(["pagination"]);
  expect(index.search("limtis").corrections).toEqual(["limits"]);
  // Two letters in a long word, for which the closest of similar words is meant.
  for (const meant of ["authorisation", "authorization"])
    for (const typed of [meant.replace("ri", "ir"), meant.replace("h", "x").replace("tion", "txon")])
      expect(index.search(typed).corrections).toEqual([meant]);
});

test("a word that may be meant is not corrected", () => {
  // Another first letter, too many letters for its length, words of a text, and some that are too short.
  for (const typed of [
    "bagination",
    "paginatomi",
    "autxorixatixn",
    "adder",
    "exhaustde",
    "limts",
    "rate",
    "ratt",
    "ban",
  ])
    expect(index.search(typed).corrections).toEqual([]);
});

test("a result shows the text from up to 30 characters before the first word that was found, with each marked", () => {
  const [near, far] = [`${"a ".repeat(15)}limits, rates`, `some ${"a ".repeat(15)}limits, rates`];
  const terms = ["rates", "limit"];
  expect(excerptOf(near, terms)).toBe(near);
  expect(excerptOf(`x${near}`, terms)).toBe(`… ${"a ".repeat(14)}limits, rates`);
  expect(excerptOf(far, terms)).toBe(`… ${"a ".repeat(14)}limits, rates`);
  expect(excerptOf(far, ["nothing"])).toBe(far);
  expect(markedParts("Limits of a rate", terms)).toEqual(["", "Limit", "s of a ", "rate", ""]);
  expect(markedParts("Limits", [])).toEqual(["Limits"]);
});
