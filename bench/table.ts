/** A table of the report; printed on a terminal, or as Markdown. */
export interface Table {
  readonly title: string;
  readonly note?: string;
  /** The first column is text and stands left; the others are figures and stand right. */
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

export function plainTable({ title, note, header, rows }: Table): string {
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => width(row[column]))));
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => pad(cell, widths[column] ?? 0, column === 0))
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

function width(cell = ""): number {
  return Bun.stringWidth(cell);
}

function pad(cell: string, length: number, left: boolean): string {
  const space = " ".repeat(Math.max(0, length - width(cell)));
  return left ? cell + space : space + cell;
}
