import type { SearchEntry } from "../page-data.ts";

const MAX_RESULTS = 10;
/** A page that somebody pastes is no query: further words are ignored. */
const MAX_WORDS = 10;

/**
 * The entries that have every word of the query, or, if there are none, those that have the most of them. Best first:
 * titles before texts, beginnings before the middle.
 */
export function bestMatches(entries: readonly SearchEntry[], query: string): readonly SearchEntry[] {
  const words = queryWords(query);
  const scored = entries.map((entry, index) => ({ entry, index, ...scoreOf(entry, words) }));
  const most = scored.reduce((maximum, { found }) => Math.max(maximum, found), 0);
  if (most === 0) return [];
  return scored
    .filter(({ found }) => found === most)
    .toSorted((a, b) => b.score - a.score || a.index - b.index)
    .slice(0, MAX_RESULTS)
    .map(({ entry }) => entry);
}

/** Words that are in every question and in no answer. */
const STOP_WORDS = new Set(
  "a an and are can do does for how i in is it my of or the to what when where with".split(" "),
);

function queryWords(query: string): readonly string[] {
  const words = [...new Set(wordsOf(query))];
  const significant = words.filter((word) => !STOP_WORDS.has(word));
  return (significant.length === 0 ? words : significant).slice(0, MAX_WORDS);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
}

interface Score {
  /** How many words the entry has. */
  readonly found: number;
  readonly score: number;
}

function scoreOf([page, section, , text]: SearchEntry, words: readonly string[]): Score {
  const title = section === "" ? page : section;
  const points = words.map((word) =>
    Math.max(scoreIn(title, word, 20), scoreIn(page, word, 8), scoreIn(text, word, 3)),
  );
  return {
    found: points.filter((each) => each > 0).length,
    score: points.reduce((sum, each) => sum + each, 0),
  };
}

const MAX_COUNTED = 5;
/** Shorter words are in the middle of too many others. */
const MIN_MIDDLE = 3;

/**
 * A whole word counts more than the beginning of one, that more than its middle, and that more than another form of the
 * word. Repetition counts a little.
 */
function scoreIn(text: string, word: string, points: number): number {
  const stem = stemOf(word);
  const lowerCase = text.toLowerCase();
  if (!lowerCase.includes(stem)) return 0;
  const all = wordsOf(lowerCase);
  if (!lowerCase.includes(word)) return all.some((each) => each.startsWith(stem)) ? points * 0.75 : 0;
  if (all.length === 1 && all[0] === word) return points * 3;
  const count = Math.min(all.filter((each) => each === word).length, MAX_COUNTED);
  if (count > 0) return points * 2 + count - 1;
  if (all.some((each) => each.startsWith(word))) return points * 1.5;
  return word.length < MIN_MIDDLE ? 0 : points;
}

/** Without its ending, so that "delete" finds "deleting" and "retries" finds "retry". */
function stemOf(word: string): string {
  return word.replace(/(?<=\p{L}{4})(?:ies|ing|ed|es|[esy])$/u, "");
}
