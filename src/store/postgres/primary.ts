import type { SQL } from "bun";
import { messageOf } from "../../runtime/message-of.ts";
import { isSameTimeline, type Timeline, UNKNOWN_TIMELINE, UnknownPrimary } from "../../domain/timeline.ts";
import { scheduler } from "../../runtime/scheduler.ts";
import { hostUrls, withoutCredentials } from "../../text/host-urls.ts";
import { type ConnectOptions, withConnection } from "./connection.ts";
import { isStandby, withExplanation } from "./errors.ts";
import { OtherServers } from "./other-servers.ts";
import { type FoundTimeline, hasRecentReport, readTimeline, storeMark } from "./timeline.ts";

/** Stores the latest timeline that any process has used. */
export interface LatestTimeline {
  /** Stores the timeline unless a later one is stored. Resolves to the later of the two. */
  raise(timeline: Timeline): Promise<Timeline>;
  /** Stores the timeline even if a later one is stored. */
  replace(timeline: Timeline): Promise<void>;
}

export interface PrimaryOptions {
  /** Reads the URL again: while a server is unusable, its password or its host may have been changed. */
  readonly readUrl?: (() => string) | undefined;
  /** The schema of the tables. The default is that of the server. */
  readonly schema?: string | undefined;
  /** The timeline that all processes share. Without it, no other process is asked. */
  readonly latestTimeline?: LatestTimeline | undefined;
  /** Whether to accept the server that takes writes now as the primary, whatever was seen before. */
  readonly acceptsAny?: boolean | undefined;
  /** Whether to leave a timeline without a mark as it is. */
  readonly isReadOnly?: boolean | undefined;
}

interface Candidate extends FoundTimeline {
  readonly url: string;
  /** How long it took to respond. */
  readonly tookMs: number;
}

/** Another server may have been promoted while one took longer to respond, as after a pause. */
const MAX_RESPONSE_MS = 100;
const MAX_ATTEMPTS = 3;

interface Asked {
  readonly found: readonly Candidate[];
  readonly silent: readonly Silent[];
}

/**
 * Knows which of the servers of a database accepts writes. There are several if the primary is replicated to standbys,
 * one of which is promoted when the primary fails. A replaced primary that comes back lacks the writes since then. So a
 * server is used only if its timeline is the latest known one, or a later one. A process that knows of no timeline
 * needs the responses of all servers, or servers that use the primary now.
 */
export class Primary {
  readonly #options: PrimaryOptions;
  readonly #readUrl: () => string;
  #urls: readonly string[];
  #url: string;
  /** The latest timeline that this process knows of. */
  #known = UNKNOWN_TIMELINE;
  #isMarked = false;
  readonly #others = new OtherServers();

