import { join } from "node:path";
import type { Environment } from "../domain/api-keys.ts";

/** Which data: an environment, and where everything of it is kept. */
export interface Place {
  readonly environment: Environment;
  readonly dataDir: string;
  /** PostgreSQL for the data; undefined means SQLite in `dataDir`. */
  readonly databaseUrl?: string;
  /** Valkey for the limits: one server, or several hosts of a cluster; undefined means in process. */
  readonly limitsUrls?: readonly string[];
}

/** The files of an environment: its data, the counts of its limits, and the lock that one server holds. */
export function pathsOf({ dataDir, environment }: Place): Record<"store" | "usageStore" | "lock", string> {
  const path = join(dataDir, environment);
  return { store: `${path}.db`, usageStore: `${path}-limits.db`, lock: `${path}.lock` };
}

/** Where the data and the counts are, in words; who may use them stays unsaid. */
export function whereIs({ dataDir, databaseUrl, limitsUrls }: Place): { data: string; limits: string } {
  return {
    data: databaseUrl === undefined ? dataDir : `PostgreSQL at ${addressOf(databaseUrl)}`,
    limits: limitsUrls === undefined ? "in process" : `Valkey at ${limitsUrls.map(addressOf).join(", ")}`,
  };
}

function addressOf(url: string): string {
  const { host, pathname } = new URL(url);
  return host + pathname.replace(/\/$/, "");
}
