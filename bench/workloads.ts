import { encodeCursor } from "../src/domain/cursor.ts";
import { Random } from "../trials/harness/random.ts";
import type { RequestPart } from "../trials/harness/wrk.ts";

/** The frameworks of Node and of Bun that were fastest at the same job. */
export const PEERS = ["fastify", "hono"] as const;
export type PeerId = (typeof PEERS)[number];
export type CandidateId = "bare" | "ours" | PeerId;

/** The titles of the measured servers, in the order of the tables. The bare route repeats Petstore's responses. */
export const TITLES: Readonly<Record<CandidateId, string>> = {
  bare: "Bun.serve, bare route",
  ours: "Petstore",
  fastify: "Fastify + @fastify/rate-limit",
  hono: "Hono + hono-rate-limiter, on Bun",
};

export function isPeer(id: CandidateId): id is PeerId {
  return PEERS.some((peer) => peer === id);
}

export type RequestKind = "list" | "filtered" | "deep" | "get" | "get-one" | "create";

export type WorkloadId =
  | ("list" | "deep" | "filtered" | "get" | "get-one" | "create-1" | "create-32" | "create-256")
  | ("mix" | "401" | "401-unknown" | "429");

/** A workload for every server: one kind of request, or several in fixed proportions. */
export interface Workload {
  readonly id: WorkloadId;
  readonly title: string;
  /** The percentages of the requests. */
  readonly mix: Readonly<Partial<Record<RequestKind, number>>>;
  readonly connections: number;
  /** The API key of the requests: without limits, over its limit, one that does not exist, or none. */
  readonly key: "unlimited" | "exhausted" | "unknown" | "none";
  /** The status of all responses, if requests are rejected. */
  readonly rejection?: 401 | 429;
}

function workload(
  id: WorkloadId,
  title: string,
  mix: Workload["mix"],
  options: Partial<Workload> = {},
): Workload {
  // This is enough connections to keep any server busy, and few enough that requests do not queue for long.
  return { id, title, mix, connections: 64, key: "unlimited", ...options };
}

export const WORKLOADS = [
  workload("list", "list, first page", { list: 100 }),
  workload("deep", "list, random deep pages", { deep: 100 }),
  workload("filtered", "list, filtered by status", { filtered: 100 }),
  workload("get", "get, random pets", { get: 100 }),
  workload("get-one", "get, one pet", { "get-one": 100 }),
  workload("create-1", "create, 1 connection", { create: 100 }, { connections: 1 }),
  workload("create-32", "create, 32 connections", { create: 100 }, { connections: 32 }),
  workload("create-256", "create, 256 connections", { create: 100 }, { connections: 256 }),
  workload("mix", "90 list, 9 get, 1 create", { list: 90, get: 9, create: 1 }),
  workload("401", "401, no key", { list: 100 }, { key: "none", rejection: 401 }),
  workload("401-unknown", "401, unknown key", { list: 100 }, { key: "unknown", rejection: 401 }),
  workload("429", "429, rate limit exceeded", { list: 100 }, { key: "exhausted", rejection: 429 }),
];

export function workloadOf(id: WorkloadId): Workload {
  const found = WORKLOADS.find((each) => each.id === id);
  if (found === undefined) throw new Error(`no such workload: ${id}`);
  return found;
}

export function kindsOf({ mix }: Workload): readonly RequestKind[] {
  return Object.keys(mix) as RequestKind[];
}

export function statusOf({ rejection }: Workload, kind: RequestKind): number {
  return rejection ?? (kind === "create" ? 201 : 200);
}

/** The identifier of a pet in the middle of the smallest table. */
const ONE_PET = 500;

export interface RequestSource {
  readonly keys: Readonly<Record<Exclude<Workload["key"], "none">, string>>;
  readonly values: ReturnType<typeof requestValues>;
}

export function requestOf(
  kind: RequestKind,
  { key, mix }: Workload,
  id: CandidateId,
  { keys, values }: RequestSource,
): RequestPart {
  const share = mix[kind] ?? 0;
  const authorization = key === "none" ? "" : `Authorization: Bearer ${keys[key]}\r\n`;
  const head = ` HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}`;
  const get = (path: string) => ({ prefix: `GET /v1/pets${path}`, suffix: `${head}\r\n`, share });
  switch (kind) {
    case "list":
      return get("");
    case "filtered":
      return get("?status=sold");
    case "deep":
      return { ...get("?cursor="), values: isPeer(id) ? values.plainCursors : values.opaqueCursors };
    case "get":
      return { ...get("/"), values: values.ids };
    case "get-one":
      return get(`/${ONE_PET}`);
    case "create": {
      const type = `Content-Type: application/json\r\nContent-Length: ${values.bodies[0]?.length}\r\n\r\n`;
      return { prefix: `POST /v1/pets${head}${type}`, suffix: "", share, values: values.bodies };
    }
  }
}

const MAX_VALUES = 100_000;
const BODIES = 1_000;
/** The distance to the end within which a cursor begins a page that is not full. */
const TAIL = 21;

/**
 * Makes the values for requests. They are spread evenly over the table and shuffled, so that a value is repeated only
 * after all others were used.
 */
export function requestValues(pets: number) {
  const cursors = spread(pets - TAIL);
  return {
    opaqueCursors: cursors.map((after) => encodeCursor("pets", BigInt(after))),
    /** The cursors in the format of the peers. */
    plainCursors: cursors.map(String),
    ids: spread(pets).map(String),
    bodies: Array.from({ length: BODIES }, (_, n) => petBody(n)),
  };
}

/** The body of a new pet. All bodies have the same length, so that one Content-Length fits. */
function petBody(n: number): string {
  const name = `Rex ${String(n).padStart(4, "0")}`;
  return JSON.stringify({ name, categoryId: 10 + (n % 90), status: "available" });
}

/** Shuffles numbers, in the same order in every run. */
function spread(max: number): number[] {
  const random = new Random(42);
  const count = Math.min(max, MAX_VALUES);
  const values = Array.from({ length: count }, (_, i) => {
    return { value: Math.floor((i * max) / count) + 1, place: random.fraction() };
  });
  return values.toSorted((a, b) => a.place - b.place).map(({ value }) => value);
}
