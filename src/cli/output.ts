import { printable } from "../config/usage-error.ts";
import { docsUrl } from "../petstore/documented-settings.ts";
import { curlCommand, shellWord } from "../api/curl.ts";
import { grouped } from "../api/formatting.ts";
import { toJson } from "../api/json.ts";
import type { Limits } from "../domain/rate-limit.ts";

const GAP = "  ";

/** Rows with aligned columns, by the width that a terminal shows. Numbers are aligned at their last digit. */
export function columns(
  rows: readonly (readonly string[])[],
  { numbers = [] }: { readonly numbers?: readonly number[] } = {},
): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, Bun.stringWidth(cell));
    }
  }
  const padded = (cell: string, column: number) => {
    const space = " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell));
    return numbers.includes(column) ? space + cell : cell + space;
  };
  return rows.map((row) => `${row.map(padded).join(GAP).trimEnd()}\n`).join("");
}

/** A column of a table: its header, and the cell of an item. */
export type TableColumn<T> = readonly [header: string, cell: (item: T) => string];

export function table<T>(shown: readonly TableColumn<T>[], items: readonly T[]): string {
  const header = shown.map(([title]) => title);
  return columns([header, ...items.map((item) => shown.map(([, cell]) => cell(item)))]);
}

/** For a cell of a table: a name can be longer than a terminal is wide. */
export function shortened(text: string, maxLength: number): string {
  const characters = [...printable(text)];
  return characters.length <= maxLength
    ? characters.join("")
    : `${characters.slice(0, maxLength - 1).join("")}…`;
}

/** `2026-11-15T09:30:00Z`. */
export function toSecond(time: string | null): string {
  return time === null ? "-" : time.replace(/\.\d+/, "");
}

/** Integers are exact. */
export function json(value: unknown): string {
  return `${toJson(value, 2)}\n`;
}

export function formatLimits({ perMinute, perDay }: Limits): string {
  const requests = perMinute === 1 ? "request" : "requests";
  return `${grouped(perMinute)} ${requests} per minute, ${grouped(perDay)} per day`;
}

/** Follows a sentence about the new secret, which is on a line of its own here. */
export function formatSecret(secret: string, url: string | undefined): string {
  const trial =
    url === undefined
      ? "A server on --port 0 prints its URL when it starts."
      : waysToTry(url, curlLine(secret, url));
  return `
  ${secret}

This is the only time it is shown: Petstore stores only its hash. ${trial}
`;
}

/** As formatSecret, for a secret in a file. */
export function formatSecretFile(path: string, url: string): string {
  const command = curlLine(`$(cat ${shellWord(path)})`, url);
  return `
  ${path}

Only the owner of this file can read it. Delete it when you have stored the key elsewhere. ${waysToTry(url, command)}
`;
}

function waysToTry(url: string, command: string): string {
  return `Try it in a browser or with curl:\n\n  ${docsUrl(url)}#try-it\n  ${command}`;
}

/** Lists pets. `key` is an API key, or what a shell expands to one. */
export function curlLine(key: string, url: string): string {
  return curlCommand({ url: `${url}/pets`, key, showsHeaders: true }, " ");
}
