/** Rows with their cells under one another, as wide as a terminal shows them. */
export function columns(rows: readonly (readonly string[])[], gap = 2): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, Bun.stringWidth(cell));
    }
  }
  const padded = (cell: string, column: number) =>
    cell + " ".repeat((widths[column] ?? 0) - Bun.stringWidth(cell) + gap);
  return rows.map((row) => `${row.map(padded).join("").trimEnd()}\n`).join("");
}
