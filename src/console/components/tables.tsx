import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { classesOf } from "../../pages/classes.ts";
import { urlWith } from "../router.ts";
import { consoleState } from "../state.ts";
import { NO_VALUE } from "./values.tsx";

type Position =
  | "lead"
  | "after-lead"
  | "at-end"
  | "below-end"
  | "last"
  | "wide-only"
  | "if-room"
  | "first-below"
  | "menu-cell"
  | "button-cell"
  | "changes-cell"
  | "actor-cell";

export interface Column<Row> {
  readonly heading: string;
  /** The value of `sort` in the URL, if the column can be sorted by. */
  readonly sort?: string;
  /** Whether the greatest value comes first when one sorts by it. */
  readonly isGreatestFirst?: boolean;
  readonly isNumber?: boolean;
  /**
   * On a narrow screen a row has two lines. The `lead`, which names it, comes first without its heading, next to what
   * is `after-lead` and `at-end`. The others are below, numbers with their headings: `first-below` at the beginning of
   * that line, `below-end` at its end, and `last` after it. The page of the row has what is `wide-only`; the narrowest
   * screens leave out what is `if-room`.
   */
  readonly position?: Position;
  /** Whether the lead has only the width of its text. */
  readonly isShort?: boolean;
  /** Whether each cell has a link of class `row-link`, which covers the row. */
  readonly isRowLink?: boolean;
  readonly cell: (row: Row) => ComponentChildren;
}

export interface DataTableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  /** The identity of a row; by default a row has none. */
  readonly identityOf?: (row: Row) => string;
  /** Whether it keeps its columns on a narrow screen. */
  readonly isCompact?: boolean;
  /** What the rows are sorted by if the URL does not say, greatest first. Without it they cannot be sorted. */
  readonly defaultSort?: string | undefined;
  /** Whether the page shows this row beside the table. */
  readonly isOpen?: (row: Row) => boolean;
}

/**
 * A table that becomes stacked rows on a narrow screen. The roles are written out, because a table whose display
 * changes loses its role in browsers.
 */
export function DataTable<Row>(props: DataTableProps<Row>) {
  const { caption, columns, rows, identityOf, isCompact = false, defaultSort, isOpen } = props;
  const shape = classesOf({
    stacks: !isCompact,
    "linked-rows": columns.some(({ isRowLink }) => isRowLink),
    "with-menus": columns.some(({ position }) => position === "menu-cell"),
  });
  const table = (
    <table class={shape} role="table">
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
          <tr key={identityOf?.(row)} role="row" data-open={isOpen?.(row) ? "" : undefined}>
            {columns.map((column) => (
              <Cell key={column.heading} {...column} content={column.cell(row)} />
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  return isCompact ? table : <div class="sheet">{table}</div>;
}

interface CellProps extends Pick<Column<never>, "heading" | "isNumber" | "position" | "isShort"> {
  readonly content: ComponentChildren;
}

function Cell({ heading, isNumber, position, isShort, content }: CellProps) {
  const shape = {
    number: isNumber,
    [position ?? ""]: true,
    short: isShort,
    "no-value": content === NO_VALUE,
  };
  return (
    <td role="cell" data-label={heading} class={classesOf(shape)}>
      <div>{content}</div>
    </td>
  );
}

type HeadingProps = Omit<Column<never>, "cell"> & Pick<DataTableProps<never>, "defaultSort">;

function Heading({ heading, sort, isGreatestFirst, isNumber, position, defaultSort }: HeadingProps) {
  const { query } = consoleState;
  const isMenu = position === "menu-cell" || position === "button-cell";
  const isSortable = sort !== undefined && defaultSort !== undefined;
  const isSorted = (query.get("sort") ?? defaultSort) === sort;
  const isDescending = !query.has("sort") || query.get("order") === "desc";
  const order = (isSorted ? !isDescending : isGreatestFirst) ? "desc" : "";
  const direction = isSorted ? (isDescending ? "descending" : "ascending") : "none";
  return (
    <th
      role="columnheader"
      scope="col"
      class={classesOf({ end: (isNumber ?? false) || isMenu, [position ?? ""]: true })}
      aria-sort={isSortable ? direction : undefined}
    >
      {isSortable ? (
        <a href={urlWith({ sort, order })} data-sorted={isSorted ? "" : undefined}>
          {heading}
          <span class="arrow" aria-hidden="true">
            {isSorted ? (isDescending ? " ↓" : " ↑") : " ↕"}
          </span>
        </a>
      ) : (
        <span class={isMenu ? "visually-hidden" : undefined}>{heading}</span>
      )}
    </th>
  );
}

interface MenuProps {
  /** What screen readers read: "Actions for mobile app". */
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
