import { Database, type SQLQueryBindings } from "bun:sqlite";
import { expect, test } from "bun:test";
import type { AuditQuery } from "../../src/domain/audit.ts";
import type { KeyListQuery } from "../../src/domain/api-keys.ts";
import { auditPage } from "../../src/store/audit.ts";
import { keyPage } from "../../src/store/key-list.ts";
import { Connection } from "../../src/store/sqlite/connection.ts";
import { SQLITE_DIALECT } from "../../src/store/sqlite/statements.ts";
import { SQLITE_MIGRATIONS } from "../../src/store/sqlite/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/store.ts";
import { columnOf } from "../../src/domain/fields.ts";
import type { Stores } from "../../src/domain/ports.ts";
import { orderPage, orderPageOfKey, petPage } from "../../src/store/pages.ts";
import type { Statement } from "../../src/store/statements.ts";
import { PortCalls, STORE_PORTS } from "../conformance/port-calls.ts";
import {
  DAY_MS,
  filterSets,
  ORDER_FILTER_VALUES,
  PET_FILTER_VALUES,
  rex,
} from "../conformance/store-fixture.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

const BY = { actor: { kind: "console" }, at: 1 } as const;
const SECRET = { hash: "a".repeat(64), hint: "pet_test_abcd" };
const REQUEST = { keyId: 1, idempotencyKey: "k", fingerprint: "f" };

/** Calls every method of the stores, with every combination of filters that has a statement of its own. */
async function useAll({ store, inventory, petJson, keys, audit, usageHistory, ...rest }: Stores) {
  const key = await keys.createKey({ name: "shop", plan: "free", createdAt: 1 }, SECRET, BY);
  await keys.addSecret(key.id, { ...SECRET, hash: "b".repeat(64), overlapEndsAt: 2 }, BY);
  await keys.updateKey(key.id, { name: "store" }, BY);
  await keys.findCredential(SECRET.hash);
  await keys.changesSince(0);
  await keys.listKeys({ limit: 1, now: 1 });
  await keys.getKey(key.id);
  await keys.getKeys([key.id]);
  await keys.createFirstKey({ name: "first", plan: "free", createdAt: 1 }, SECRET, BY);
  await keys.announceExpiries(1, BY);
  await keys.listSecrets([key.id]);
  for (const name of ["Rex", "Tom", "Max"]) await store.createPet({ ...rex, name }, 1, REQUEST);
  await store.createPet(rex, 2 * DAY_MS);
  await store.placeOrder({ keyId: 1, petId: 1n }, 1);
  await store.updateOrder({ keyId: 1, id: 1n, status: "cancelled" }, 0);
  await store.getPet(1n);
  await store.getOrder(1, 1n);
  await inventory.getOrder(1n);
  for (const [, filters] of PET_FILTER_SETS) await inventory.searchPets("Rex", { limit: 1, ...filters });
  await inventory.createPet({ name: "Kim", categoryId: 1n }, BY);
  await inventory.updateOrder(1n, "completed", BY);
  await inventory.updatePet(1n, { name: "Tom", status: "sold" }, BY);
  await inventory.deletePet(2n, BY);
  for (const [, filters] of PET_FILTER_SETS) {
    for (const ids of [undefined, [1n, 3n]]) {
      await store.listPets({ limit: 1, ids, ...filters });
      petJson.list({ limit: 1, ids, ...filters });
    }
  }
  petJson.get(1);
  for (const [, filters] of filterSets(ORDER_FILTER_VALUES)) {
    await store.listOrders(1, { limit: 1, ...filters });
    for (const others of [{}, { keyId: 1 }, { petId: 1n, keyId: 1 }])
      await inventory.listOrders({ limit: 1, ...others, ...filters });
  }
  await audit.listAudit({ limit: 1 });
  await audit.recordAudit({ ...BY, action: "data.imported" });
  await audit.deleteAudit(1);
  const counts = { admitted: 1, limited: 0, banned: 0, errors: 0, byOperation: [] };
  const usage = { keyId: key.id, lastUsedAt: 1, ...counts };
  await usageHistory.addUsage({ writer: "w", sequence: 1, hour: 0, keys: [usage] });
  for (const by of ["hour", "day"] as const) {
    await usageHistory.readUsage({ keyId: key.id, by, since: 0, until: 1 });
    await usageHistory.usageByKey({ by, since: 0, until: 1 });
  }
  await usageHistory.lastUsed([key.id]);
  await usageHistory.countDeprecatedUse(0);
  await usageHistory.deleteOldUsage(DAY_MS);
  await useSmallTables(rest);
}

