import type { ComponentChildren } from "preact";
import { urlWith, usePlace } from "../router.ts";

export interface Column<Row> {
  readonly heading: string;
  /** The value of `sort` in the URL, if the column can be sorted by. */
  readonly sort?: string;
  readonly isNumber?: boolean;
  /** The column that names the row. It comes first on a narrow screen, without its heading. */
  readonly isLead?: boolean;
  /** The menu of the row. */
  readonly isMenu?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Whether each row is a link: the link of class `row-link` in it covers the row. */
  readonly hasLinks?: boolean;
  /** What the rows are sorted by if the URL does not say. */
  readonly defaultSort?: string;
}

/**
 * A table that becomes stacked rows on a narrow screen. The roles are written out because browsers forget that a table
 * is one when its display changes.
 */
export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  hasLinks = false,
  defaultSort = "",
}: TableProps<Row>) {
  return (
    <table class="stacks" role="table">
      <caption class="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <Heading key={column.heading} column={column} defaultSort={defaultSort} />
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row" class={hasLinks ? "row" : undefined}>
            {columns.map((column) => (
              <td key={column.heading} role="cell" data-label={column.heading} class={classOf(column)}>
                <div>{column.cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function classOf<Row>({ isNumber, isLead, isMenu }: Column<Row>): string | undefined {
  if (isLead) return "lead";
  if (isMenu) return "menu-cell end";
  return isNumber ? "end number" : undefined;
}

interface HeadingProps<Row> {
  readonly column: Column<Row>;
  readonly defaultSort: string;
}

function Heading<Row>({ column: { heading, sort, isNumber, isMenu }, defaultSort }: HeadingProps<Row>) {
  const place = usePlace();
  const className = isNumber || isMenu ? "end" : undefined;
  if (isMenu) {
    return (
      <th role="columnheader" scope="col" class={className}>
        <span class="visually-hidden">{heading}</span>
      </th>
    );
  }
  if (sort === undefined) {
    return (
      <th role="columnheader" scope="col" class={className}>
        {heading}
      </th>
    );
  }
  const isSorted = (place.query.get("sort") ?? defaultSort) === sort;
  const isDescending = place.query.get("order") === "desc";
  const next = isSorted ? (isDescending ? "" : "desc") : isNumber ? "desc" : "";
  const direction = isDescending ? "descending" : "ascending";
  return (
    <th role="columnheader" scope="col" class={className} aria-sort={isSorted ? direction : "none"}>
      <a href={urlWith({ sort, order: next }, place)} data-sorted={isSorted ? "" : undefined}>
        {heading}
        <span aria-hidden="true">{isSorted ? (isDescending ? " ↓" : " ↑") : ""}</span>
      </a>
    </th>
  );
}

interface PagerProps {
  readonly nextCursor: string | null;
  /** What is counted, such as "10,000 keys". */
  readonly total?: string;
}

/** The pages of a list. The browser's Back leads to the page before. */
export function Pager({ nextCursor, total }: PagerProps) {
  const place = usePlace();
  const isFirst = !place.query.has("cursor");
  if (isFirst && nextCursor === null) return total === undefined ? null : <p class="muted small">{total}</p>;
  return (
    <nav class="pager" aria-label="Pages of the list">
      {!isFirst && <a href={urlWith({}, place)}>First page</a>}
      {nextCursor !== null && <a href={urlWith({ cursor: nextCursor }, place)}>Next page</a>}
      {total !== undefined && <span class="muted small">{total}</span>}
    </nav>
  );
}