  constructor(url: string, options: PrimaryOptions = {}) {
    this.#options = options;
    this.#readUrl = options.readUrl ?? (() => url);
    this.#urls = hostUrls(url);
    this.#url = this.#urls[0] ?? url;
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

  /**
   * Asks all servers. Rejects if none accepts writes, if one that does not respond may be the primary, or if several
   * were promoted independently and nothing shows which one was used first.
   */
  async find(options: ConnectOptions = {}): Promise<void> {
    // A mark is stored in the database before other processes know it, so this order finds every mark that they know.
    if (this.#isOneOfSeveral) this.#known = await this.#raise(this.#known);
    const asked = await this.#ask(options);
    const [first] = asked.found;
    if (!this.#isOneOfSeveral) {
      if (first) this.#url = first.url;
      return;
    }
    const candidate = choose(asked, this.#known);
    if (this.#known.number === 0 && asked.silent.length > 0 && !(await this.#isInUse(candidate, options)))
      throw unknownPrimary(candidate.url, asked.silent);
    await this.#use(candidate, options);
  }

  #isInUse({ url }: Candidate, options: ConnectOptions): Promise<boolean> {
    const { schema } = this.#options;
    return withConnection(url, { schema, ...options }, hasRecentReport);
  }

  /** Throws if another server than before is the primary. What was read from that one may never have been committed. */
  async confirm(): Promise<void> {
    const { url } = this;
    await this.find();
    if (this.url === url) return;
    throw new Error(
      `${withoutCredentials(this.url)} has replaced ${withoutCredentials(url)} as the primary meanwhile`,
    );
  }

  /** Replaces the timeline that processes know by a marked one, because any of them would add its own mark. */
  async #accept(): Promise<void> {
    const { url, timeline, hasTable } = onlyOne(latestOf((await this.#ask()).found));
    this.#isMarked = timeline.mark !== "";
    this.#known = hasTable ? await this.#markedTimeline(url, timeline, {}) : { ...timeline, mark: newMark() };
    await this.#options.latestTimeline?.replace(this.#known).catch(() => {});
    this.#url = url;
  }

  async #use({ url, timeline, hasTable }: Candidate, options: ConnectOptions): Promise<void> {
    this.#isMarked = timeline.mark !== "";
    const isKnown = timeline.number === this.#known.number;
    const withoutTables = isKnown ? this.#known : timeline;
    const found = hasTable ? await this.#markedTimeline(url, timeline, options) : withoutTables;
    const latest = await this.#raise(found);
    if (found.mark === "" && latest.mark !== "" && latest.number === found.number) {
      // Another process has stored a mark since the servers were asked, in these tables or on another server.
      await this.find(options);
      return;
    }
    this.#confirmLatest(url, found, latest);
    this.#url = url;
  }

  /**
   * Marks the timeline of the primary unless it has a mark. New tables get the mark by which processes know the
   * timeline already, also those of another schema, which are to replace tables with that mark.
   */
  async mark(schema = this.#options.schema): Promise<void> {
    if (!this.#isOneOfSeveral) return;
    if (this.#isMarked) {
      const { mark } = this.#known;
      if (schema !== this.#options.schema)
        await withConnection(this.#url, { schema }, (sql) => storeMark(sql, mark));
      return;
    }
    const marked = await this.#markedTimeline(this.#url, this.#known, { schema });
    this.#confirmLatest(this.#url, marked, await this.#raise(marked));
  }

  /** A server that cannot write, for example on a full disk, keeps a timeline without a mark. */
  async #markedTimeline(url: string, timeline: Timeline, options: ConnectOptions): Promise<Timeline> {
    const { schema, isReadOnly = false } = this.#options;
    if (this.#isMarked || isReadOnly) return timeline;
    const mark = timeline.mark || newMark();
    const store = (sql: SQL) => storeMark(sql, mark);
    const marked = await withConnection(url, { schema, ...options }, store).catch(() => undefined);
    this.#isMarked = marked !== undefined;
    return marked ?? timeline;
  }

  /** Throws if another process has used a later timeline. */
  #confirmLatest(url: string, timeline: Timeline, latest: Timeline): void {
    this.#known = latest;
    if (!isSameTimeline(latest, timeline)) throw replacedPrimary(url, timeline, latest);
  }

  async #raise(timeline: Timeline): Promise<Timeline> {
    // A directory that cannot be written to, as on a full disk, must not end the service.
    return (await this.#options.latestTimeline?.raise(timeline).catch(() => timeline)) ?? timeline;
  }

  /**
   * Returns an error once another process on this machine knows of a later primary than the one that this process has
   * found, or another server of the database was promoted after that.
   */
  async findReplacement(): Promise<Error | undefined> {
    if (!this.#isOneOfSeveral) return undefined;
    return (await this.#replacementKnownHere()) ?? this.#promotedServer();
  }

  async #replacementKnownHere(): Promise<Error | undefined> {
    const before = this.#known;
    const latest = await this.#raise(before);
    if (isSameTimeline(latest, before)) return undefined;
    if (latest.number === before.number && before.mark === "") {
      // This process could not store a mark, and another one has stored its own, here or on another server.
      const { mark } = await this.#markedTimeline(this.#url, before, {});
      if (mark === "") return undefined;
      if (mark === latest.mark) {
        this.#known = latest;
        return undefined;
      }
    }
    this.#known = latest;
    return replacedPrimary(this.#url, before, latest);
  }

  async #promotedServer(): Promise<Error | undefined> {
    const { number } = this.#known;
    const others = this.#urls.filter((url) => url !== this.#url);
    const promotion = await this.#others.latestPromotion(others);
    // The search for the primary that follows learns its mark.
    return promotion && promotion.number > number
      ? replacedPrimary(this.#url, this.#known, { number: promotion.number, mark: "" })
      : undefined;
  }

  /** Must be called after `findReplacement`, which keeps connections. */
  close(): void {
    this.#others.close();
  }

  /** Asks all servers, and again if one that accepts writes was slow, so that all responses are of about one time. */
  async #ask(options: ConnectOptions = {}): Promise<Asked> {
    for (let attempt = 1; ; attempt++) {
      const asked = await this.#askOnce(options);
      const isSlow = asked.found.some(({ tookMs }) => tookMs > MAX_RESPONSE_MS);
      if (!isSlow || !this.#isOneOfSeveral || attempt === MAX_ATTEMPTS) return asked;
    }
  }

  async #askOnce(options: ConnectOptions): Promise<Asked> {
    const urls = hostUrls(this.#readUrl());
    this.#urls = urls;
    const { schema } = this.#options;
    // A single server may be set up anew with a lower timeline.
    const read = this.#isOneOfSeveral ? readTimeline : async (sql: SQL) => (await sql`SELECT 1`, NOT_ASKED);
    const startedAt = scheduler.now();
    const asked = await Promise.allSettled(
      urls.map(async (url) => {
        const found = await withConnection(url, { schema, ...options }, read);
        return { url, ...found, tookMs: scheduler.now() - startedAt };
      }),
    );
    const found = asked.flatMap((answer) => (answer.status === "fulfilled" ? [answer.value] : []));
    const rejected = asked.flatMap((answer, i) =>
      answer.status === "rejected" ? [{ url: urls[i] ?? "", reason: answer.reason }] : [],
    );
    if (found.length === 0) throw noPrimary(rejected);
    return { found, silent: rejected.filter(({ reason }) => !isStandby(reason)) };
  }
}

const newMark = () => crypto.randomUUID().replaceAll("-", "");

const NOT_ASKED: FoundTimeline = { timeline: UNKNOWN_TIMELINE, hasTable: false, startedAt: "" };

/** Chooses the server whose timeline is the known one or a later one. */
function choose({ found }: Asked, known: Timeline): Candidate {
  const latest = latestOf(found);
  const same = latest.filter(({ timeline }) => isSameTimeline(timeline, known));
  const candidate = onlyOne(same.length > 0 ? same : latest);
  const { url, timeline, hasTable } = candidate;
  // Tables that are made anew have no mark.
  const isOther = known.mark !== "" && hasTable && timeline.mark !== known.mark;
  if (timeline.number < known.number || (timeline.number === known.number && isOther))
    throw replacedPrimary(url, timeline, known);
  return candidate;
}

function latestOf(found: readonly Candidate[]): readonly Candidate[] {
  const highest = Math.max(...found.map(({ timeline }) => timeline.number));
  return found.filter(({ timeline }) => timeline.number === highest);
}

/** Throws if there are several servers. One server may have several names. */
function onlyOne(candidates: readonly Candidate[]): Candidate {
  const [first, ...others] = candidates;
  if (first === undefined) throw new Error("no server accepts writes");
  if (others.some(({ startedAt }) => startedAt !== first.startedAt)) throw severalPrimaries(candidates);
  return first;
}

/** A server that did not report whether it accepts writes. */
interface Silent {
  readonly url: string;
  readonly reason: unknown;
}

const describe = ({ url, reason }: Silent): string =>
  `${withoutCredentials(url)}: ${isStandby(reason) ? "a standby" : messageOf(reason)}`;

function noPrimary(rejected: readonly Silent[]): unknown {
  const [first] = rejected;
  const cause = withExplanation(first?.reason);
  if (rejected.length === 1) return cause;
  const standbys = rejected
    .filter(({ reason }) => isStandby(reason))
    .map(({ url }) => withoutCredentials(url));
  const remedy =
    standbys.length === 0 ? "start the primary" : `start the primary, or promote ${standbys.join(" or ")}`;
  return new Error(`no server accepts writes (${rejected.map(describe).join("; ")}); ${remedy}`, { cause });
}

function unknownPrimary(url: string, silent: readonly Silent[]): Error {
  return new UnknownPrimary(
    `${withoutCredentials(url)} accepts writes, but another server may have replaced it (${silent.map(describe).join("; ")}); start that server, or if ${withoutCredentials(url)} is the primary, use --accept-primary once`,
  );
}

function replacedPrimary(url: string, { number }: Timeline, latest: Timeline): Error {
  if (number === latest.number) {
    return new Error(
      `${withoutCredentials(url)} and another server were promoted independently (both have timeline ${number}), and the other one was used first; start the other one and stop this one, or to lose what only the other one has, stop all servers and use --accept-primary once`,
    );
  }
  return new Error(
    `${withoutCredentials(url)} was the primary before another server was promoted (its timeline is ${number}, and ${latest.number} was seen); start the new primary, or if the database was created anew, stop all servers and use --accept-primary once`,
  );
}

function severalPrimaries(candidates: readonly Candidate[]): Error {
  const addresses = candidates.map(({ url }) => withoutCredentials(url)).join(" and ");
  return new Error(
    `${addresses} accept writes and were promoted independently (all have timeline ${candidates[0]?.timeline.number}); stop all but the one that is to be the primary, and use --accept-primary once`,
  );
}
