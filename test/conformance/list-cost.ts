import { combinations, type ValuesOf } from "../../trials/harness/combinations.ts";
import { type AllRowCounts, VARIED_ROWS } from "../../bench/skewed-rows.ts";
import type { Operation } from "../../src/api/api.ts";
import { KEY_STATES } from "../../src/domain/api-keys.ts";
import { type KeyFilter, type KeyListQuery, KEY_SORTS } from "../../src/domain/key-lists.ts";
import type { AuditQuery } from "../../src/domain/audit.ts";
import type { OrderQuery, PetQuery } from "../../src/domain/ports/pets-and-orders.ts";
import { ORDER_STATUSES, PET_STATUSES, type PetFilters } from "../../src/domain/pets-and-orders.ts";
import { DAY_MS } from "../../src/text/time-units.ts";
import { PAGE_LIMIT } from "../../src/domain/size-limits.ts";
import { ADMIN_OPERATIONS, ADMIN_PAGE_LIMIT, USAGE_LIMIT } from "../../src/operator/operations.ts";
import { OPERATIONS } from "../../src/petstore/operations.ts";
import { auditPage } from "../../src/store/audit.ts";
import { keyCounts, keyPage } from "../../src/store/key-list.ts";
import { orderPage, orderPageOfKey, petPage, petSearch } from "../../src/store/pet-and-order-lists.ts";
import type { BoundedPage, Statement } from "../../src/store/sql/steps.ts";
import type { Dialect } from "../../src/store/sql/dialect.ts";
import { usageQueries } from "../../src/store/usage-history.ts";

/*
 * What the tests of both databases share that measure how much a page of a list reads: data as skewed as those of a
 * shop become, and every page with every combination of its filters, with and without matches. A page may read as many
 * rows as the table of operations allows, and no more when there are four times as many.
 */

export const MANY_ROWS = 200_000;
/** What is rare among many rows is among few, too. */
export const FEW_ROWS = MANY_ROWS / 4;
if (FEW_ROWS < 4 * VARIED_ROWS) throw new Error("most of the rows would be varied");

export function rowCounts(rows: number): AllRowCounts {
  const usage = { keys: rows / 100, days: 10, hours: 10 };
  return { pets: rows, orders: rows, audit: rows, keys: rows / 20, usage };
}
/** The time of the data. */
export const NOW = Date.UTC(2026, 10, 15);

/* For each filter, values that most of the rows have, few and none. */

const PET_VALUES: ValuesOf<PetFilters> = { categoryId: [1n, 40n, 77n, 5_000n], status: PET_STATUSES };
const ORDER_VALUES: ValuesOf<Omit<OrderQuery, "before" | "limit">> = {
  petId: [1n, 7_000n, 99_999n],
  keyId: [1, 7, 999],
  status: ORDER_STATUSES,
};
const AUDIT_VALUES: ValuesOf<Omit<AuditQuery, "before" | "after" | "limit" | "until">> = {
  action: ["key.updated", "key.revoked"],
  actor: ["admin API", "server"],
  operator: ["bot", "ann"],
  target: [
    { kind: "key", id: 1n },
    { kind: "key", id: 90n },
  ],
  since: [500],
};
const KEY_VALUES: ValuesOf<KeyFilter> = {
  search: ["customer 99", "nobody"],
  plan: ["free", "enterprise"],
  state: [...KEY_STATES],
  access: ["write", "read"],
  label: ["team-7", "none"],
  owner: ["owner99@example.com"],
  unusedSince: [NOW - 30 * DAY_MS],
  deprecatedSince: [NOW - 30 * DAY_MS],
  expiresBefore: [NOW + 30 * DAY_MS],
  ids: [[1, 50, 900]],
  isRevoked: [true, false],
};
/** Each filter of keys alone is enough, since it only selects among all keys. */
const KEY_FILTERS_TOGETHER = 1;

/** Pages of clients' lists of pets, from the start and the middle. */
export const petQueries = (limit: number): readonly PetQuery[] =>
  [undefined, 4_000n].flatMap((after) =>
    combinations(PET_VALUES).map((filters) => Object.assign(filters, { after, limit })),
  );
const orderQueries = (limit: number): readonly OrderQuery[] =>
  [undefined, 6_000n].flatMap((before) =>
    combinations(ORDER_VALUES).map((filters) => Object.assign(filters, { before, limit })),
  );
const auditQueries = (limit: number): readonly AuditQuery[] =>
  combinations(AUDIT_VALUES).map((filters) => Object.assign(filters, { limit }));
/** The entries that follow another one are read in their order, whatever the filters are. */
const followingQueries = (limit: number): readonly AuditQuery[] =>
  combinations(AUDIT_VALUES, 1).map((filters) => Object.assign(filters, { after: 1_000n, limit }));
