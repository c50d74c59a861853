import type { WorkId } from "./work.ts";

export const PEERS = ["express", "fastify", "hono", "elysia", "prism"] as const;
export type PeerId = (typeof PEERS)[number];
export type ContestantId = "bare" | "socket" | "ours" | "nginx" | PeerId;

export interface Contestant {
  readonly id: ContestantId;
  readonly title: string;
  /** A limit does no work; a mock has neither data nor limits. */
  readonly kind: "ours" | "limit" | "node" | "bun" | "mock";
  /** The work it can do; undefined means all. */
  readonly works?: readonly WorkId[];
}

export const CONTESTANTS: readonly Contestant[] = [
  { id: "bare", title: "Bun.serve, bare route", kind: "limit" },
  { id: "ours", title: "Petstore", kind: "ours" },
  { id: "socket", title: "Bun.listen, bare socket", kind: "limit" },
  { id: "nginx", title: "nginx, return", kind: "limit" },
  { id: "express", title: "Express + express-rate-limit", kind: "node" },
  { id: "fastify", title: "Fastify + @fastify/rate-limit", kind: "node" },
  { id: "hono", title: "Hono + hono-rate-limiter, on Bun", kind: "bun" },
  { id: "elysia", title: "Elysia + elysia-rate-limit, on Bun", kind: "bun" },
  {
    id: "prism",
    title: "Prism, mocking our OpenAPI document",
    kind: "mock",
    works: ["list", "get", "create-32", "mix", "401"],
  },
];

export function contestant(id: ContestantId): Contestant {
  const found = CONTESTANTS.find((candidate) => candidate.id === id);
  if (found === undefined) throw new Error(`no such contestant: ${id}`);
  return found;
}

export function does({ works }: Contestant, work: WorkId): boolean {
  return works?.includes(work) ?? true;
}
