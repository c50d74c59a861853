import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { countOf } from "../format.ts";
import { type Polled, usePolled } from "../polling.ts";
import { urlWith, useLocation } from "../router.ts";
import { Filters, hasFilters } from "./filters.tsx";
import { Empty, Loaded, PageHead, PageSection } from "./page.tsx";

export interface Column<Row> {
  readonly heading: string;
  /** The value of `sort` in the URL, if the column can be sorted by. */
  readonly sort?: string;
  readonly isNumber?: boolean;
  /** The column that names the row. It comes first on a narrow screen, without its heading. */
  readonly isLead?: boolean;
  /** Beside the name on a narrow screen; the others are below, numbers with their headings. */
  readonly isAtEnd?: boolean;
  /** Not on a narrow screen: the page of the row has it. */
  readonly isWide?: boolean;
  /** The menu of the row. */
  readonly isMenu?: boolean;
  /** It may use hooks. */
  readonly cell: (row: Row) => ComponentChildren;
}

interface DataTableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Whether it keeps its columns on a narrow screen. */
  readonly isCompact?: boolean;
  /** What the rows are sorted by if the URL does not say. Without it they cannot be sorted. */
  readonly defaultSort?: string;
}

/**
 * A table that becomes stacked rows on a narrow screen. A link of class `row-link` covers its row. The roles are
 * written out because browsers forget that a table is one when its display changes.
 */