type SmallStores = Pick<
  Stores,
  "operators" | "policies" | "settings" | "serverReports" | "questions" | "webhooks"
>;

async function useSmallTables({ operators, policies, settings, webhooks, ...rest }: SmallStores) {
  const ann = { name: "ann", role: "admin" } as const;
  const hashOf = (letter: string) => letter.repeat(64);
  const tokenOf = (letter: string) => ({ hash: hashOf(letter), hint: "hint" });
  await operators.createFirstOperator(ann, tokenOf("a"), BY);
  await operators.createOperator({ ...ann, name: "bob" }, tokenOf("b"), BY);
  await operators.importOperator({ ...ann, name: "eve" }, tokenOf("c"), BY);
  await operators.updateOperator(1, { expiresAt: null }, BY);
  await operators.rotateOperator(1, { ...tokenOf("e"), overlapEndsAt: BY.at + 1 }, BY);
  await operators.rotateOperator(1, tokenOf("d"), BY);
  await operators.recordUse(1, DAY_MS);
  const session = {
    operatorId: 1,
    cookieHash: hashOf("c"),
    secretHash: hashOf("s"),
    tokenHash: hashOf("d"),
    createdAt: 1,
    endsAt: DAY_MS,
  };
  await operators.createSession(session, { ...BY, action: "admin.signed-in" });
  await operators.rotateOperator(1, { ...tokenOf("f"), keeps: hashOf("c") }, BY);
  await operators.deleteSession(hashOf("c"), { ...BY, action: "admin.signed-out" });
  await operators.deleteSessions(1, BY);
  await operators.createCode({ codeHash: hashOf("c"), operatorId: 1, endsAt: DAY_MS }, 1);
  await operators.takeCode(hashOf("c"));
  await operators.revokeOperator(2, BY);
  await operators.readAccess();
  await operators.listOperators();
  await policies.readPolicy();
  await policies.updatePolicy({ ban: { strikes: 11 } }, BY);
  await policies.countKeys();
  await settings.saveSettings({ a: "b" });
  await settings.readSettings();
  const { serverReports, questions } = rest;
  await serverReports.report("a", "{}");
  await serverReports.listReports();
  await serverReports.deleteReports(["a"]);
  await questions.ask([{ id: "q", operation: "getSettings", query: "" }]);
  await questions.take("a", "machine");
  await questions.answer("q", "{}");
  await questions.readAnswers(["q"]);
  await questions.forget(["q"]);
  const state = await webhooks.openWebhook("source", 0);
  await webhooks.readWebhook();
  await webhooks.takeWebhook("server", state);
  await webhooks.saveWebhook("server", { ...state, beat: 1, position: 1n });
  await webhooks.countWaiting(0n, new Set(["key.created"]));
  await webhooks.countWaiting(0n, undefined);
  await webhooks.releaseWebhook("server");
}

const PET_FILTER_SETS = filterSets(PET_FILTER_VALUES);

/** Every statement that the stores prepare, with the plan of SQLite. */
async function readPlans(): Promise<ReadonlyMap<string, string>> {
  using directory = temporaryDirectory();
  // The statements of the migrations read whole tables.
  await openSqlite(directory.path("store.db")).close();
  const recorded = new Set<string>();
  const { prepared } = Connection.prototype;
  Connection.prototype.prepared = function <Row>(this: Connection, sql: string) {
    recorded.add(sql.replaceAll(/\s+/g, " "));
    return prepared.call<Connection, [string], ReturnType<typeof prepared<Row>>>(this, sql);
  };
  const stores = openSqlite(directory.path("store.db"));
  await useAll(calls.recordedStores(stores));
  await stores.close();
  Connection.prototype.prepared = prepared;
  using database = new Database(directory.path("store.db"), { safeIntegers: true, strict: true });
  const statements = [...recorded].filter((sql) => /^(SELECT|UPDATE|DELETE)/.test(sql));
  return new Map(statements.map((sql) => [sql, planOf(database, sql)]));
}

