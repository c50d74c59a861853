/* The requests of the growth benchmark: every operation of both tables, with every filter that its row has. */

import type { Operation } from "../../src/api/api.ts";
import { BASE_PATH } from "../../src/domain/paths.ts";
import { encodeCursor } from "../../src/domain/cursor.ts";
import { OPERATIONS, type PetstoreOperation } from "../../src/petstore/operations.ts";
import { ADMIN_BASE_PATH, ADMIN_OPERATIONS, type AdminOperation } from "../../src/operator/operations.ts";
import { DAY_MS } from "../../src/text/time-units.ts";
import { combinations, type ValuesOf } from "../../trials/harness/combinations.ts";
import type { GrowthRows } from "./rows.ts";

/** A request that is measured. */
export interface GrowthCase {
  readonly side: "client" | "operator";
  readonly operation: string;
  /** What distinguishes it from the other requests of the operation, the same for all scales. */
  readonly name: string;
  /** Makes the nth request. */
  readonly request: (n: number) => GrowthRequest;
  /** The operation whose responses the request names. */
  readonly needs: string | undefined;
  /** Takes from a response what later requests name. */
  readonly keep: ((body: Made) => void) | undefined;
}

export interface GrowthRequest {
  readonly method: string;
  readonly path: string;
  readonly key: string | undefined;
  readonly headers: readonly (readonly [string, string])[];
  readonly body: string | undefined;
}

/** The parts of responses that later requests name. */
interface Made {
  readonly id?: number;
  readonly operator?: { readonly id: number };
}

/** What the requests of one database know of it. */
export interface Facts {
  readonly rows: GrowthRows;
  /** Keys without limits. The usual one has most of the orders. */
  readonly keys: { readonly usual: string; readonly other: string };
  /** The tokens of admins. Each operator has a rate, so there are several. */
  readonly tokens: readonly string[];
  readonly now: number;
}

/** The inputs of an operation; one that lacks a parameter of its row does not compile. */
type Input<O> = (O extends { readonly query: infer Q }
  ? { readonly query: { readonly [Name in keyof Q]-?: readonly (string | number)[] } }
  : { readonly query?: undefined }) &
  (O extends { readonly identifier: object }
    ? { readonly id: (n: number) => number | string }
    : { readonly id?: undefined }) &
  (O extends { readonly body: object }
    ? { readonly body: (n: number) => object }
    : { readonly body?: undefined }) & { readonly needs?: string; readonly keep?: (made: Made) => void };
type Inputs<T> = { readonly [Id in keyof T]: Input<T[Id]> };
interface AnyInput {
  readonly query?: Readonly<Record<string, readonly (string | number)[]>> | undefined;
  readonly id?: ((n: number) => number | string) | undefined;
  readonly body?: ((n: number) => object) | undefined;
  readonly needs?: string;
  readonly keep?: (made: Made) => void;
}

const CURSOR_AT = 4_000n;

function clientInputs({ rows }: Facts): Inputs<typeof OPERATIONS> {
  const placed: number[] = [];
  const cursor = (list: "pets" | "orders") => [encodeCursor(list, CURSOR_AT)];
  return {
    listPets: {
      query: {
        // The categories of half of the pets, of most others, of some of the first and of none.
        categoryId: [1, 2, 40, 5_000],
        status: ["available", "pending", "sold"],
        limit: [100],
        id: [`1,${rows.pets / 2},${rows.pets}`],
        cursor: cursor("pets"),
      },
    },
    createPet: { body: (n) => ({ name: "Rex", categoryId: n % 90, status: "available" }) },
    getPet: { id: (n) => rows.pets / 2 + n },
    listOrders: {
      query: { status: ["placed", "completed", "cancelled"], limit: [100], cursor: cursor("orders") },
    },
    placeOrder: {
      // One pet in 20 can be ordered.
      body: (n) => ({ petId: 20 * n }),
      keep: ({ id }) => void (id !== undefined && placed.push(id)),
    },
    getOrder: { id: (n) => rows.orders / 2 + n },
    updateOrder: {
      needs: "placeOrder",
      id: () => placed.shift() ?? 0,
      body: () => ({ status: "completed" }),
    },
    getKey: {},
  };
}

