/* Lists that have pages and filters, and what they say if they are empty. */

import type { ComponentChildren } from "preact";
import { countOf } from "../../text/formatting.ts";
import { labelOf } from "../../domain/fields.ts";
import { RejectedRequest } from "../admin-api.ts";
import { type Polled, usePolled } from "../polling.ts";
import { urlWith } from "../router.ts";
import { consoleState } from "../state.ts";
import { type Identified, type StillRowsOptions, useStillRows } from "../still-rows.ts";
import { countFilters, type FilterRows, Filters } from "./filters.tsx";
import { Empty, Loaded, PageHead, PageSection } from "./page.tsx";
import { DataTable, type DataTableProps } from "./tables.tsx";

interface PagerProps {
  readonly nextCursor: string | null;
  /** What is counted, such as "50 of 10,000 keys". */
  readonly children: ComponentChildren;
}

/** The pages of a list. The browser's Back leads to the page before. */
function Pager({ nextCursor, children }: PagerProps) {
  const isFirst = !consoleState.query.has("cursor");
  if (isFirst && nextCursor === null) return children && <p class="pager muted small">{children}</p>;
  return (
    <nav class="pager" aria-label="Pages of the list">
      {!isFirst && (
        <a class="button" href={urlWith({})}>
          First page
        </a>
      )}
      {nextCursor !== null && (
        <a class="button" href={urlWith({ cursor: nextCursor })}>
          Next page
        </a>
      )}
      <span class="muted small">{children}</span>
    </nav>
  );
}

function countText(count: number, total: number, noun: string): string {
  const all = countOf(total, noun);
  return count < total ? `${count} of ${all}` : all;
}

interface Items<Row> {
  readonly items: readonly Row[];
  readonly nextCursor: string | null;
  /** The number of rows on all pages. */
  readonly total?: number;
}

/** A page of a list. The parameters in the URL are those of the operation. */
export function useList<T>(load: (query: Readonly<Record<string, string>>) => Promise<T>): Polled<T> {
  const { path } = consoleState;
  const query = new URLSearchParams(consoleState.query);
  // What is open beside the list is not a part of it.
  query.delete("open");
  return usePolled(`${path} ${query}`, () => load({ ...Object.fromEntries(query), limit: "50" }));
}

const idOf = ({ id }: Identified): string => `${id}`;

interface ListTableProps<Row> extends DataTableProps<Row>, StillRowsOptions<Row> {
  readonly noun: string;
}

/** The rows of a list. New rows that arrive in a feed while somebody reads it are counted above it. */
function ListTable<Row extends Identified>({ noun, loadedWith, isFeed, ...table }: ListTableProps<Row>) {
  const { rows, arrived, handlers, release } = useStillRows({ rows: table.rows, loadedWith, isFeed });
  return (
    <div {...handlers}>
      {arrived > 0 && (
        <p class="arrivals">
          <button type="button" onClick={release}>
            {arrived === table.rows.length && "More than "}
            {countOf(arrived, `new ${noun}`)}
          </button>
        </p>
      )}
      <DataTable {...table} rows={rows} />
    </div>
  );
}

interface ListPageProps<Row> extends Pick<DataTableProps<Row>, "columns" | "defaultSort" | "isOpen"> {
  readonly title: string;
  /** What a row is: "pet". */
  readonly noun: string;
  readonly of: Polled<Items<Row>>;
  readonly filters: FilterRows;
  readonly linkedFilters?: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** The parts of the list, above its filters. */
  readonly tabs?: ComponentChildren;
  /** What is shown above the rows. */
  readonly note?: ComponentChildren;
  /** Whether new rows come first all the time. */
  readonly isFeed?: boolean;
  /** What to say if there are no rows at all. */
  readonly empty: ComponentChildren;
  /** What to say if the filters match none. */
  readonly noMatch?: ComponentChildren;
  /** What is shown instead of the rows. */
  readonly children?: ComponentChildren;
}

/** A title, filters, and the rows that have what they ask for. Without any rows there is nothing to filter. */
export function ListPage<Row extends Identified>(props: ListPageProps<Row>) {
  const {
    title,
    noun,
    of,
    filters,
    linkedFilters,
    actions,
    tabs,
    isFeed = false,
    note,
    empty,
    noMatch,
    children,
    ...table
  } = props;
  const { query } = consoleState;
  const isFiltered = countFilters(query, filters) > 0;
  const hasNone = of.data?.items.length === 0 && of.data.nextCursor === null && !query.has("cursor");
  const isEmpty = hasNone && !of.isStale && !isFiltered;
  const { message = "", field } = of.error instanceof RejectedRequest && !of.isStale ? of.error : {};
  const isRejected = field !== undefined;
  const nothing = isFiltered ? (noMatch ?? <NoMatch noun={noun} />) : empty;
  return (
    <section>
      {/* What says that there are none has the action. */}
      <PageHead title={title}>{!isEmpty && actions}</PageHead>
      {!isEmpty && tabs}
      {!isEmpty && (
        <Filters filters={filters} hasNoMatch={isRejected || hasNone}>
          {linkedFilters}
        </Filters>
      )}
      {note}
      {children}
      {isRejected && (
        <div role="alert">
          <NoMatch title={`“${filters[field]?.label ?? labelOf(field)}” is not valid`}>{message}</NoMatch>
        </div>
      )}
      {!children && !isRejected && (
        <Loaded of={of}>
          {({ items, nextCursor, total }) => (
            <>
              {items.length > 0 && (
                <ListTable
                  {...{ ...table, noun, isFeed }}
                  caption={title}
                  rows={items}
                  identityOf={idOf}
                  loadedWith={of.request}
                />
              )}
              {items.length === 0 && nextCursor !== null && (
                <p class="muted">None so far. The next page looks further.</p>
              )}
              {items.length === 0 &&
                nextCursor === null &&
                (query.has("cursor") ? <p class="muted">Nothing is left on this page.</p> : nothing)}
              <Pager nextCursor={nextCursor}>{total ? countText(items.length, total, noun) : null}</Pager>
            </>
          )}
        </Loaded>
      )}
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
export function Latest<Row extends Identified>({ of, title, columns, none, allUrl }: LatestProps<Row>) {
  return (
    <PageSection title={title}>
      <Loaded of={of}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 && <p class="empty">{none}</p>}
            {items.length > 0 && (
              <DataTable caption={title} columns={columns} rows={items} identityOf={idOf} />
            )}
            {nextCursor !== null && (
              <p class="pager">
                <a href={allUrl}>See all</a>
              </p>
            )}
          </>
        )}
      </Loaded>
    </PageSection>
  );
}

interface NoMatchProps {
  readonly noun?: string;
  readonly title?: string;
  /** What else there is to do. */
  readonly children?: ComponentChildren;
}

/** No row has what the filters ask for. */
export function NoMatch({ noun, title = `No ${noun} matches the filters`, children }: NoMatchProps) {
  return (
    <Empty
      title={title}
      action={
        <a class="button" href={consoleState.path}>
          Clear the filters
        </a>
      }
    >
      {children}
    </Empty>
  );
}