function planOf(database: Database, sql: string): string {
  const numbered = new Set(sql.match(/\?\d+/g)).size;
  const parameters = numbered || (sql.match(/\?/g)?.length ?? 0);
  const explain = database.query<{ detail: string }, SQLQueryBindings[]>(`EXPLAIN QUERY PLAN ${sql}`);
  const steps = explain.all(...Array.from({ length: parameters }, () => 1));
  // The scan of a subquery's result; the subquery has its own steps.
  const subqueries = steps.flatMap(({ detail }) => /^CO-ROUTINE (.*)$/.exec(detail)?.[1] ?? []);
  const results = new Set(
    ["CONSTANT ROW", ...subqueries].flatMap((name) => [`SCAN ${name}`, `CO-ROUTINE ${name}`]),
  );
  const tables = steps.filter(({ detail }) => !results.has(detail));
  return tables.map(({ detail }) => detail).join("; ");
}

const calls = new PortCalls();
const plans = await readPlans();

test("every method of the stores is called", () => {
  expect(calls.missing(STORE_PORTS.values())).toEqual([]);
});

/** Tables that stay small. */
const SMALL =
  /\b(FROM|UPDATE) (operator(s|_sessions)|sign_in_codes|plans|ban_rules|servers?(_settings|_questions)?|webhook)\b/;

/**
 * These scan on purpose: a list of values, the first key, the number of keys, the keys that were used, the single
 * revisions, the steps of the schema, the last pet, the first idempotency records, the last batch of each process,
 * and the tokens that overlap with later ones, of which an index has few.
 */
const SCANS = [
  SMALL,
  /^SELECT id FROM api_keys ORDER BY id LIMIT 1$/,
  /^SELECT count\(\*\) FILTER .* FROM api_keys WHERE revoked_at IS NULL$/,
  /^SELECT .* IN \(SELECT value FROM json_each\(\?\d?\)\)/,
  /^SELECT \(SELECT min\(start\) FROM (usage_hours|usage_days)\)/,
  /^SELECT key_id AS "keyId" FROM key_last_used ORDER BY key_id$/,
  /^DELETE FROM usage_batches WHERE hour < \?$/,
  /^SELECT hash, .* FROM operator_tokens WHERE valid_until IS NOT NULL$/,
  /key_revision/,
  /pet_revision/,
  /schema_migrations/,
  /^SELECT id FROM pets ORDER BY id DESC LIMIT 1$/,
  /^SELECT created_at AS createdAt FROM attempts ORDER BY id LIMIT 1$/,
  /^DELETE FROM attempts WHERE id IN \(SELECT id FROM attempts ORDER BY id LIMIT \+\?\)/,
];

/** The keys with the most requests come first. */
const MOST_REQUESTS = /^SELECT .* FROM (usage_hours|usage_days) WHERE .* GROUP BY key_id/;
const SORTS = [SMALL, MOST_REQUESTS];

test("no statement scans a table or sorts", () => {
  expect(plans.size).toBeGreaterThan(40);
  for (const [sql, plan] of plans) {
    const isOneOf = (patterns: readonly RegExp[]) => patterns.some((pattern) => pattern.test(sql));
    if (!isOneOf(SCANS)) expect(`${sql}: ${plan}`).not.toContain("SCAN");
    if (!isOneOf(SORTS)) expect(`${sql}: ${plan}`).not.toContain("TEMP B-TREE");
  }
});

/** The steps of a statement on the empty tables of the store. */
function explain({ sql, values }: Statement) {
  using database = new Database(":memory:", { safeIntegers: true, strict: true });
  for (const migration of SQLITE_MIGRATIONS) database.run(migration.sql);
  const step = `EXPLAIN QUERY PLAN ${sql}`;
  return database
    .query<{ id: bigint; parent: bigint; detail: string }, SQLQueryBindings[]>(step)
    .all(...values);
}

