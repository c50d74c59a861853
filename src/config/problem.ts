/** A wrong setting, as a value: one line that names the flag or variable, what was given and what it should be. */
export class Problem {
  constructor(readonly message: string) {}
}

const MAX_ECHO = 60;
const SECRET = /pet_(live|test)_\w+/g;
/** Control characters, lone surrogates, marks that turn the direction of text, and line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Outside text made fit for one line of a terminal; a key that was pasted by mistake is not repeated. */
export function quoted(text: string): string {
  const characters = [...text.replace(SECRET, "pet_$1_…")];
  const short = characters.length > MAX_ECHO ? [...characters.slice(0, MAX_ECHO), "…"] : characters;
  return `"${printable(short.join(""))}"`;
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

export function joined(words: readonly string[], by: "or" | "and" = "or"): string {
  if (words.length < 2) return words.join("");
  return `${words.slice(0, -1).join(", ")} ${by} ${words.at(-1)}`;
}
