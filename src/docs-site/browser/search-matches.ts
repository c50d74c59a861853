import type { SearchEntry } from "../page-data.ts";

export interface Match {
  readonly entry: SearchEntry;
  /** What the entry has of the query, in lower case: its words, or those that they stand for. */
  readonly terms: readonly string[];
}

export interface SearchResult {
  readonly matches: readonly Match[];
  /** What was searched for instead of words that no entry has. */
  readonly corrections: readonly string[];
}

const MAX_RESULTS = 10;
/** An entry with less of the best score is not shown. */
const MIN_SHARE = 0.1;
/** A page that somebody pastes is no query: further words are ignored. */
const MAX_WORDS = 10;

/** Words that are in every question and in no answer. */
const STOP_WORDS = new Set(
  "a an and are at be by can do does for from how i if in is it me my of on or that the this to what when where with you your".split(
    " ",
  ),
);

function queryWords(query: string): readonly string[] {
  const words = [...new Set(wordsOf(query))];
  const significant = words.filter((word) => !STOP_WORDS.has(word));
  return (significant.length === 0 ? words : significant).slice(0, MAX_WORDS);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];
}

/** The word without its ending: "delete" finds "deleting", "retries" finds "retry", "ban" finds "bans" and "banned". */
function stemOf(word: string): string {
  const single = word.replace(/(?<=\p{L}{2})([bgmnprt])\1(?:ed|ing)$/u, "$1");
  if (single !== word) return single;
  return word.replace(/(?<=\p{L}{4})(?:ies|ing|ed|es|[ey])$|(?<=\p{L}{2})s$/u, "");
}

/** A word of the documentation, and the words that people search for instead. */
const SYNONYMS: readonly (readonly [other: string, word: string])[] = Object.entries({
  abortsignal: "abort abortcontroller",
  authentication: "auth authorise authorize authorisation authorization credential login oauth token",
  bans: "block blocked blacklist suspended unban",
  changelog: "news release releases whatsnew",
  compatibility: "breaking version versions versioning",
  conditional: "cache cached caching concurrent concurrently overwrite overwritten people simultaneous stale",
  deprecation: "obsolete removal sunset",
  econnreset: "dropped econnrefused epipe etimedout hangup network offline refused",
  environments: "environment host mode sandbox test testing",
  errors: "exception exceptions failure failures problem",
  generated: "codegen generator insomnia openapi postman spec swagger",
  gzip: "brotli compress compressed compression deflate encoding",
  healthz: "health uptime",
  idempotency: "dedupe duplicate duplicates twice",
  identifiers: "bulk multiple several",
  integers: "big bigint large long overflow precision rounding",
  limits: "max maximum size",
  library: "install npm package sdk",
  order: "buy checkout purchase",
  pagination: "all every iterate offset paging paginate scroll",
  place: "create",
  plans: "billing cost price pricing subscription tier upgrade",
  quickstart: "begin beginner hello start started tutorial",
  rate: "quota quotas throttle throttled throttling",
  read_only_key: "permission permissions readonly role scope",
  unicode: "characters emoji",
  updating: "edit modify put rename",
  utc: "timestamp timezone",
  webhooks: "callback notification notifications push stream streaming subscribe websocket",
}).flatMap(([word, others]) => others.split(" ").map((other) => [other, word] as const));

/** The word of the documentation by the stem of what people search for. */
const WORD_OF: ReadonlyMap<string, string> = new Map(SYNONYMS.map(([other, word]) => [stemOf(other), word]));

interface Term {
  readonly text: string;
  readonly stem: string;
  /** Less than 1 for a word that the query does not have. */
  readonly weight: number;
}

interface Alternatives {
  readonly terms: readonly Term[];
  /** The word that is searched for instead. */
  readonly correction?: string;
}

function termOf(text: string, weight: number): Term {
  return { text, stem: stemOf(text), weight };
}

