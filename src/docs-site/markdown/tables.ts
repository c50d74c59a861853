import { textOf } from "./blocks.ts";

/** A table of more columns takes the whole width. */
const MAX_NARROW_COLUMNS = 3;

/**
 * A table that can be scrolled with the keyboard. On a narrow screen each row becomes a block, so each cell has the
 * heading of its column.
 */
export function framedTable(table: string): { readonly html: string; readonly isWide: boolean } {
  const columns = [...table.matchAll(/<th\b[^>]*>(.*?)<\/th>/gs)].map(([, heading = ""]) => textOf(heading));
  const labelled = table.replace(/<tr>(.*?)<\/tr>/gs, (_row, cells: string) => {
    let column = 0;
    const html = cells.replace(/<td\b([^>]*)>(.*?)<\/td>/gs, (_cell, attributes: string, content: string) => {
      const label = Bun.escapeHTML(columns[column++] ?? "");
      return `<td${attributes} data-label="${label}"><span>${content}</span></td>`;
    });
    return `<tr>${html}</tr>`;
  });
  const html = `<div class="table" tabindex="0">${labelled.replace("<table>", '<table class="stacks">')}</div>`;
  return { html, isWide: columns.length > MAX_NARROW_COLUMNS };
}
