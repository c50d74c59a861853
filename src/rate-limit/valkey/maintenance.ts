/* What is done with Valkey besides limiting requests: copies and checks of commands, and the timeline of PostgreSQL. */

import type { Timeline } from "../../domain/timeline.ts";
import { COMMAND_BAN_RULES } from "../../domain/ban-rules.ts";
import type { Quota } from "../../domain/rate-limit.ts";
import { loggableError, parseServers, ValkeyConnection, type ValkeyOptions } from "./connection.ts";

/** Connects as a server does, and runs the script of the rate limits on a temporary key. */
async function withConnection<T>(
  { urls, ca, prefix }: ValkeyOptions,
  work: (connection: ValkeyConnection) => Promise<T>,
  backgroundTimeoutMs?: number,
): Promise<T> {
  const settings = {
    servers: parseServers(urls, ca),
    prefix,
    ban: () => COMMAND_BAN_RULES,
    backgroundTimeoutMs,
  };
  let connection: ValkeyConnection | undefined;
  try {
    connection = await ValkeyConnection.open(settings, { kind: "key", id: 1 });
    return await work(connection);
  } catch (cause) {
    throw loggableError(cause);
  } finally {
    connection?.close();
  }
}

/** Only the copy waits for Valkey. */
const COPY_TIMEOUT_MS = 10_000;
/** The commands that are sent before the first one has its reply. */
const AT_ONCE = 100;

/** Runs a command for each of many keys. */
function forEachKey<Item, Result>(
  options: ValkeyOptions,
  items: readonly Item[],
  command: (connection: ValkeyConnection, item: Item) => Promise<Result>,
): Promise<Result[]> {
  const work = async (connection: ValkeyConnection) => {
    const results: Result[] = [];
    for (let from = 0; from < items.length; from += AT_ONCE) {
      const some = items.slice(from, from + AT_ONCE);
      results.push(...(await Promise.all(some.map((item) => command(connection, item)))));
    }
    return results;
  };
  return withConnection(options, work, COPY_TIMEOUT_MS);
}

/** Returns the quotas of the keys that have one. */
export async function readQuotas(
  options: ValkeyOptions,
  ids: readonly number[],
): Promise<(readonly [number, Quota])[]> {
  const quotas = await forEachKey(options, ids, (connection, id) => connection.quota({ kind: "key", id }));
  return ids.flatMap((id, i) => {
    const { quota } = quotas[i] ?? {};
    return quota ? [[id, quota] as const] : [];
  });
}

/** Replaces the quota of each key. Returns for how many, because expired ones are not written. */
export async function writeQuotas(
  options: ValkeyOptions,
  quotas: readonly (readonly [number, Quota])[],
): Promise<number> {
  const written = await forEachKey(options, quotas, (connection, [id, quota]) =>
    connection.replaceQuota({ kind: "key", id }, quota),
  );
  return written.filter(Boolean).length;
}

/** Stores the timeline of PostgreSQL's primary, and resolves to the stored one. */
export function storeTimeline(
  options: ValkeyOptions,
  timeline: Timeline,
  condition: "if later" | "always",
): Promise<Timeline> {
  return withConnection(options, (connection) => connection.storeTimeline(timeline, condition));
}

interface ValkeyState {
  /** The time of Valkey's clock minus ours, in milliseconds, to the duration of a command. */
  readonly clockDifferenceMs: number;
  /** Undefined without the permission for INFO. */
  readonly information: ValkeyInformation | undefined;
}

export interface ValkeyInformation {
  readonly version: string;
  /** A policy such as `noeviction`. */
  readonly maxmemoryPolicy: string;
  /** 0 means no maximum. */
  readonly maxmemoryBytes: number;
}

export function inspectValkey(options: ValkeyOptions, now: () => number): Promise<ValkeyState> {
  return withConnection(options, async (connection) => {
    const before = now();
    const time = await connection.time();
    const clockDifferenceMs = Math.round(time - (before + now()) / 2);
    return { clockDifferenceMs, information: await informationOf(connection) };
  });
}

async function informationOf(connection: ValkeyConnection): Promise<ValkeyInformation | undefined> {
  const text = await connection.info().catch(() => undefined);
  if (text === undefined) return undefined;
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  return {
    version: field("valkey_version") || field("redis_version"),
    maxmemoryPolicy: field("maxmemory_policy"),
    maxmemoryBytes: Number(field("maxmemory")),
  };
}