/** The points of a word in each part of an entry. */
const POINTS = { title: 20, operation: 15, text: 3, page: 2 } as const;
/** Repetition counts a little. */
const MAX_COUNTED = 3;
/** The factor for a word that is the whole title. */
const WHOLE = 1.5;
/** The factor for another form of the word. */
const SAME_STEM = 0.9;
/** The factors for a word that begins with the one of the query, or contains it. */
const BEGINNING = 0.5;
const MIDDLE = 0.3;
/** Shorter words are in the middle of too many others. */
const MIN_MIDDLE = 3;
/** The factor for both if an entry has the word itself. */
const BESIDES_WORD = 0.1;

/** A part of an entry: the points of a word in it, and its words with their stems. */
interface Part {
  readonly points: number;
  readonly words: readonly string[];
  readonly stems: readonly string[];
}

function partOf(text: string, points: number): Part {
  const words = wordsOf(text);
  return { points, words, stems: words.map(stemOf) };
}

interface Section {
  readonly entry: SearchEntry;
  readonly parts: readonly Part[];
  /** The stems in the order of the text, without the words that every text has. */
  readonly sequence: readonly string[];
}

function sectionOf(entry: SearchEntry): Section {
  const [page, section, , text, operation = ""] = entry;
  const title = section === "" ? page : section;
  const parts = [
    partOf(title, POINTS.title),
    // createPet is found by both of its words.
    partOf(`${operation} ${operation.replace(/\p{Lu}/gu, " $&")}`, POINTS.operation),
    partOf(page, POINTS.page),
    // So is key_banned, but other sections may say more about one of them.
    partOf(`${title.replaceAll("_", " ")} ${text}`, POINTS.text),
  ];
  const words = wordsOf(`${title} ${text}`).filter((word) => !STOP_WORDS.has(word));
  return { entry, parts, sequence: words.map(stemOf) };
}

/** Finds sections of the documentation. */
export class SearchIndex {
  readonly #sections: readonly Section[];
  /** The words that name something, for which a mistyped word may stand. */
  readonly #names: ReadonlySet<string>;
  /** The number of sections that have a word, by its stem. */
  readonly #counts: ReadonlyMap<string, number>;

