import { DEFAULT_BAN } from "../../domain/rate-limit.ts";
import { Connection, parseServers, withoutSecrets } from "./connection.ts";

export interface ValkeyState {
  /** Its clock minus ours, in milliseconds, give or take the time of a command. */
  readonly clockDifferenceMs: number;
  /** Undefined if the user may not ask for it. */
  readonly information: ValkeyInformation | undefined;
}

export interface ValkeyInformation {
  readonly version: string;
  /** `noeviction` and the like. */
  readonly maxmemoryPolicy: string;
  /** 0 means no maximum. */
  readonly maxmemoryBytes: number;
  readonly isReplica: boolean;
}

export interface InspectOptions {
  readonly urls: readonly string[];
  readonly ca?: string;
  readonly prefix: string;
  readonly now: () => number;
}

/** Connects as a server does, and runs the script of the rate limits on a temporary key. */
export async function inspectValkey({ urls, ca, prefix, now }: InspectOptions): Promise<ValkeyState> {
  const [only = ""] = urls;
  const servers = parseServers(urls.length === 1 ? only : urls, ca);
  let connection: Connection | undefined;
  try {
    connection = await Connection.open({ servers, prefix, ban: DEFAULT_BAN }, { kind: "key", id: 1 });
    const before = now();
    const time = await connection.time();
    const clockDifferenceMs = Math.round(time - (before + now()) / 2);
    return { clockDifferenceMs, information: await informationOf(connection) };
  } catch (cause) {
    throw withoutSecrets(cause);
  } finally {
    connection?.close();
  }
}

async function informationOf(connection: Connection): Promise<ValkeyInformation | undefined> {
  const text = await connection.info().catch(() => undefined);
  if (text === undefined) return undefined;
  const field = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(text)?.[1] ?? "";
  return {
    version: field("valkey_version") || field("redis_version"),
    maxmemoryPolicy: field("maxmemory_policy"),
    maxmemoryBytes: Number(field("maxmemory")),
    isReplica: field("role") === "slave",
  };
}
