import { combinations, type ValuesOf } from "../../bench/combinations.ts";
import { VARIED_ROWS } from "../../bench/skewed-rows.ts";
import type { AuditQuery } from "../../src/domain/audit.ts";
import type { OrderQuery, PetQuery } from "../../src/domain/ports.ts";
import { ORDER_STATUSES, PET_STATUSES, type PetFilters } from "../../src/domain/resources.ts";
import { auditPage } from "../../src/store/audit.ts";
import { orderPage, orderPageOfKey, petPage, petSearch } from "../../src/store/pages.ts";
import type { BoundedPage, Dialect } from "../../src/store/statements.ts";

/*
 * What the tests of both databases share that measure how much a page of a list reads: data as skewed as those of a
 * shop become, and every page with every combination of its filters, with and without matches. A page may read as many
 * rows as a bound allows, and no more when there are four times as many.
 */

export const FEW_ROWS = VARIED_ROWS;
export const MANY_ROWS = 4 * FEW_ROWS;

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

const LIMIT = 5;
const after = [undefined, 4_000n];

/** The pages of clients' lists of pets, from the start and the middle. */
export const PET_QUERIES: readonly PetQuery[] = after.flatMap((start) =>
  combinations(PET_VALUES).map((filters) => Object.assign(filters, { after: start, limit: LIMIT })),
);
const ORDER_QUERIES: readonly OrderQuery[] = [undefined, 6_000n].flatMap((before) =>
  combinations(ORDER_VALUES).map((filters) => Object.assign(filters, { before, limit: LIMIT })),
);
const AUDIT_QUERIES: readonly AuditQuery[] = combinations(AUDIT_VALUES).map((filters) =>
  Object.assign(filters, { limit: LIMIT }),
);
/** The entries that follow another one are read in their order, whatever the filters are. */
const FOLLOWING_QUERIES: readonly AuditQuery[] = AUDIT_QUERIES.filter(
  (query) => Object.keys(query).length <= 2,
).map((query) => Object.assign({ after: 1_000n }, query));

/** A page that is measured, with its name. */
export interface MeasuredPage extends BoundedPage {
  readonly name: string;
}

/** The pages of all lists of clients and operators but those of keys, which read all keys. */
export function measuredPages(dialect: Dialect) {
  const pages = <Query extends object>(queries: readonly Query[], of: (query: Query) => BoundedPage) =>
    queries.map((query): MeasuredPage => {
      const name = JSON.stringify(query, (_, value) => (typeof value === "bigint" ? String(value) : value));
      return { name, ...of(query) };
    });
  const whole = (page: BoundedPage["page"]): BoundedPage => ({ page, lastRead: undefined });
  return {
    pets: pages(PET_QUERIES, (query) => whole(petPage(query, dialect))),
    "pets with a name": pages(PET_QUERIES, (query) => petSearch("none", query, dialect)),
    "pets with a frequent name": pages(PET_QUERIES, (query) => petSearch("rex", query, dialect)),
    orders: pages(ORDER_QUERIES, (query) => orderPage(query, dialect)),
    "orders of a key": pages(ORDER_QUERIES, ({ before: start, keyId = 1, status, limit }) =>
      whole(orderPageOfKey(keyId, { status, after: start, limit }, dialect)),
    ),
    "audit entries": pages(AUDIT_QUERIES, (query) => auditPage(query, dialect)),
    "following audit entries": pages(FOLLOWING_QUERIES, (query) => auditPage(query, dialect)),
  };
}