export function DataTable<Row>({
  caption,
  columns,
  rows,
  keyOf,
  isCompact = false,
  defaultSort,
}: DataTableProps<Row>) {
  return (
    <table class={isCompact ? undefined : "stacks"} role="table">
      <caption class="visually-hidden">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((column) => (
            <Heading key={column.heading} {...column} defaultSort={defaultSort} />
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map((column) => (
              <Cell key={column.heading} column={column} row={row} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface CellProps<Row> {
  readonly column: Column<Row>;
  readonly row: Row;
}

function Cell<Row>({ column, row }: CellProps<Row>) {
  return (
    <td role="cell" data-label={column.heading} class={classOf(column)}>
      <div>{column.cell(row)}</div>
    </td>
  );
}

function classOf<Row>({ isNumber, isLead, isMenu, isAtEnd, isWide }: Column<Row>): string {
  if (isLead) return "lead";
  if (isMenu) return "menu-cell end";
  return `${isNumber ? "end number" : ""} ${isAtEnd ? "at-end" : ""} ${isWide ? "wide-only" : ""}`.trim();
}

interface HeadingProps<Row> extends Column<Row> {
  readonly defaultSort: string | undefined;
}

function Heading<Row>({ heading, sort, isNumber, isMenu, defaultSort }: HeadingProps<Row>) {
  const { query } = useLocation();
  const isSortable = sort !== undefined && defaultSort !== undefined;
  const isSorted = (query.get("sort") ?? defaultSort) === sort;
  const isDescending = query.get("order") === "desc";
  const next = isSorted ? (isDescending ? "" : "desc") : isNumber ? "desc" : "";
  const direction = isSorted ? (isDescending ? "descending" : "ascending") : "none";
  return (
    <th
      role="columnheader"
      scope="col"
      class={isNumber || isMenu ? "end" : undefined}
      aria-sort={isSortable ? direction : undefined}
    >
      {isSortable ? (
        <a href={urlWith({ sort, order: next })} data-sorted={isSorted ? "" : undefined}>
          {heading}
          <span aria-hidden="true">{isSorted ? (isDescending ? " ↓" : " ↑") : ""}</span>
        </a>
      ) : (
        <span class={isMenu ? "visually-hidden" : undefined}>{heading}</span>
      )}
    </th>
  );
}

interface PagerProps {
  readonly nextCursor: string | null;
  /** What is counted, such as "10,000 keys". */
  readonly children: ComponentChildren;
}

/** The pages of a list. The browser's Back leads to the page before. */
function Pager({ nextCursor, children }: PagerProps) {
  const isFirst = !useLocation().query.has("cursor");
  if (isFirst && nextCursor === null) return children && <p class="pager muted small">{children}</p>;
  return (
    <nav class="pager" aria-label="Pages of the list">
      {!isFirst && <a href={urlWith({})}>First page</a>}
      {nextCursor !== null && <a href={urlWith({ cursor: nextCursor })}>Next page</a>}
      <span class="muted small">{children}</span>
    </nav>
  );
}

interface Items<Row> {
  readonly items: readonly Row[];
  readonly nextCursor: string | null;
  /** On all pages. */
  readonly total?: number;
}

interface ListProps<Row> extends Omit<DataTableProps<Row>, "rows" | "keyOf"> {
  readonly of: Polled<Items<Row>>;
  /** What a row is: "pet". */
  readonly noun: string;
  /** What to say if there are no rows at all. */
  readonly empty: ComponentChildren;
  /** What to say if the filters match none. */
  readonly noMatch?: ComponentChildren;
}

/** Whether there are no rows at all. */
function isEmpty<Row>({ data, isStale }: Polled<Items<Row>>, query: URLSearchParams): boolean {
  const isWhole = !hasFilters(query) && !query.has("cursor");
  return data?.items.length === 0 && data.nextCursor === null && !isStale && isWhole;
}

/** A page of a list, as the filters in the URL ask for it. */
export function List<Row extends { readonly id: number | bigint }>(props: ListProps<Row>) {
  const { of, noun, empty, noMatch = <NoMatch noun={noun} />, ...table } = props;
  const { query } = useLocation();
  const nothing = hasFilters(query) ? noMatch : empty;
  return (
    <Loaded of={of}>
      {({ items, nextCursor, total }) => (
        <>
          {items.length > 0 && <DataTable {...table} rows={items} keyOf={({ id }) => `${id}`} />}
          {items.length === 0 && nextCursor !== null && (
            <p class="muted">None so far. The next page looks further.</p>
          )}
          {items.length === 0 &&
            nextCursor === null &&
            (query.has("cursor") ? <p class="muted">Nothing is left on this page.</p> : nothing)}
          <Pager nextCursor={nextCursor}>{total !== undefined && total > 0 && countOf(total, noun)}</Pager>
        </>
      )}
    </Loaded>
  );
}

interface ListPageProps<Row> extends Omit<ListProps<Row>, "of" | "caption"> {
  readonly title: string;
  readonly actions?: ComponentChildren;
  /** The parameters in the URL are those of the operation. */
  readonly load: (query: Readonly<Record<string, string>>) => Promise<Items<Row>>;
  /** The filters. */
  readonly children: ComponentChildren;
}

/** A title, filters, and the rows that have what they ask for. Without any rows there is nothing to filter. */
export function ListPage<Row extends { readonly id: number | bigint }>(props: ListPageProps<Row>) {
  const { title, actions, load, children, ...list } = props;
  const { query } = useLocation();
  const of = usePolled(`${title} ${query}`, () => load({ ...Object.fromEntries(query), limit: "50" }));
  return (
    <section>
      <PageHead title={title}>{actions}</PageHead>
      {!isEmpty(of, query) && <Filters>{children}</Filters>}
      <List {...list} of={of} caption={title} />
    </section>
  );
}

interface LatestProps<Row> extends Pick<DataTableProps<Row>, "columns"> {
  readonly of: Polled<Items<Row>>;
  readonly title: string;
  /** What to say if there are none. */
  readonly none: string;
  /** The list with all of them. */
  readonly allUrl: string;
}

/** The latest rows of a list that belong to one thing. */
export function Latest<Row extends { readonly id: number | bigint }>(props: LatestProps<Row>) {
  const { of, title, columns, none, allUrl } = props;
  return (
    <PageSection title={title}>
      <Loaded of={of}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 && <p class="muted">{none}</p>}
            {items.length > 0 && (
              <DataTable caption={title} columns={columns} rows={items} keyOf={({ id }) => `${id}`} />
            )}
            {nextCursor !== null && <a href={allUrl}>See all</a>}
          </>
        )}
      </Loaded>
    </PageSection>
  );
}

/** No row has what the filters ask for. */
export function NoMatch({ noun }: { readonly noun: string }) {
  const { path } = useLocation();
  return (
    <Empty title={`No ${noun} matches`}>
      <a href={path}>Clear the filters</a> to see all {noun}s.
    </Empty>
  );
}

interface MenuProps {
  /** For screen readers: "Actions for mobile app". */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** The actions of a row. The browser closes it on Escape and on a click elsewhere. */
export function Menu({ label, children }: MenuProps) {
  const id = useId();
  return (
    <>
      <button type="button" class="menu" popovertarget={id} aria-label={label}>
        ⋯
      </button>
      <div id={id} class="menu-items" popover="auto" onClick={(event) => event.currentTarget.hidePopover()}>
        {children}
      </div>
    </>
  );
}
