import { messageOf } from "../../api/errors.ts";
import { hostUrls } from "../../text/host-urls.ts";
import { withTimeout } from "../../runtime/event-loop.ts";
import {
  addressOf,
  COMMAND_TIMEOUT_MS,
  connect,
  type ConnectOptions,
  withExplanation,
  isStandby,
  TIMELINE,
} from "./connection.ts";

/** Stores the highest timeline that any process has seen. */
export interface HighestTimeline {
  /** Stores the number unless a higher one is stored. Resolves to the higher of the two; 0 means that none is known. */
  raise(timeline: number): Promise<number>;
  /** Stores the number even if a higher one is stored. */
  replace(timeline: number): Promise<void>;
}

export interface PrimaryOptions {
  /** Reads the URL again: while a server is unusable, its password or its host may have been changed. */
  readonly readUrl?: (() => string) | undefined;
  /** The timeline that all processes share. Without it, no other process is asked. */
  readonly highestTimeline?: HighestTimeline | undefined;
  /** Whether to accept the server that takes writes now as the primary, whatever was seen before. */
  readonly acceptsAny?: boolean | undefined;
}

interface Candidate {
  readonly url: string;
  readonly timeline: number;
}

/**
 * Knows which of the servers of a database accepts writes. There are several if the primary is replicated to standbys,
 * one of which is promoted when the primary fails. A replaced primary that comes back lacks the writes since then. So a
 * server is used only if its timeline is at least the highest known one. A process that knows of no timeline needs the
 * responses of all servers.
 */
export class Primary {
  readonly #readUrl: () => string;
  readonly #highest: HighestTimeline | undefined;
  #urls: readonly string[];
  #url: string;
  /** The highest timeline that this process knows of. */
  #timeline = 0;

  constructor(url: string, { readUrl = () => url, highestTimeline }: PrimaryOptions = {}) {
    this.#readUrl = readUrl;
    this.#urls = hostUrls(url);
    this.#url = this.#urls[0] ?? url;
    this.#highest = highestTimeline;
  }

  /** Finds the primary. A single server is not asked, because connecting to it will show whether it accepts writes. */
  static async of(url: string, options: PrimaryOptions = {}): Promise<Primary> {
    const primary = new Primary(url, options);
    if (!primary.#isOneOfSeveral) return primary;
    if (options.acceptsAny) await primary.#accept();
    else await primary.find();
    return primary;
  }

  get #isOneOfSeveral(): boolean {
    return this.#urls.length > 1;
  }

  /** The server that was the primary at the last search; before that, the first server. */
  get url(): string {
    return this.#url;
  }

  /** Asks all servers. Rejects if none accepts writes, or if one that does not respond may be the primary. */
  async find(options: ConnectOptions = {}): Promise<void> {
    const { latest, silent } = await this.#ask(options);
    if (this.#isOneOfSeveral) {
      const known = this.#timeline || ((await this.#highest?.raise(0)) ?? 0);
      if (known === 0 && silent.length > 0) throw unknownPrimary(latest, silent);
      const raised = await this.#highest?.raise(latest.timeline);
      this.#timeline = Math.max(known, latest.timeline, raised ?? 0);
      if (latest.timeline < this.#timeline) throw replacedPrimary(latest, this.#timeline);
    }
    this.#url = latest.url;
  }

  async #accept(): Promise<void> {
    const { latest } = await this.#ask();
    await this.#highest?.replace(latest.timeline);
    this.#timeline = latest.timeline;
    this.#url = latest.url;
  }

  /**
   * Returns an error once another process knows of a higher timeline than that of the primary that this one has found.
   */
  async findReplacement(): Promise<Error | undefined> {
    const highest = this.#isOneOfSeveral ? ((await this.#highest?.raise(this.#timeline)) ?? 0) : 0;
    const timeline = this.#timeline;
    if (highest <= timeline) return undefined;
    this.#timeline = highest;
    return replacedPrimary({ url: this.#url, timeline }, highest);
  }

  /** Asks all servers. If two accept writes, `latest` is the server that was promoted last. */
  async #ask(options: ConnectOptions = {}): Promise<{ latest: Candidate; silent: readonly Silent[] }> {
    const urls = hostUrls(this.#readUrl());
    this.#urls = urls;
    const select = this.#isOneOfSeveral ? SELECT_TIMELINE : NO_TIMELINE;
    const asked = await Promise.allSettled(urls.map((url) => ask(url, select, options)));
    const found = asked.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const [latest] = found.toSorted((a, b) => b.timeline - a.timeline);
    const rejected = asked.flatMap((answer, i) =>
      answer.status === "rejected" ? [{ url: urls[i] ?? "", reason: answer.reason }] : [],
    );
    if (latest === undefined) throw noPrimary(rejected);
    return { latest, silent: rejected.filter(({ reason }) => !isStandby(reason)) };
  }
}

/** A server that did not report whether it accepts writes. */
interface Silent {
  readonly url: string;
  readonly reason: unknown;
}

const describe = ({ url, reason }: Silent): string =>
  `${addressOf(url)}: ${messageOf(withExplanation(reason))}`;

function noPrimary(rejected: readonly Silent[]): unknown {
  const [first] = rejected;
  const cause = withExplanation(first?.reason);
  if (rejected.length === 1) return cause;
  return new Error(`no server accepts writes (${rejected.map(describe).join("; ")})`, { cause });
}

function unknownPrimary({ url }: Candidate, silent: readonly Silent[]): Error {
  return new Error(
    `${addressOf(url)} accepts writes, but another server may have replaced it (${silent.map(describe).join("; ")}); start that server, or if ${addressOf(url)} is the primary, use --accept-primary once`,
  );
}

function replacedPrimary({ url, timeline }: Candidate, highest: number): Error {
  return new Error(
    `${addressOf(url)} was the primary before another server was promoted (its timeline is ${timeline}, and ${highest} was seen); start the new primary, or if the database was created anew, stop all servers and use --accept-primary once`,
  );
}

const SELECT_TIMELINE = `SELECT ${TIMELINE} AS timeline`;
/** The statement for a single server, which may be set up anew with a lower timeline. */
const NO_TIMELINE = "SELECT 0 AS timeline";

/** Reads the timeline of a server. Rejects if the server does not accept writes: a standby rejects the connection. */
async function ask(url: string, select: string, options: ConnectOptions): Promise<Candidate> {
  const sql = connect(url, options);
  const { connectMs = COMMAND_TIMEOUT_MS } = options;
  try {
    const [server] = await withTimeout(connectMs, sql.unsafe<[{ timeline: number }]>(select));
    return { url, timeline: server.timeline };
  } finally {
    void sql.close({ timeout: 0 });
  }
}
