/** A row of CSV (RFC 4180) without the end of the line. */
export function csvRow(cells: readonly string[], delimiter = ","): string {
  return cells.map((cell) => csvCell(cell, delimiter)).join(delimiter);
}

const SPECIAL = /[",\r\n]/;

/** A cell as it is: unlike a report for a spreadsheet, an export is read back to the same text. */
export function csvCell(cell: string, delimiter = ","): string {
  const needsQuotes = SPECIAL.test(cell) || (delimiter !== "," && cell.includes(delimiter));
  return needsQuotes ? `"${cell.replaceAll('"', '""')}"` : cell;
}
