/** A wrong command line or variable, as a return value: one line that names it, what it is and what it must be. */
export class UsageError {
  constructor(readonly message: string) {}
}

const MAX_QUOTED = 60;
const SECRET = /pet_(live|test)_\w+/g;
/** Control characters, text direction marks, lone surrogates and line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** User input on one terminal line. A secret that was pasted by mistake is masked. */
export function quoted(text: string): string {
  const characters = [...text.replace(SECRET, "pet_$1_…")];
  const short = characters.length > MAX_QUOTED ? [...characters.slice(0, MAX_QUOTED), "…"] : characters;
  return `"${printable(short.join(""))}"`;
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** `a, b or c`. */
export function joined(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;
}
