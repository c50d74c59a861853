import type { Spread } from "./statistics.ts";

export interface Table {
  readonly title: string;
  readonly note?: string;
  /** The first column is text, aligned left; the others are figures, aligned right. */
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function plainTable({ title, note, header, rows }: Table): string {
  const widths = header.map((_, column) =>
    Math.max(...[header, ...rows].map((row) => Bun.stringWidth(row[column] ?? ""))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const padding = " ".repeat(Math.max(0, (widths[column] ?? 0) - Bun.stringWidth(cell)));
        return column === 0 ? cell + padding : padding + cell;
      })
      .join("  ")
      .trimEnd();
  const rule = widths.map((length) => "─".repeat(length)).join("──");
  return [`\n${title}`, ...(note ? [note] : []), line(header), rule, ...rows.map(line), ""].join("\n");
}

export function markdownTable({ title, note, header, rows }: Table): string {
  const rule = `|${header.map((_, column) => (column === 0 ? "---" : "---:")).join("|")}|`;
  const lines = [markdownRow(header), rule, ...rows.map(markdownRow)];
  return [`### ${title}\n`, ...(note ? [`${note}\n`] : []), ...lines, ""].join("\n");
}

function markdownRow(row: readonly string[]): string {
  return `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}

export function bulletList(lines: readonly string[]): string {
  return lines.map((line) => `- ${line}`).join("\n");
}

export function formatCount(value: number): string {
  return Math.round(value).toLocaleString("en");
}

/** Three significant digits. */
export function formatFigure(value: number): string {
  if (value >= 1_000) return formatCount(value);
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function formatSpread({ median, min, max }: Spread, format = formatFigure): string {
  return `${format(median)} (${format(min)}–${format(max)})`;
}