const IN_ORDER = "SEARCH api_keys USING INTEGER PRIMARY KEY (rowid>?)";
const SORTED = "USE TEMP B-TREE FOR ORDER BY";
const LAST_USED = "SEARCH key_last_used USING INTEGER PRIMARY KEY (rowid=?) LEFT-JOIN";
const GIVEN = ["MATERIALIZE windows", "SCAN jsonb_each VIRTUAL TABLE INDEX 1:"];
const BLOOM = "BLOOM FILTER ON windows (key_id=?)";
const MANY = Array.from({ length: 1_000 }, (_, i) => [i, i] as const);
const TODAY = "SEARCH windows USING AUTOMATIC COVERING INDEX (key_id=?) LEFT-JOIN";

test.each<[plan: string[], query: Partial<KeyListQuery>]>([
  [[IN_ORDER], {}],
  [[IN_ORDER], { filter: { isRevoked: false } }],
  [[IN_ORDER], { filter: { isRevoked: true }, after: 5 }],
  [["SEARCH api_keys USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"], { isDescending: true, after: 5 }],
  [[IN_ORDER], { filter: { isRevoked: false, plan: "pro", owner: "Ann" } }],
  [[IN_ORDER, SORTED], { sort: "name" }],
  [[IN_ORDER, LAST_USED], { filter: { unusedSince: 1, isRevoked: false } }],
  [[IN_ORDER, LAST_USED, SORTED], { sort: "lastUsedAt" }],
  [[...GIVEN, IN_ORDER, BLOOM, TODAY, SORTED], { sort: "usedToday", usedToday: MANY, after: 5 }],
])("a page of keys reads each key once, and what it is sorted by from an index: %p", (plan, query) => {
  expect(keyListPlan(query)).toEqual(plan);
});

test("deprecated calls are found by their operation", () => {
  const plan = keyListPlan({ filter: { deprecatedSince: 1 } });
  expect(plan).toContain("SEARCH deprecated_use USING PRIMARY KEY (operation=?)");
});

function keyListPlan(query: Partial<KeyListQuery>): string[] {
  const page = keyPage({ limit: 50, now: 7, ...query }, SQLITE_DIALECT, { revokedAt: null, value: 1 });
  return explain(page).map(({ detail }) => detail);
}

test("pets that are selected by identifiers are looked up by them, also with filters", () => {
  const byIds = [...plans].filter(([sql]) => sql.includes("FROM pets WHERE id IN (SELECT value"));
  expect(byIds).toHaveLength(2 * PET_FILTER_SETS.length);
  for (const [sql, plan] of byIds)
    expect(`${sql}: ${plan}`).toContain(": SEARCH pets USING INTEGER PRIMARY KEY (rowid=?); ");
});

test.each(PET_FILTER_SETS)(
  "a page of pets filtered by %s is read from an index with all of these columns",
  (_, filters) => {
    const columns = Object.keys(filters).map(columnOf);
    const steps = explain(petPage({ ...filters, limit: 1 }, SQLITE_DIALECT)).map(({ detail }) => detail);
    expectPetSteps(columns, steps);
  },
);

/** The steps of a page of pets: from the index, and then the recent pets that are not in it, from an identifier on. */
function expectPetSteps(columns: readonly string[], steps: readonly string[]): void {
  const isMerged = columns[0] === "category_id";
  const isFound = columns.length === 0 ? IN_ORDER_OF_ID : indexOn(columns, ">", "( AND status=\\?)?");
  const isRecent = /^(SCAN pet_revision|SEARCH pets USING INTEGER PRIMARY KEY \(rowid>\?\))$/;
  const read = steps.filter((step) => !/^(MERGE \(UNION ALL\)|LEFT|RIGHT|SCALAR SUBQUERY \d+)$/.test(step));
  if (isMerged) expect(read.filter((step) => isRecent.test(step))).toHaveLength(2);
  const others = isMerged ? read.filter((step) => !isRecent.test(step)) : read;
  expect(others.length).toBeGreaterThan(0);
  for (const step of others) expect(step).toMatch(isFound);
}