  constructor(entries: readonly SearchEntry[]) {
    this.#sections = entries.map(sectionOf);
    const names = this.#sections.flatMap(({ parts }) =>
      parts.filter(({ points }) => points > POINTS.text).flatMap(({ words }) => words),
    );
    this.#names = new Set([...names, ...SYNONYMS.map(([other]) => other)]);
    const stems = this.#sections.flatMap(({ parts }) => [...new Set(parts.flatMap((part) => part.stems))]);
    this.#counts = new Map(
      Map.groupBy(stems, (stem) => stem)
        .entries()
        .map(([stem, { length }]) => [stem, length]),
    );
  }

  /**
   * The entries that match the query. Best first: the operation that the query names, then more words before fewer,
   * rare words before common ones, titles before texts, words before beginnings of words, words close to each other
   * before words apart.
   */
  search(query: string): SearchResult {
    const words = queryWords(query).map((word) => this.#alternativesOf(word));
    const name = query.trim().toLowerCase();
    const scored = this.#sections.map((section, index) => ({
      entry: section.entry,
      index,
      isNamed: isOperation(section.entry, name),
      ...this.#scoreOf(section, words),
    }));
    const best = Math.max(...scored.map(({ score }) => score));
    return {
      matches: scored
        .filter(({ score, isNamed }) => (score > 0 && score >= best * MIN_SHARE) || isNamed)
        .toSorted((a, b) => Number(b.isNamed) - Number(a.isNamed) || b.score - a.score || a.index - b.index)
        .slice(0, MAX_RESULTS),
      corrections: words.flatMap(({ correction = [] }) => correction),
    };
  }

  /** The word and what the documentation calls it, or else a name that is written almost so. */
  #alternativesOf(word: string): Alternatives {
    const synonym = WORD_OF.get(stemOf(word));
    const terms = [termOf(word, 1), ...(synonym === undefined ? [] : [termOf(synonym, 0.9)])];
    if (this.#sections.some((section) => terms.some((term) => this.#pointsOf(section, term) > 0)))
      return { terms };
    const meant = similarWord(word, this.#names);
    if (meant === undefined) return { terms };
    return { terms: [termOf(WORD_OF.get(stemOf(meant)) ?? meant, 0.8)], correction: meant };
  }

  #scoreOf(section: Section, words: readonly Alternatives[]) {
    const best = words.flatMap(({ terms }) => {
      const scored = terms.map((term) => ({ term, points: this.#pointsOf(section, term) }));
      const [first] = scored.toSorted((a, b) => b.points - a.points);
      return first !== undefined && first.points > 0 ? [first] : [];
    });
    const close = best.filter(({ term }, i) => areClose(section.sequence, best[i - 1]?.term.stem, term.stem));
    return {
      terms: best.map(({ term }) => term.text),
      score: best.length ** 2 * best.reduce((sum, { points }) => sum + points, close.length * CLOSE_POINTS),
    };
  }

  #pointsOf({ parts }: Section, { text, stem, weight }: Term): number {
    const count = this.#counts.get(stem);
    const rarity = Math.log(1 + this.#sections.length / (count ?? 1));
    const share = count === undefined ? 1 : BESIDES_WORD;
    const points = parts.map(({ points, words, stems }) => {
      const exact = words.filter((word) => word === text).length;
      if (exact > 0) return points * (words.length === 1 ? WHOLE : 1) + Math.min(exact, MAX_COUNTED) / 10;
      const forms = stems.filter((each) => each === stem).length;
      if (forms > 0) return points * SAME_STEM + Math.min(forms, MAX_COUNTED) / 20;
      if (words.some((word) => word.startsWith(stem))) return points * BEGINNING * share;
      const isInMiddle = stem.length >= MIN_MIDDLE && words.some((word) => word.includes(stem));
      return isInMiddle ? points * MIDDLE * share : 0;
    });
    return weight * rarity ** 2 * Math.max(...points);
  }
}

const CLOSE_POINTS = 60;
const MAX_DISTANCE = 3;

/** Whether one word follows the other closely, in either order. */
function areClose(sequence: readonly string[], first: string | undefined, second: string): boolean {
  return sequence.some((stem, i) => {
    if (stem !== first) return false;
    return sequence.slice(Math.max(0, i - MAX_DISTANCE), i + MAX_DISTANCE + 1).includes(second);
  });
}

/** Whether the query is the name of the entry's operation: its id, its path or a request. */
function isOperation([, , , , operation]: SearchEntry, name: string): boolean {
  if (operation === undefined) return false;
  const [method = "", path = "", id = ""] = operation.toLowerCase().split(" ");
  const pattern = path.replace(/\{\w+\}/, "[^/]+");
  return name === id || new RegExp(`^(?:${method} +)?(?:\\S*/v1)?${pattern}(?:\\?\\S*)?$`).test(name);
}

/** Shorter words differ by one letter from too many others. */
const MIN_MISTYPED = 6;
const MIN_TWICE_MISTYPED = 12;

/**
 * The word that somebody may have meant who typed this one: both begin with the same letter, and one letter is missing,
 * added, wrong or swapped with the next; two letters in a long word.
 */
function similarWord(typed: string, words: Iterable<string>): string | undefined {
  if (typed.length < MIN_MISTYPED) return undefined;
  const most = typed.length < MIN_TWICE_MISTYPED ? 1 : 2;
  const [closest] = Array.from(words, (word) => ({ word, mistakes: mistakesIn(typed, word, most) }))
    .filter(({ word, mistakes }) => mistakes <= most && word[0] === typed[0])
    .toSorted((a, b) => a.mistakes - b.mistakes);
  return closest?.word;
}

/** The number of mistakes with which `typed` was written instead of `word`, or more than `most`. */
function mistakesIn(typed: string, word: string, most: number): number {
  let start = 0;
  while (start < typed.length && typed[start] === word[start]) start++;
  const [a, b] = [typed.slice(start), word.slice(start)];
  if (a === b || most === 0) return a === b ? 0 : 1;
  const isSwapped = a.length > 1 && a[0] === b[1] && a[1] === b[0];
  const rest = [
    mistakesIn(a.slice(1), b, most - 1),
    mistakesIn(a, b.slice(1), most - 1),
    mistakesIn(a.slice(1), b.slice(1), most - 1),
    ...(isSwapped ? [mistakesIn(a.slice(2), b.slice(2), most - 1)] : []),
  ];
  return 1 + Math.min(...rest);
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
