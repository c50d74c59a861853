import type { SearchEntry } from "../search-index.ts";

const MAX_RESULTS = 10;

/** The entries that have every word of the query, best first: titles before texts, beginnings before the middle. */
export function bestMatches(entries: readonly SearchEntry[], query: string): readonly SearchEntry[] {
  const words = wordsOf(query);
  if (words.length === 0) return [];
  const scored = entries.map((entry, index) => ({ entry, index, score: scoreOf(entry, words) }));
  return scored
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, MAX_RESULTS)
    .map(({ entry }) => entry);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** 0 if a word is missing. */
function scoreOf([page, section, , text]: SearchEntry, words: readonly string[]): number {
  const title = section === "" ? page : section;
  let score = 0;
  for (const word of words) {
    const points = Math.max(scoreIn(title, word, 20), scoreIn(page, word, 8), scoreIn(text, word, 3));
    if (points === 0) return 0;
    score += points;
  }
  return score;
}

const MAX_COUNTED = 5;

/** A whole word counts more than the beginning of one, and that more than its middle. Repetition counts a little. */
function scoreIn(text: string, word: string, points: number): number {
  if (!text.toLowerCase().includes(word)) return 0;
  const all = wordsOf(text);
  if (all.length === 1 && all[0] === word) return points * 3;
  const count = Math.min(all.filter((each) => each === word).length, MAX_COUNTED);
  if (count > 0) return points * 2 + count - 1;
  return all.some((each) => each.startsWith(word)) ? points * 1.5 : points;
}