test.each(filterSets(ORDER_FILTER_VALUES))(
  "a page of orders filtered by %s is read from an index",
  (_, filters) => {
    const [first] = Object.keys(filters).map(columnOf);
    const given = first === undefined ? [] : [first];
    const page = { ...filters, limit: 1 };
    const [ofKey] = explain(orderPageOfKey(1, page, SQLITE_DIALECT));
    expect(ofKey?.detail).toMatch(indexOn(["key_id", ...given], ">"));
    const [ofAny] = explain(orderPage(page, SQLITE_DIALECT).page);
    expect(ofAny?.detail).toMatch(first === undefined ? IN_ORDER_OF_ID : indexOn(given, "<"));
    const [ofOneKey] = explain(orderPage({ ...page, keyId: 1 }, SQLITE_DIALECT).page);
    expect(ofOneKey?.detail).toMatch(indexOn(["key_id", ...given], "<"));
    const ofPet = explain(orderPage({ ...page, petId: 1n, keyId: 1 }, SQLITE_DIALECT).page);
    expect(ofPet.find(({ detail }) => detail.startsWith("SEARCH"))?.detail).toMatch(indexOn(["pet_id"], "<"));
  },
);

const IN_ORDER_OF_ID = /^SEARCH \w+ USING INTEGER PRIMARY KEY \(rowid[<>]\?\)$/;

/** The use of an index that begins with these columns; `id` is the rowid, which ends every index. */
function indexOn(columns: readonly string[], follows: string, merged = ""): RegExp {
  const equal = columns.map((column) => `${column}=\\?`).join(" AND ");
  return new RegExp(`USING (COVERING )?INDEX \\w+ \\(${equal}${merged} AND (id|rowid)${follows}\\?\\)$`);
}

test("the pages of clients use these indexes, too", () => {
  const isOfOperators = (sql: string) => /SELECT \*|OFFSET/.test(sql);
  const pages = [...plans].filter(
    ([sql]) => /FROM pets (INDEXED BY \w+ )?WHERE .*\bid > .* LIMIT/.test(sql) && !isOfOperators(sql),
  );
  // The store reads a page, and the JSON of a page; a further statement finds out whether a filtered page is the last.
  expect(pages).toHaveLength(3 * PET_FILTER_SETS.length - 1);
  for (const [sql, plan] of pages) {
    const columns = new Set(Array.from(sql.matchAll(/(\w+) = \?/g), ([, column = ""]) => column));
    expectPetSteps([...columns], plan.split("; "));
  }
});

const KEY = { kind: "key", id: 7n } as const;

test.each<[index: string, query: Omit<AuditQuery, "limit">]>([
  ["audit_by_time", {}],
  ["audit_by_time", { since: 1, until: 2 }],
  ["audit_by_time", { until: 2, before: 5n }],
  ["audit_by_target", { target: KEY }],
  ["audit_by_target", { target: KEY, since: 1, before: 5n }],
  ["audit_by_action", { action: "key.banned" }],
  ["audit_by_action", { action: "key.banned", until: 2, before: 5n }],
  ["audit_by_actor", { actor: "console" }],
  ["audit_by_actor", { actor: "console", since: 1 }],
  ["audit_by_action_and_actor", { action: "key.banned", actor: "console" }],
  ["audit_by_action_and_actor", { action: "key.banned", actor: "console", until: 2, before: 5n }],
  ["audit_by_target", { target: KEY, action: "key.banned", actor: "console", since: 1 }],
])("a page of the audit trail is read from %s and not sorted, case %#", (index, query) => {
  const steps = explain(auditPage({ ...query, limit: 50 }, SQLITE_DIALECT).page);
  const plan = steps.map(({ detail }) => detail).join("; ");
  expect(plan).toMatch(new RegExp(`^(CO-ROUTINE audit; )?(SEARCH|SCAN) audit USING INDEX ${index}\\b`));
  expect(plan).not.toContain("TEMP B-TREE");
});
