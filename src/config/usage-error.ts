import { systemErrorField } from "../runtime/system-error.ts";
import { readFileSync } from "node:fs";
import { printable } from "../text/formatting.ts";

/**
 * A wrong command line or variable. The message is one line with the name, the value and what is expected. The exit
 * status is 2.
 */
export class UsageError extends Error {}

const MAX_QUOTED = 60;
const API_KEY = /pet_(live|test|admin|code|session)_[\w.-]+/g;
/** Matches up to the last @, because a password that is not encoded can contain anything. */
const URL_WITH_USER = /([a-z][a-z\d+.-]*:\/\/)[^]*@/gi;
const PASSWORD_PARAMETER = /([?&](?:\w*password|\w*secret|\w*token|code|sslkey)=)[^&\s]*/gi;

/** Masks API keys, and users and passwords in URLs. */
export function withoutSecrets(text: string): string {
  return text.replace(API_KEY, "pet_$1_…").replace(URL_WITH_USER, "$1…@").replace(PASSWORD_PARAMETER, "$1…");
}

/** Matches a scheme and what comes before the last @, because a password that is not encoded can contain anything. */
const USER = /^\s*([a-z][a-z\d+.-]*:\/*)?[^]*@/i;

/** Masks what an address may keep secret, whether or not it is a valid URL: its user, query and fragment. */
export function withoutUrlSecrets(text: string): string {
  return text.replace(USER, "$1…@").replace(/[?#][^]*/, "…");
}

/** Formats user input for one line of a terminal, without secrets that were typed in the wrong place. */
export function quoted(text: string): string {
  const characters = [...withoutSecrets(text)];
  const short = characters.length > MAX_QUOTED ? [...characters.slice(0, MAX_QUOTED), "…"] : characters;
  return `"${printable(short.join(""))}"`;
}

/** Formats a path like `quoted`, but in full length. */
export function quotedPath(path: string): string {
  return `"${printable(withoutSecrets(path))}"`;
}

/** Joins items, such as `a, b or c`. */
export function alternatives(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;
}

/** The candidate with the smallest edit distance, if it is small enough to be a typing error. */
export function nearest(typed: string, candidates: readonly string[]): string | undefined {
  const maxDistance = Math.max(1, Math.floor(typed.length / 3));
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(typed, candidate);
    if (distance <= maxDistance && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/**
 * The Damerau-Levenshtein distance (optimal string alignment). The small packages count a swap of neighbours as two
 * edits, which makes `--prot` too far from `--port`.
 */
function editDistance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    rows.push(current);
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const edits = [
        at(row - 1, column),
        at(row, column - 1),
        ...(isSwapped ? [at(row - 2, column - 2)] : []),
      ];
      current.push(Math.min(at(row - 1, column - 1) + (isSame ? 0 : 1), Math.min(...edits) + 1));
    }
  }
  return at(from.length, to.length);
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "the file does not exist",
  ENOTDIR: "the file does not exist",
  EACCES: "permission denied",
  EISDIR: "it is a directory",
};

/** Reads a file that an option names. `name` is the flag or the variable. */
export function readTextFile(name: string, path: string): string {
  try {
    return readFileSync(path, "utf8").replace(/^\uFEFF/, "");
  } catch (error) {
    const reason = REASONS[systemErrorField(error, "code") ?? ""] ?? String(error);
    throw new UsageError(`${name} is ${quotedPath(path)}; it cannot be read: ${reason}`);
  }
}