const keyQueries = (limit: number): readonly KeyListQuery[] => {
  const usedToday = [[1, 7] as const];
  const all = { limit, now: NOW, bannedKeys: [1, 2], usedToday };
  const filters = combinations(KEY_VALUES, KEY_FILTERS_TOGETHER);
  const sorts = combinations({ sort: KEY_SORTS, isDescending: [false, true] });
  return [...filters.map((filter) => ({ filter })), ...sorts].map((each) => Object.assign(each, all));
};

/** Statements that together read a page, with a name. */
export interface MeasuredPage {
  readonly name: string;
  readonly statements: readonly Statement[];
}

function pagesOf<Query extends object>(
  queries: readonly Query[],
  of: (query: Query) => BoundedPage,
): readonly MeasuredPage[] {
  return queries.map((query) => {
    const name = JSON.stringify(query, (_, value) => (typeof value === "bigint" ? String(value) : value));
    const { page, lastRead } = of(query);
    return { name, statements: [page, ...(lastRead ? [lastRead] : [])] };
  });
}
const whole = (page: Statement): BoundedPage => ({ page, lastRead: undefined });

/** The lists in a table of operations that are read from the database. */
type ListIn<T> = {
  [Id in keyof T]: T[Id] extends { readonly maxRowsRead: number; readonly needsRunningServer?: never }
    ? Id
    : never;
}[keyof T];
type PagesOfLists<T> = Readonly<Record<ListIn<T>, readonly MeasuredPage[]>>;

function clientPages(dialect: Dialect, limit: number): PagesOfLists<typeof OPERATIONS> {
  return {
    listPets: pagesOf(petQueries(limit), (query) => whole(petPage(query, dialect))),
    listOrders: pagesOf(orderQueries(limit), ({ before: after, keyId = 1, status, limit }) =>
      whole(orderPageOfKey(keyId, { status, after, limit }, dialect)),
    ),
  };
}

function operatorPages(dialect: Dialect, limit: number): PagesOfLists<typeof ADMIN_OPERATIONS> {
  const pets = petQueries(limit);
  const starts = Array.from({ length: 40 }, (_, i) => NOW - i * DAY_MS);
  return {
    listPets: [
      ...pagesOf(pets, (query) => whole(petPage(query, dialect))),
      ...["none", "rex"].flatMap((text) => pagesOf(pets, (query) => petSearch(text, query, dialect))),
    ],
    listOrders: pagesOf(orderQueries(limit), (query) => orderPage(query, dialect)),
    listAudit: pagesOf([...auditQueries(limit), ...followingQueries(limit)], (query) =>
      auditPage(query, dialect),
    ),
    listKeys: [
      ...pagesOf(keyQueries(limit), (query) => whole(keyPage(query, dialect))),
      ...pagesOf(keyQueries(limit), (query) => whole(keyCounts(query, dialect))),
    ],
    listBans: pagesOf([{ limit, now: NOW, filter: { ids: [1, 50, 900] } }], (query) =>
      whole(keyPage(query, dialect)),
    ),
    getUsage: pagesOf([{ by: "day" }, { by: "hour" }] as const, ({ by }) =>
      whole({
        sql: usageQueries(by, dialect).sums,
        values: [JSON.stringify(starts), 1, Number.MAX_SAFE_INTEGER, USAGE_LIMIT.default],
      }),
    ),
  };
}

export interface MeasuredList {
  readonly name: string;
  readonly maxRowsRead: number;
  readonly pages: readonly MeasuredPage[];
}

/** The lists of both tables of operations, each with its bound: small pages, or with as many rows as they can have. */
export function measuredLists(dialect: Dialect, size: "small" | "full"): readonly MeasuredList[] {
  const lists = (
    side: string,
    table: Readonly<Record<string, Operation>>,
    pages: Readonly<Record<string, readonly MeasuredPage[]>>,
  ) =>
    Object.entries(pages).map(([id, measured]) => {
      const { maxRowsRead = NaN } = table[id] ?? {};
      return { name: `${side}: ${id}`, maxRowsRead, pages: measured };
    });
  return [
    ...lists("clients", OPERATIONS, clientPages(dialect, size === "small" ? 5 : PAGE_LIMIT.max)),
    ...lists(
      "operators",
      ADMIN_OPERATIONS,
      operatorPages(dialect, size === "small" ? 5 : ADMIN_PAGE_LIMIT.max),
    ),
  ];
}

/**
 * What a small page may read of many rows, by what it reads of few. A larger index may have a level more, and a page
 * that searches finds more to look at, as long as it is little of what it may read. A list that reads all rows may read
 * four times as much as its worst page of few.
 */
export function mostWithMany({ maxRowsRead }: MeasuredList, withFew: number, worstWithFew: number): number {
  return maxRowsRead === Infinity
    ? (MANY_ROWS / FEW_ROWS) * 1.5 * worstWithFew + 16
    : 1.5 * withFew + 16 + maxRowsRead / 50;
}