function operatorInputs({ rows, tokens, keys, now }: Facts): Inputs<typeof ADMIN_OPERATIONS> {
  const operators: number[] = [];
  const ago = (days: number) => new Date(now - days * DAY_MS).toISOString();
  const cursor = (list: "pets" | "orders" | "keys" | "audit" | "usage" | "requests") => [
    encodeCursor(list, list === "keys" || list === "usage" || list === "requests" ? 500n : CURSOR_AT),
  ];
  const operatorAt = (n: number) => operators[n % operators.length] ?? 0;
  // Keys whose number ends in 1 are not revoked.
  const key = (first: number) => (n: number) => first + 10 * n + 1;
  const period = { since: [ago(400)], until: [ago(0)] };
  const ranges = { query: { range: ["15m", "24h"] } };
  const limit = [500];
  return {
    createSession: { body: () => ({ token: tokens[0] }) },
    beginSignIn: {},
    createSignInCode: {},
    getSession: {},
    deleteSession: {},
    deleteSessions: {},
    listOperators: { query: { name: ["growth-0"] } },
    createOperator: {
      body: (n) => ({ name: `growth-${n}`, role: "viewer" }),
      keep: ({ operator }) => void (operator && operators.push(operator.id)),
    },
    updateOperator: {
      needs: "createOperator",
      id: operatorAt,
      body: (n) => ({ role: n % 2 === 0 ? "support" : "viewer" }),
    },
    rotateOperator: { needs: "createOperator", id: operatorAt, body: () => ({}) },
    revokeOperator: { needs: "createOperator", id: operatorAt, body: () => ({}) },
    getServer: {},
    listServers: {},
    getWebhook: {},
    testWebhook: {},
    getOverview: ranges,
    getSeries: ranges,
    getSettings: {},
    listKeys: {
      query: {
        search: ["customer 99", "nobody"],
        plan: ["free", "enterprise"],
        state: ["active", "banned", "revoked"],
        access: ["write", "read"],
        label: ["team-7", "none"],
        owner: ["owner99@example.com"],
        unusedSince: [ago(30)],
        deprecatedSince: [ago(30)],
        expiresBefore: [new Date(now + 30 * DAY_MS).toISOString()],
        usedPercent: [80],
        revoked: ["exclude"],
        sort: ["name", "plan", "createdAt", "lastUsedAt", "usedToday"],
        order: ["desc"],
        limit,
        cursor: cursor("keys"),
      },
    },
    createKey: { body: (n) => ({ name: `growth-${n}`, plan: "free" }) },
    findKey: { body: () => ({ secret: keys.other }) },
    getKey: { id: key(10) },
    updateKey: { id: key(10), body: (n) => ({ owner: `team-${n}` }) },
    rotateKey: { id: key(10), body: () => ({}) },
    disableKey: { id: key(10), body: () => ({}) },
    enableKey: { id: key(10) },
    revokeKey: { id: key(300), body: () => ({}) },
    unbanKey: { id: key(10), body: () => ({}) },
    listBans: { query: { limit } },
    listPlans: {},
    updatePlan: { body: (n) => ({ plan: "pro", perMinute: 300 + (n % 2) }) },
    getBanRules: {},
    updateBanRules: { body: (n) => ({ strikes: 10 + (n % 2) }) },
    getKeyUsage: { id: () => 100, query: { by: ["hour", "day"], ...period } },
    getUsage: { query: { by: ["hour", "day"], ...period, limit: [10_000], cursor: cursor("usage") } },
    listRequests: {
      query: {
        scope: ["server"],
        keyId: [1, 500],
        status: ["200", "5xx"],
        code: ["pet_not_found"],
        operation: ["listPets"],
        address: ["127.0.0.1"],
        slowerThanMs: [1],
        requestId: ["none"],
        since: [ago(1)],
        until: [ago(-1)],
        limit,
        cursor: cursor("requests"),
      },
    },
    listAudit: {
      query: {
        action: ["key.updated", "key.revoked", "key.banned"],
        operator: ["bot", "ann", "nobody"],
        actor: ["admin API", "console", "server"],
        target: ["key:1", "key:90"],
        since: [new Date(500).toISOString()],
        until: [new Date(9_000).toISOString()],
        after: [1_000],
        limit,
        cursor: cursor("audit"),
      },
    },
    listPets: {
      query: {
        search: ["none", "rex"],
        categoryId: [1, 2, 40, 5_000],
        status: ["available", "pending", "sold"],
        limit,
        cursor: cursor("pets"),
      },
    },
    createPet: { body: (n) => ({ name: "Rex", categoryId: n % 90 }) },
    getPet: { id: (n) => rows.pets / 2 + n },
    updatePet: { id: (n) => rows.pets / 2 + n, body: () => ({ name: "Tom" }) },
    deletePet: { id: (n) => rows.pets - n },
    listOrders: {
      query: {
        status: ["placed", "completed", "cancelled"],
        keyId: [1, 7, 999],
        petId: [1, 7_600, 99_999],
        limit,
        cursor: cursor("orders"),
      },
    },
    getOrder: { id: (n) => rows.orders / 2 + n },
    // The only order of the data that is placed is the last of pet 1; a closed one may be closed as it is.
    updateOrder: { id: () => 100, body: () => ({ status: "cancelled" }) },
  };
}

