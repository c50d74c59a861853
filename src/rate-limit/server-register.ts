import { Invalid } from "../api/schema.ts";
import { parseJson } from "../api/json.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import type { Clock, ServerRegister } from "../domain/ports.ts";
import {
  nameOfServer,
  type ServerActivity,
  type ServerIdentity,
  ServerReport,
  type ServerState,
} from "../domain/servers.ts";
import type { RegisterContents, ValkeyLink } from "./valkey/connection.ts";

/** How often a server reports what it does. */
export const HEARTBEAT_MS = 5_000;
/** The number of heartbeats after which all servers have reported to a Valkey that has lost its data. */
const REMEMBERED_BEATS = 4;

interface RegisterOptions {
  readonly clock: Clock;
  /** Returns what this server does now. */
  readonly activity: () => ServerActivity;
  /** The last known number of servers, for a server that starts in an outage. */
  readonly lastCount?: number | undefined;
  /** Called when the number of servers changes. */
  readonly onCount?: ((servers: number) => void) | undefined;
  /** Called once when heartbeats begin to fail. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * The servers that share the limits. Each reports to Valkey every five seconds what it does. Without Valkey there is
 * one server.
 */
export class HeartbeatRegister implements ServerRegister {
  readonly #options: RegisterOptions;
  readonly #clock: Clock;
  readonly #beats: FailureReporter;
  #others: readonly ServerState[] = [];
  #lost: readonly ServerState[] = [];
  /** The number of servers at each of the last heartbeats. */
  #counts: readonly number[];

  constructor(
    readonly self: ServerIdentity,
    options: RegisterOptions,
  ) {
    this.#options = options;
    this.#clock = options.clock;
    this.#beats = new FailureReporter((error) => options.onError?.(error));
    this.#counts = [options.lastCount ?? 1];
  }

  /**
   * How many servers share the limits, this one included; in an outage, as many as before. It is the greatest number of
   * the last heartbeats, because a Valkey that has lost its data, or stood still, learns of the servers one by one.
   */
  get count(): number {
    return Math.max(...this.#counts);
  }

  list(): readonly ServerState[] {
    const self = { ...this.self, ...this.#options.activity(), seenAt: this.#clock.now() };
    return [self, ...this.#others].toSorted((one, other) => one.startedAt - other.startedAt);
  }

  lost(): readonly ServerState[] {
    return withoutRestarted(this.#lost, this.list());
  }

  /** Reports this server's activity and reads that of the others. Returns whether Valkey replied. */
  async beat(link: Pick<ValkeyLink, "servers" | "removeServer">): Promise<boolean> {
    try {
      const own = { ...this.self, ...this.#options.activity() };
      this.#learn(await link.servers({ id: this.self.id, text: JSON.stringify(own) }));
      // This server has taken the place of one that was killed.
      for (const { id } of this.#lost.filter((each) => nameOfServer(each) === nameOfServer(own)))
        await link.removeServer(id);
      this.#beats.succeeded();
      return true;
    } catch (error) {
      this.#beats.failed(error);
      return false;
    }
  }

  /** Removes this server, so that the others know at once that it has stopped. */
  async leave(link: Pick<ValkeyLink, "removeServer">): Promise<void> {
    await link.removeServer(this.self.id).catch(() => {});
  }

  #learn(contents: RegisterContents): void {
    const { texts, wasMissing } = contents;
    const before = this.count;
    this.#counts = [...this.#counts.slice(1 - REMEMBERED_BEATS), Math.max(1, texts.length)];
    if (this.count !== before) this.#options.onCount?.(this.count);
    const reported = parseServerStates(texts, this.#clock.now()).filter(({ id }) => id !== this.self.id);
    // If this server was missing, Valkey has lost its data: the others report again before the next heartbeat.
    const missing = wasMissing
      ? this.#others.filter(({ id }) => !reported.some((each) => each.id === id))
      : [];
    this.#others = [...reported, ...missing];
    this.#lost = parseLost(contents, this.#clock.now());
  }
}

/** The servers in the register: those that share the limits, and those that were killed in the last hour. */
export function parseRegister(contents: RegisterContents, now: number) {
  const servers = parseServerStates(contents.texts, now);
  return { servers, lost: withoutRestarted(parseLost(contents, now), servers) };
}

function parseLost({ lost }: RegisterContents, now: number): ServerState[] {
  return lost.flatMap(({ text, ageMs }) => parseServerStates([text], now - ageMs));
}

/** A server that has started again on the same machine and port is not lost. */
function withoutRestarted(lost: readonly ServerState[], present: readonly ServerState[]): ServerState[] {
  const names = new Set(present.map(nameOfServer));
  return lost.filter((each) => !names.has(nameOfServer(each)));
}

/** Returns the servers whose report this release understands, each once. */
export function parseServerStates(texts: readonly string[], seenAt: number): ServerState[] {
  const states = texts.flatMap((text) => {
    const report = ServerReport.read(parseJson(text));
    return report instanceof Invalid ? [] : [{ ...report, adminUrl: originOf(report.adminUrl), seenAt }];
  });
  return [...new Map(states.map((state) => [state.id, state])).values()];
}

/** Whoever can write to Valkey can write any URL, so servers use its host and port and ignore its path. */
function originOf(url: string | null | undefined): string | null | undefined {
  if (url === null) return null;
  const { protocol = "", origin } = URL.parse(url ?? "") ?? {};
  return /^https?:$/.test(protocol) ? origin : undefined;
}
