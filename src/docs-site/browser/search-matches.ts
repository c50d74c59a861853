import type { SearchEntry } from "../page-data.ts";

export interface Match {
  readonly entry: SearchEntry;
  /** What the entry has of the query, in lower case: its words, or those that they stand for. */
  readonly terms: readonly string[];
}

const MAX_RESULTS = 10;
/** A page that somebody pastes is no query: further words are ignored. */
const MAX_WORDS = 10;

/**
 * The entries that have every word of the query, or, if there are none, those that have the most of them. Best first:
 * the operation that the query names, then titles before texts, beginnings before the middle. A word that no entry has
 * stands for the words that differ from it in a letter or two.
 */
export function bestMatches(entries: readonly SearchEntry[], query: string): readonly Match[] {
  const words = queryWords(query).map((word) => alternativesOf(word, entries));
  const name = query.trim().toLowerCase();
  const scored = entries.map((entry, index) => ({ entry, index, ...scoreOf(entry, words, name) }));
  const most = scored.reduce((maximum, { terms }) => Math.max(maximum, terms.length), 0);
  if (most === 0) return [];
  return scored
    .filter(({ terms, isNamed }) => terms.length === most || isNamed)
    .toSorted((a, b) => Number(b.isNamed) - Number(a.isNamed) || b.score - a.score || a.index - b.index)
    .slice(0, MAX_RESULTS);
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

/** A word of the documentation, and the words that people search for instead. */
const SYNONYMS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    authentication: "auth authorise authorize authorisation authorization credential login oauth token",
    bans: "block blocked blacklist suspended",
    changelog: "news release releases whatsnew",
    conditional: "cache cached caching stale",
    deprecation: "breaking compatibility obsolete sunset version versions versioning",
    environments: "environment host sandbox testing",
    errors: "exception exceptions failure failures problem",
    generated: "codegen generator postman spec swagger",
    idempotency: "dedupe duplicate duplicates twice",
    integers: "bigint long overflow precision rounding",
    library: "install npm package sdk",
    order: "buy checkout purchase",
    pagination: "iterate offset paging paginate scroll",
    quickstart: "begin beginner hello start started tutorial",
    rate: "quota quotas throttle throttled throttling",
  }).flatMap(([word, others]) => others.split(" ").map((other) => [other, word])),
);

interface Term {
  readonly text: string;
  /** Less than 1 for a word that the query does not have. */
  readonly weight: number;
}

/** The word, what the documentation calls it, or else words that are written almost so. */
function alternativesOf(word: string, entries: readonly SearchEntry[]): readonly Term[] {
  const synonym = SYNONYMS.get(word) ?? SYNONYMS.get(stemOf(word));
  const known = [
    { text: word, weight: 1 },
    ...(synonym === undefined ? [] : [{ text: synonym, weight: 0.9 }]),
  ];
  if (word.length < MIN_MISTYPED || entries.some((entry) => known.some((term) => pointsOf(entry, term) > 0)))
    return known;
  const vocabulary = new Set([...SYNONYMS.keys(), ...entries.flatMap((entry) => wordsOf(entry.join(" ")))]);
  for (const letters of word.length < MIN_TWICE_MISTYPED ? [1] : [1, 2]) {
    const close = similarWords(word, [...vocabulary], letters);
    if (close.length > 0) return close.map((text) => ({ text: SYNONYMS.get(text) ?? text, weight: 0.8 }));
  }
  return known;
}

const MIN_MISTYPED = 4;
const MIN_TWICE_MISTYPED = 7;

/** The words that are the same as the typed one without so many letters: some were added, left out or replaced. */
function similarWords(typed: string, words: readonly string[], letters: number): readonly string[] {
  const shortened = new Set(without(letters, typed));
  return words.filter(
    (word) =>
      Math.abs(typed.length - word.length) <= letters &&
      without(letters, word).some((each) => shortened.has(each)),
  );
}

/** The word without at most so many of its letters, in every way. */
function without(letters: number, word: string): string[] {
  if (letters === 0) return [word];
  const shorter = Array.from(word, (_, i) => word.slice(0, i) + word.slice(i + 1));
  return [word, ...shorter.flatMap((each) => without(letters - 1, each))];
}

function scoreOf(entry: SearchEntry, words: readonly (readonly Term[])[], name: string) {
  const best = words.flatMap((terms) => {
    const scored = terms.map((term) => ({ text: term.text, points: pointsOf(entry, term) }));
    const [first] = scored.toSorted((a, b) => b.points - a.points);
    return first !== undefined && first.points > 0 ? [first] : [];
  });
  return {
    terms: best.map(({ text }) => text),
    score: best.reduce((sum, { points }) => sum + points, 0),
    isNamed: isOperation(entry, name),
  };
}

/** Whether the query is the name of the entry's operation: its id, its path or a request. */
function isOperation([, , , , operation]: SearchEntry, name: string): boolean {
  if (operation === undefined) return false;
  const [method = "", path = "", id = ""] = operation.toLowerCase().split(" ");
  const pattern = path.replace(/\{\w+\}/, "[^/]+");
  return name === id || new RegExp(`^(?:${method} +)?(?:\\S*/v1)?${pattern}(?:\\?\\S*)?$`).test(name);
}

function pointsOf([page, section, , text, operation = ""]: SearchEntry, term: Term): number {
  const title = section === "" ? page : section;
  const points = [scoreIn(title, term.text, 20), scoreIn(page, term.text, 8), scoreIn(text, term.text, 3)];
  return term.weight * Math.max(...points, scoreIn(operation, term.text, 10));
}

const MAX_COUNTED = 5;
/** Shorter words are in the middle of too many others. */
const MIN_MIDDLE = 3;

/**
 * A whole word counts more than the beginning of one, that more than its middle, and that more than another form of the
 * word. Repetition counts a little.
 */
function scoreIn(text: string, word: string, points: number): number {
  if (!text.toLowerCase().includes(stemOf(word))) return 0;
  const all = wordsOf(text);
  const count = all.filter((each) => each === word).length;
  if (count > 0) return points * (all.length === 1 ? 3 : 2) + Math.min(count, MAX_COUNTED) - 1;
  if (all.some((each) => each.startsWith(word))) return points * 1.5;
  if (word.length >= MIN_MIDDLE && all.some((each) => each.includes(word))) return points;
  return all.some((each) => each.startsWith(stemOf(word))) ? points * 0.75 : 0;
}

/** The word without its ending, so that "delete" finds "deleting" and "retries" finds "retry". */
function stemOf(word: string): string {
  return word.replace(/(?<=\p{L}{4})(?:ies|ing|ed|es|[esy])$/u, "");
}

/** The text in parts; every second one is a term, or begins as one does. */
export function markedParts(text: string, terms: readonly string[]): readonly string[] {
  const stems = terms.map(stemOf);
  return stems.length === 0 ? [text] : text.split(new RegExp(`(${stems.join("|")})`, "iu"));
}

const LEAD = 30;

/** The text from a little before the first term. */
export function excerptOf(text: string, terms: readonly string[]): string {
  const [before = ""] = markedParts(text, terms);
  if (before === text || before.length <= LEAD) return text;
  return `… ${before.slice(-LEAD).replace(/^\S*\s/, "")}${text.slice(before.length)}`;
}