/** Many requests together, for which the server stores what each key has used. */
export const MANY_GETS = {
  side: "client",
  operation: "9,000 getPet",
  name: "30 keys for each 1×, in turn",
} as const;
/** Sent one after the other, they take longer than the two seconds after which usage is stored. */
const MANY = 9_000;

export function manyGets(keys: readonly string[]): readonly GrowthRequest[] {
  return Array.from({ length: MANY }, (_, i) => ({
    method: "GET",
    path: `${BASE_PATH}/pets/${1 + (i % 1_000)}`,
    key: keys[i % keys.length],
    headers: [],
    body: undefined,
  }));
}

/** The most filters of operators together. Of those of clients, every set is measured. */
const OPERATORS_TOGETHER = 2;
/** What a name leaves out, because it depends on the scale, or on the time. */
const VARIED = new Set(["id", "cursor", "since", "until", "unusedSince", "deprecatedSince", "expiresBefore"]);

interface Front {
  readonly side: GrowthCase["side"];
  readonly basePath: string;
  /** The most filters together. */
  readonly togetherOf: (operation: Pick<AdminOperation, "needsRunningServer" | "method">) => number;
  /** The credentials, used in turn, with what they are. */
  readonly keysOf: (operation: Operation) => Readonly<Record<string, readonly string[]>>;
}

function casesOf<T extends Readonly<Record<string, Operation>>>(
  table: T,
  inputs: Readonly<Record<string, AnyInput>>,
  front: Front,
): readonly GrowthCase[] {
  return Object.entries(table).flatMap(([operation, row]) => {
    const input: AnyInput = inputs[operation] ?? {};
    const queries = combinations<Record<string, string | number>>(
      input.query ?? ({} as ValuesOf<Record<string, never>>),
      front.togetherOf(row),
    );
    return queries.flatMap((query) =>
      Object.entries(front.keysOf(row)).flatMap(([whose, credentials]) =>
        headersOf(row).map(([header, value]): GrowthCase => {
          const named = Object.entries(query).map(([name, given]) =>
            VARIED.has(name) ? name : `${name}=${given}`,
          );
          return {
            side: front.side,
            operation,
            name: [named.join("&"), header, whose].filter((part) => part !== "").join(", "),
            needs: input.needs,
            keep: input.keep,
            request(n) {
              const path = row.path.replace(/\{\w+\}/, String(input.id?.(n)));
              // A parameter that no operation has, so that no response is repeated from a cache.
              const search = new URLSearchParams({
                ...mapValues(query),
                ...(row.method === "GET" && front.side === "client" && { unused: String(n) }),
              });
              return {
                method: row.method,
                path: `${front.basePath}${path}${search.size > 0 ? `?${search}` : ""}`,
                key: credentials[n % credentials.length],
                headers: header === "" ? [] : [[header, value()]],
                body: input.body && JSON.stringify(input.body(n)),
              };
            },
          };
        }),
      ),
    );
  });
}

const mapValues = (query: Partial<Record<string, string | number>>) =>
  Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));

/** The headers that change what an operation does: each of them, and none. */
function headersOf(row: Operation): readonly (readonly [name: string, value: () => string])[] {
  // Only the operations of clients have these.
  const { acceptsIdempotencyKey, acceptsIfMatch } = row as Partial<PetstoreOperation>;
  return [
    ["", () => ""],
    ...(acceptsIdempotencyKey ? [["Idempotency-Key", () => crypto.randomUUID()] as const] : []),
    ...(acceptsIfMatch ? [["If-Match", () => "*"] as const] : []),
  ];
}

/** The requests of all operations, in the order in which each finds what the earlier ones have made. */
export function growthCases(facts: Facts): readonly GrowthCase[] {
  const { usual, other } = facts.keys;
  const ofClients = casesOf(OPERATIONS, clientInputs(facts), {
    side: "client",
    basePath: BASE_PATH,
    togetherOf: () => Infinity,
    // The usual key has most of the orders, the other one few.
    keysOf: ({ tag, query }): Record<string, readonly string[]> =>
      tag === "Orders" && query ? { "": [usual], "key with few orders": [other] } : { "": [usual] },
  });
  const ofOperators = casesOf(ADMIN_OPERATIONS, operatorInputs(facts), {
    side: "operator",
    basePath: ADMIN_BASE_PATH,
    // A server has the requests in memory.
    togetherOf: ({ needsRunningServer }) => (needsRunningServer ? 1 : OPERATORS_TOGETHER),
    keysOf: () => ({ "": facts.tokens }),
  });
  return [...ofClients, ...ofOperators];
}
