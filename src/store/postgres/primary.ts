import { messageOf } from "../../api/errors.ts";
import { hostUrls } from "../../api/host-urls.ts";
import { within } from "../../event-loop.ts";
import { addressOf, COMMAND_TIMEOUT_MS, connect, type ConnectOptions, explained } from "./connection.ts";

/**
 * Knows which of the servers of a database accepts writes. There are several if the primary is replicated to standbys,
 * one of which is promoted when the primary fails.
 */
export class Primary {
  readonly #urls: readonly string[];
  #url: string;
  /** Each promotion begins a timeline, with a higher number. */
  #timeline = 0;

  constructor(url: string) {
    this.#urls = hostUrls(url);
    this.#url = this.#urls[0] ?? url;
  }

  /** A single server is not asked: whoever connects to it will see. */
  static async of(url: string): Promise<Primary> {
    const primary = new Primary(url);
    if (primary.#urls.length > 1) await primary.find();
    return primary;
  }

  /** The primary when it was last looked for; before that, the first server. */
  get url(): string {
    return this.#url;
  }

  /**
   * Asks all servers, and rejects if none accepts writes. Of two that do, the one that was promoted later is the
   * primary: a primary that has been replaced and comes back has none of the writes since.
   */
  async find(options: ConnectOptions = {}): Promise<void> {
    const select = this.#urls.length === 1 ? NO_TIMELINE : TIMELINE;
    const asked = await Promise.allSettled(this.#urls.map((url) => ask(url, select, options)));
    const found = asked.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const [latest] = found.toSorted((a, b) => b.timeline - a.timeline);
    if (latest === undefined) throw this.#reasonOf(asked);
    if (latest.timeline < this.#timeline) {
      throw new Error(`${addressOf(latest.url)} was the primary before another server was promoted`);
    }
    this.#timeline = latest.timeline;
    this.#url = latest.url;
  }

  #reasonOf(asked: readonly PromiseSettledResult<unknown>[]): unknown {
    const reasons = asked.flatMap((answer) =>
      answer.status === "rejected" ? [explained(answer.reason)] : [],
    );
    const [only] = reasons;
    if (reasons.length === 1) return only;
    const each = reasons.map((reason, i) => `${addressOf(this.#urls[i] ?? "")}: ${messageOf(reason)}`);
    return new Error(`no server accepts writes (${each.join("; ")})`, { cause: only });
  }
}

/** The first eight digits of a file's name, hexadecimal. */
const TIMELINE = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4 AS timeline";
/** A single server may be set up anew. */
const NO_TIMELINE = "SELECT 0 AS timeline";

/** Rejects if the server does not accept writes: a standby rejects the connection. */
async function ask(
  url: string,
  select: string,
  options: ConnectOptions,
): Promise<{ url: string; timeline: number }> {
  const sql = connect(url, options);
  const { connectMs = COMMAND_TIMEOUT_MS } = options;
  try {
    const [server] = await within(connectMs, sql.unsafe<[{ timeline: number }]>(select));
    return { url, timeline: server.timeline };
  } finally {
    void sql.close({ timeout: 0 });
  }
}
