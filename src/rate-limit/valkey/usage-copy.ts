/** Reads and writes the usage of many keys, for whoever moves it to or from Valkey. */
import { DEFAULT_BAN, LONGEST_BAN_MS, type Subject, type Usage } from "../../domain/rate-limit.ts";
import { Connection, parseServers, withoutSecrets } from "./connection.ts";

export interface UsageCopyOptions {
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
  private constructor(private readonly connection: Connection) {}

  static async open({ url, ca, prefix }: UsageCopyOptions): Promise<UsageCopy> {
    const settings = {
      servers: parseServers(url, ca),
      prefix,
      ban: BAN_RULES,
      backgroundTimeoutMs: TIMEOUT_MS,
    };
    try {
      return new UsageCopy(await Connection.open(settings, { kind: "key", id: 1 }));
    } catch (cause) {
      throw withoutSecrets(cause);
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
