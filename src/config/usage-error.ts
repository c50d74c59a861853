/** A wrong command line or variable, as a return value: one line that names it, what it is and what it must be. */
export class UsageError {
  constructor(readonly message: string) {}
}

const MAX_QUOTED = 60;
const API_KEY = /pet_(live|test|admin)_[\w-]+/g;
/** Up to the last @, because a password that is not encoded can contain anything. */
const URL_WITH_USER = /([a-z][a-z\d+.-]*:\/\/)[^]*@/gi;
const PASSWORD_PARAMETER = /([?&](?:\w*password|\w*secret|sslkey)=)[^&\s]*/gi;
/** Control characters, text direction marks, lone surrogates and line separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Masks API keys, and users and passwords in URLs. */
export function withoutSecrets(text: string): string {
  return text.replace(API_KEY, "pet_$1_…").replace(URL_WITH_USER, "$1…@").replace(PASSWORD_PARAMETER, "$1…");
}

/** User input on one terminal line, without secrets that were typed in the wrong place. */
export function quoted(text: string): string {
  const characters = [...withoutSecrets(text)];
  const short = characters.length > MAX_QUOTED ? [...characters.slice(0, MAX_QUOTED), "…"] : characters;
  return `"${printable(short.join(""))}"`;
}

/** As `quoted`, in full length. */
export function quotedPath(path: string): string {
  return `"${printable(withoutSecrets(path))}"`;
}

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}

/** `a, b or c`. */
export function joined(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;
}
