import { styleText } from "node:util";
import { curlCommand, shellWord } from "../text/curl.ts";
import { shortDuration } from "../text/durations.ts";
import { grouped, printable, printableJson, printableLines } from "../text/formatting.ts";
import { toJson } from "../api/json.ts";
import type { Limits } from "../domain/rate-limit.ts";
import { docsUrl } from "../public/site-urls.ts";

export const COLOR_CHOICES = ["auto", "always", "never"] as const;

interface ScreenOptions {
  /** The width of the terminal; undefined if standard output is not one. */
  readonly columns: number | undefined;
  readonly hasColor: boolean;
  readonly now: () => number;
}

type Format = Parameters<typeof styleText>[0];

/** The group makes `split` keep the separators. */
// eslint-disable-next-line no-control-regex
const LINE_BREAK_OR_PAINTED = /(\n|\x1b\[\d+m[^\n\x1b]*\x1b\[\d+m)/;

/** Standard output: a terminal, which has a width and relative times, or what a program reads. */
export class Screen {
  /** What it has painted, which `printable` keeps: headers, and words such as `active`. */
  readonly #painted = new Set<string>();

  constructor(private readonly options: ScreenOptions) {}

  get columns(): number | undefined {
    return this.options.columns;
  }

  /** Whether only the user reads the output. */
  get isTerminal(): boolean {
    return this.columns !== undefined;
  }

  paint(format: Format, text: string): string {
    if (!this.options.hasColor) return text;
    const painted = styleText(format, text, { validateStream: false });
    this.#painted.add(painted);
    return painted;
  }

  /** A cell in a color. */
  coloredCell(format: Format, text: string): Cell {
    if (!this.options.hasColor) return text;
    return { text, paint: (shown) => this.paint(format, shown) };
  }

  /** Returns the text as it is printed: made printable for a terminal, and unchanged for a program. */
  output(text: string): string {
    return this.isTerminal ? this.printable(text) : text;
  }

  /** Escapes the characters that a terminal would interpret, except line breaks and what this screen has painted. */
  printable(text: string): string {
    const isOwn = (part: string) => part === "\n" || this.#painted.has(part);
    return text
      .split(LINE_BREAK_OR_PAINTED)
      .map((part) => (isOwn(part) ? part : printable(part)))
      .join("");
  }

  /** `3 d ago`, `in 5 min` or `2026-11-15T09:30:00.000Z`. */
  time(time: string): string {
    if (!this.isTerminal) return time;
    const ms = this.msUntil(time);
    return ms > 0 ? `in ${shortDuration(ms)}` : `${shortDuration(-ms)} ago`;
  }

  /** The time to the second, for a cell of a wide table. */
  shortTime(time: string | null): string {
    return time === null ? "-" : this.time(time).replace(/\.\d+Z$/, "Z");
  }

  /** Follows a verb: `3 d ago`, or `at 2026-11-15T09:30:00.000Z`. */
  at(time: string): string {
    return this.isTerminal ? this.time(time) : `at ${time}`;
  }

  /** `for another 5 min`, or `until 2026-11-15T09:30:00.000Z`. */
  until(time: string): string {
    return this.isTerminal ? `for another ${shortDuration(this.msUntil(time))}` : `until ${time}`;
  }

  msUntil(time: string): number {
    return Date.parse(time) - this.options.now();
  }
}

const GAP = "  ";

interface PaintedCell {
  readonly text: string;
  readonly paint: (text: string) => string;
}

export type Cell = string | PaintedCell;

interface ColumnOptions {
  /** The columns that are aligned at their last digit. */
  readonly numbers?: readonly number[];
  /** What the rows must fit: the first one is a header, long cells are shortened, and the last columns left out. */
  readonly screen?: Screen;
}

/** Rows with aligned columns, by the width that a terminal shows. Every cell is printable, no matter who wrote it. */
export function columns(rows: readonly (readonly Cell[])[], options: ColumnOptions = {}): string {
  return [...columnLines(rows, options)].join("");
}

/** The cells of a row, or their texts in one, which takes a quarter of the memory. No text has the separator. */
type Row = readonly Cell[] | string;
const CELL_SEPARATOR = "\0";

function compact(cells: readonly Cell[]): Row {
  return cells.every((cell) => typeof cell === "string") ? cells.map(textOf).join(CELL_SEPARATOR) : cells;
}

function cellsOf(row: Row): readonly Cell[] {
  return typeof row === "string" ? row.split(CELL_SEPARATOR) : row;
}

function* columnLines(rows: readonly Row[], { numbers = [], screen }: ColumnOptions): Generator<string> {
  const { widths, hidden } = fittedWidths(rows, screen?.columns);
  for (const [index, row] of rows.entries()) {
    const cells = cellsOf(row).flatMap((cell, column) => {
      const width = widths[column];
      if (width === undefined) return [];
      const whole = textOf(cell);
      const text = Bun.stringWidth(whole) > width ? shortened(whole, width) : whole;
      const shown = typeof cell === "string" ? text : cell.paint(text);
      const space = " ".repeat(width - Bun.stringWidth(text));
      return numbers.includes(column) ? space + shown : shown + space;
    });
    const line = cells.join(GAP).trimEnd();
    yield `${screen && index === 0 ? screen.paint("bold", line) : line}\n`;
  }
  if (hidden.length > 0)
    yield `The terminal is too narrow for ${hidden.join(", ")}; --json shows everything.\n`;
}

function textOf(cell: Cell): string {
  return printable(typeof cell === "string" ? cell : cell.text);
}

/** Shortens a text to a width: a name can be longer than a terminal is wide. */
export function shortened(text: string, width: number): string {
  const shown = printable(text);
  return Bun.stringWidth(shown) > width ? `${startOf(shown, width - 1)}…` : shown;
}

/** A slice ends after a wide character that begins within it. */
function startOf(text: string, width: number): string {
  const start = Bun.sliceAnsi(text, 0, width);
  return Bun.stringWidth(start) > width ? Bun.sliceAnsi(text, 0, width - 1) : start;
}

/** The least width of a shortened cell. */
const MIN_WIDTH = 12;

/** The width of each column; undefined for one that is left out: first those without a value, then the last ones. */
function fittedWidths(rows: readonly Row[], available = Infinity) {
  const widths: (number | undefined)[] = [];
  for (const row of rows) {
    for (const [column, cell] of cellsOf(row).entries())
      widths[column] = Math.max(widths[column] ?? 0, Bun.stringWidth(textOf(cell)));
  }
  const sumOf = (max: number) => {
    const shown = widths.filter((width) => width !== undefined);
    return shown.reduce((sum, width) => sum + Math.min(width, max) + GAP.length, -GAP.length);
  };
  const header = cellsOf(rows[0] ?? []);
  if (sumOf(Infinity) > available) {
    for (const column of header.keys())
      if (rows.every((row, index) => index === 0 || cellsOf(row)[column] === "-")) widths[column] = undefined;
  }
  const hidden: string[] = [];
  for (let column = header.length - 1; column > 0 && sumOf(MIN_WIDTH) > available; column--) {
    if (widths[column] !== undefined) hidden.unshift(textOf(header[column] ?? ""));
    widths[column] = undefined;
  }
  let max = Math.max(...widths.map((width) => width ?? 0));
  while (max > MIN_WIDTH && sumOf(max) > available) max--;
  return { widths: widths.map((width) => width && Math.min(width, max)), hidden };
}

/** Terms with their texts next to them, which are wrapped. */
export function definitions(rows: readonly (readonly [term: string, text: string])[], width: number): string {
  const indent = Math.max(...rows.map(([term]) => Bun.stringWidth(term))) + GAP.length;
  const wrapped = (text: string) =>
    Bun.wrapAnsi(printableLines(text), Math.max(MIN_WIDTH, width - indent)).replaceAll(
      "\n",
      `\n${" ".repeat(indent)}`,
    );
  return rows
    .map(([term, text]) => `${term}${" ".repeat(indent - Bun.stringWidth(term))}${wrapped(text)}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}

/** A column of a table: its header, and the cell of an item. */
export type TableColumn<T> = readonly [
  header: string,
  cell: (item: T, screen: Screen) => Cell,
  align?: "number",
];

export function table<T>(shown: readonly TableColumn<T>[], items: readonly T[], screen: Screen): string {
  const rows = new TableRows(shown, screen);
  rows.add(items);
  return [...rows.texts()].join("");
}

/** The lines of a table that are printed together. */
const LINES_AT_ONCE = 1_000;

/** A table whose items come in several pages. It keeps their cells, which take less memory. */
export class TableRows<T> {
  readonly #rows: Row[];

  constructor(
    private readonly shown: readonly TableColumn<T>[],
    private readonly screen: Screen,
  ) {
    this.#rows = [shown.map(([title]) => title)];
  }

  get isEmpty(): boolean {
    return this.#rows.length === 1;
  }

  add(items: readonly T[]): void {
    for (const item of items) this.#rows.push(compact(this.shown.map(([, cell]) => cell(item, this.screen))));
  }

  *texts(): Generator<string> {
    const numbers = this.shown.flatMap(([, , align], column) => (align ? column : []));
    let lines: string[] = [];
    for (const line of columnLines(this.#rows, { numbers, screen: this.screen })) {
      lines.push(line);
      if (lines.length < LINES_AT_ONCE) continue;
      yield lines.join("");
      lines = [];
    }
    yield lines.join("");
  }
}

/** A JSON array whose items come in several pages. */
export class JsonItems {
  #isEmpty = true;

  /** The text of further items. */
  textOf(items: readonly unknown[]): string {
    if (items.length === 0) return "";
    const [start, end] = ["[\n", "\n]\n"];
    const text = json(items).slice(start.length, -end.length);
    const before = this.#isEmpty ? start : ",\n";
    this.#isEmpty = false;
    return before + text;
  }

  end(): string {
    return this.#isEmpty ? "[]\n" : "\n]\n";
  }
}

/** Writes JSON with exact integers. Characters that a terminal would interpret are escaped. */
export function json(value: unknown, indent = 2): string {
  return `${printableJson(toJson(value, indent))}\n`;
}

export function formatLimits({ perMinute, perDay }: Limits): string {
  const requests = perMinute === 1 ? "request" : "requests";
  return `${grouped(perMinute)} ${requests} per minute, ${grouped(perDay)} per day`;
}

export const SHOWN_ONCE = "This is the only time it is shown: Petstore stores only its hash.";

/** The text after a sentence about a new secret: the secret on a line of its own, and how to try it. */
export function formatSecret(secret: string, url: string | undefined): string {
  const trial =
    url === undefined
      ? "A server on --port 0 prints its URL when it starts."
      : waysToTry(url, curlLine(secret, url));
  return `
  ${secret}

${SHOWN_ONCE} ${trial}
`;
}

/** Does what formatSecret does, for a secret in a file. */
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

/** Lists pets. `secret` is that of an API key, or what a shell expands to it. */
export function curlLine(secret: string, url: string): string {
  return curlCommand({ url: `${url}/pets`, secret, showsHeaders: true }, " ");
}
