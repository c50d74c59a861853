import type { RequestPart } from "../harness/wrk.ts";
import { CANDIDATES, type CandidateId } from "./candidates.ts";
import type { Dataset } from "./dataset.ts";

export type RequestKind = "list" | "filtered" | "deep" | "get" | "get-one" | "create";

export type WorkloadId =
  | ("list" | "deep" | "filtered" | "get" | "get-one" | "create-1" | "create-32" | "create-256")
  | ("mix" | "401" | "401-unknown" | "429");

/** What every server is measured with: one kind of request, or several in fixed proportions. */
export interface Workload {
  readonly id: WorkloadId;
  readonly title: string;
  /** Percent of the requests. */
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
  // Enough connections to keep any server busy, and few enough that requests do not queue for long.
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

/** In the middle of the smallest table. */
const ONE_PET = 500;

export function requestOf(
  kind: RequestKind,
  { key, mix }: Workload,
  id: CandidateId,
  { keys, values }: Dataset,
): RequestPart {
  const share = mix[kind] ?? 0;
  const server = CANDIDATES[id].kind;
  const resource = server === "mock" ? "/pets" : "/v1/pets";
  const cursors = server === "petstore" || server === "replay" ? values.opaqueCursors : values.plainCursors;
  const authorization = key === "none" ? "" : `Authorization: Bearer ${keys[key]}\r\n`;
  const head = ` HTTP/1.1\r\nHost: 127.0.0.1\r\n${authorization}`;
  const get = (path: string) => ({ prefix: `GET ${resource}${path}`, suffix: `${head}\r\n`, share });
  switch (kind) {
    case "list":
      return get("");
    case "filtered":
      return get("?status=sold");
    case "deep":
      return { ...get("?cursor="), values: cursors };
    case "get":
      return { ...get("/"), values: values.ids };
    case "get-one":
      return get(`/${ONE_PET}`);
    case "create": {
      const type = `Content-Type: application/json\r\nContent-Length: ${values.bodies[0]?.length}\r\n\r\n`;
      return { prefix: `POST ${resource}${head}${type}`, suffix: "", share, values: values.bodies };
    }
  }
}
