import { maskSecretsAndPasswords } from "../domain/masks.ts";
import { systemErrorField, systemErrorReason } from "../runtime/system-error.ts";
import { printable } from "../text/formatting.ts";

const BUGS: ReadonlySet<string> = new Set(["TypeError", "RangeError", "ReferenceError", "SyntaxError"]);

export function isBug(error: unknown): boolean {
  return error instanceof Error && BUGS.has(error.name);
}

/** A chain of causes can be a cycle. */
const MAX_CAUSES = 5;

/** Anything thrown, as one line without a stack and without secrets. */
export function errorMessage(error: unknown, maxCauses = MAX_CAUSES): string {
  if (!(error instanceof Error)) return onOneLine(String(error));
  const reason = systemErrorReason(error);
  const path = systemErrorField(error, "path");
  if (reason !== undefined) return onOneLine(path === undefined ? reason : `${path}: ${reason}`);
  const line = onOneLine(error.message.split("\n")[0] ?? "");
  if (isBug(error)) return `this is a bug in petstore: ${line}`;
  const cause = error.cause === undefined || maxCauses === 0 ? "" : errorMessage(error.cause, maxCauses - 1);
  return line.includes(cause) ? line : `${line}: ${cause}`;
}

function onOneLine(text: string): string {
  return printable(maskSecretsAndPasswords(text));
}
