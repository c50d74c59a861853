import { maskSecretsAndPasswords } from "../domain/masks.ts";
import { printable } from "../text/formatting.ts";

const MAX_QUOTED = 60;

/** Formats user input for one line of a terminal, without secrets that were typed in the wrong place. */
export function quoted(text: string): string {
  const characters = [...maskSecretsAndPasswords(text)];
  const short = characters.length > MAX_QUOTED ? [...characters.slice(0, MAX_QUOTED), "…"] : characters;
  return `"${printable(short.join(""))}"`;
}

/** Formats a path like `quoted`, but in full length. */
export function quotedPath(path: string): string {
  return `"${printable(maskSecretsAndPasswords(path))}"`;
}
