/** What is asked of every server. A work is one kind of request, or several in fixed proportions. */
export type Ask = "list" | "filtered" | "deep" | "get" | "get-one" | "create";

/** Which key the requests carry: one without bounds, one whose limit is used up, an unknown one, or none. */
export type Credential = "open" | "spent" | "unknown" | "none";

export interface Work {
  readonly id: string;
  readonly title: string;
  readonly connections: number;
  /** Of a hundred requests, how many ask what. */
  readonly asks: Readonly<Partial<Record<Ask, number>>>;
  readonly credential: Credential;
  /** Undefined where the asks differ; each then answers its own. */
  readonly status?: number;
}

/** Enough to keep any of the servers busy, and few enough that none of them queues for long. */
const CONNECTIONS = 64;

const reading = { connections: CONNECTIONS, credential: "open", status: 200 } as const;
const writing = { asks: { create: 100 }, credential: "open", status: 201 } as const;

export const WORKS = [
  { id: "list", title: "list, first page", asks: { list: 100 }, ...reading },
  { id: "deep", title: "list, random deep pages", asks: { deep: 100 }, ...reading },
  { id: "filtered", title: "list, filtered by status", asks: { filtered: 100 }, ...reading },
  { id: "get", title: "get, random animals", asks: { get: 100 }, ...reading },
  { id: "get-one", title: "get, one animal", asks: { "get-one": 100 }, ...reading },
  { id: "create-1", title: "create, 1 connection", connections: 1, ...writing },
  { id: "create-32", title: "create, 32 connections", connections: 32, ...writing },
  { id: "create-256", title: "create, 256 connections", connections: 256, ...writing },
  {
    id: "mix",
    title: "90 list, 9 get, 1 create",
    connections: CONNECTIONS,
    asks: { list: 90, get: 9, create: 1 },
    credential: "open",
  },
  { id: "401", title: "401, no key", asks: { list: 100 }, ...reading, credential: "none", status: 401 },
  {
    id: "401-unknown",
    title: "401, unknown key",
    asks: { list: 100 },
    ...reading,
    credential: "unknown",
    status: 401,
  },
  {
    id: "429",
    title: "429, limit used up",
    asks: { list: 100 },
    ...reading,
    credential: "spent",
    status: 429,
  },
] as const satisfies readonly Work[];

export type WorkId = (typeof WORKS)[number]["id"];

export function workOf(id: WorkId): Work {
  const found = WORKS.find((work) => work.id === id);
  if (found === undefined) throw new Error(`no such work: ${id}`);
  return found;
}

const OWN_STATUS: Record<Ask, number> = {
  list: 200,
  filtered: 200,
  deep: 200,
  get: 200,
  "get-one": 200,
  create: 201,
};

export function statusOf(work: Work, ask: Ask): number {
  return work.status ?? OWN_STATUS[ask];
}

export function asksOf(work: Work): readonly Ask[] {
  return Object.keys(work.asks) as Ask[];
}

/** Measured apart from the rounds: latency at half load, growth with the table, starts, and the limiter by itself. */
export const SECTIONS = ["paced", "growth", "start", "limiter"] as const;
export type Section = (typeof SECTIONS)[number];
