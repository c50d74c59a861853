import { expect, test } from "bun:test";
import { SearchIndex } from "../../../src/docs-site/browser/search-matches.ts";
import type { SearchEntry } from "../../../src/docs-site/page-data.ts";

const ENTRIES: readonly SearchEntry[] = [
  ["Quickstart", "", "docs", "You need a key. A pet is added."],
  ["Rate limits and bans", "", "docs/rate-limits", "Every API key has two rate limits."],
  ["Rate limits and bans", "Handling 429", "docs/rate-limits#handling-429", "Wait for Retry-After."],
  ["Error codes", "rate_limited", "docs/reference/errors#rate_limited", "A rate limit is exhausted."],
  ["Pagination", "", "docs/pagination", "Pages of pets; limit sets the size."],
];

const index = new SearchIndex(ENTRIES);
const urls = (query: string) => index.search(query).matches.map(({ entry }) => entry[2]);

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
  const found = new SearchIndex(entries).search("head").matches;
  expect(found.map(({ entry }) => entry[2])).toEqual(["docs/overview", "docs/headers"]);
});

test("a mistyped name is corrected, and the result says so", () => {
  expect(urls("pagintaion")).toEqual(["docs/pagination"]);
  // One letter may be missing, added, wrong or swapped with the next.
  for (const typed of ["paginaton", "paginnation", "paginatiom", "pagintaion"])
    expect(index.search(typed).corrections).toEqual(["pagination"]);
});

test("a word that may be meant is not corrected", () => {
  // Another first letter, too many letters for its length, a word of a text, and one that is too short.
  for (const typed of ["bagination", "paginatomi", "adder", "rate", "ratt", "ban"])
    expect(index.search(typed).corrections).toEqual([]);
});
