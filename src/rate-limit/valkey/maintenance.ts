import { DEFAULT_BAN, LONGEST_BAN_MS, type Subject, type Usage } from "../../domain/rate-limit.ts";
import { ValkeyConnection, parseServers, loggableError } from "./connection.ts";

/** Reads and writes the usage of many keys, for whoever moves it to or from Valkey. */

interface UsageCopyOptions {
  readonly url: string | readonly string[];
  readonly ca?: string;
  readonly prefix: string;
}

/** Servers shorten a ban that is longer than their settings allow; a copy keeps it as it is. */
const BAN_RULES = { ...DEFAULT_BAN, maxLengthMs: LONGEST_BAN_MS };
/** Nothing but the copy waits for Valkey. */
const TIMEOUT_MS = 10_000;
/** Commands that are sent before the first one is answered. */
const AT_ONCE = 100;

export class UsageCopy {
  private constructor(private readonly connection: ValkeyConnection) {}

  static async open({ url, ca, prefix }: UsageCopyOptions): Promise<UsageCopy> {
    const settings = {
      servers: parseServers(url, ca),
      prefix,
      ban: BAN_RULES,
      backgroundTimeoutMs: TIMEOUT_MS,
    };
    try {
      return new UsageCopy(await ValkeyConnection.open(settings, { kind: "key", id: 1 }));
    } catch (cause) {
      throw loggableError(cause);
    }
  }

  /** Of those keys that have any. */
  async read(ids: readonly number[]): Promise<[Subject, Usage][]> {
    const found: [Subject, Usage][] = [];
    for (let from = 0; from < ids.length; from += AT_ONCE) {
      const subjects = ids.slice(from, from + AT_ONCE).map((id): Subject => ({ kind: "key", id }));
      const usages = await Promise.all(subjects.map((subject) => this.connection.usage(subject)));
      for (const [i, subject] of subjects.entries()) {
        const usage = usages[i];
        if (usage) found.push([subject, usage]);
      }
    }
    return found;
  }

  /** Replaces the usage of each key. Returns how many have any: usage that has expired is not written. */
  async write(entries: readonly (readonly [Subject, Usage])[]): Promise<number> {
    let count = 0;
    for (let from = 0; from < entries.length; from += AT_ONCE) {
      const some = entries.slice(from, from + AT_ONCE);
      const stored = await Promise.all(
        some.map(([subject, usage]) => this.connection.setUsage(subject, usage)),
      );
      for (const [i, [subject, usage]] of some.entries()) {
        const result = stored[i];
        if (result === undefined) continue;
        if (!isSame(usage, result))
          throw new Error(`Valkey stores another usage of key ${subject.id} than was sent`);
        count++;
      }
    }
    return count;
  }

  close(): void {
    this.connection.close();
  }
}

/** A window that has closed meanwhile is empty. */
function isSame(sent: Usage, stored: Usage): boolean {
  const sameCount = (name: "minute" | "day") => [sent[name].used, 0].includes(stored[name].used);
  return sameCount("minute") && sameCount("day") && [sent.bannedUntil, -1].includes(stored.bannedUntil);
}

interface ValkeyState {
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

interface InspectOptions {
  readonly urls: readonly string[];
  readonly ca?: string;
  readonly prefix: string;
  readonly now: () => number;
}

/** Connects as a server does, and runs the script of the rate limits on a temporary key. */
export async function inspectValkey({ urls, ca, prefix, now }: InspectOptions): Promise<ValkeyState> {
  const [only = ""] = urls;
  const servers = parseServers(urls.length === 1 ? only : urls, ca);
  let connection: ValkeyConnection | undefined;
  try {
    connection = await ValkeyConnection.open({ servers, prefix, ban: DEFAULT_BAN }, { kind: "key", id: 1 });
    // The register needs more permissions than the limits.
    await connection.servers();
    const before = now();
    const time = await connection.time();
    const clockDifferenceMs = Math.round(time - (before + now()) / 2);
    return { clockDifferenceMs, information: await informationOf(connection) };
  } catch (cause) {
    throw loggableError(cause);
  } finally {
    connection?.close();
  }
}

async function informationOf(connection: ValkeyConnection): Promise<ValkeyInformation | undefined> {
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
