import { Invalid } from "../api/schema.ts";
import { parseJson } from "../api/json.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import type { Clock, ServerRegister } from "../domain/ports.ts";
import {
  NO_ACTIVITY,
  type ServerActivity,
  type ServerIdentity,
  type ServerState,
  ServerReport,
} from "../domain/servers.ts";
import type { RegisterContents, ValkeyLink } from "./valkey/connection.ts";

/** How often a server tells of itself. */
export const HEARTBEAT_MS = 5_000;
/** Heartbeats after which all servers have told of themselves to a Valkey that knows of none. */
const REMEMBERED_BEATS = 4;

interface RegisterOptions {
  readonly clock: Clock;
  /** How many servers there were when a server last knew, for one that starts in an outage. */
  readonly lastCount?: number | undefined;
  /** Called when there are more or fewer servers than before. */
  readonly onCount?: ((servers: number) => void) | undefined;
  /** Called once when heartbeats begin to fail. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/**
 * The servers that share the limits, beside the limits in Valkey: each tells of itself every five seconds. Without
 * Valkey there is one server.
 */
export class HeartbeatRegister implements ServerRegister {
  /** What this server does now. */
  #activity: () => ServerActivity = () => NO_ACTIVITY;
  readonly #options: RegisterOptions;
  readonly #clock: Clock;
  readonly #beats: FailureReporter;
  #others: readonly ServerState[] = [];
  /** How many servers there were at the last heartbeats. */
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
   * How many servers share the limits, this one included; in an outage, as many as before. The greatest number of the
   * last heartbeats: a Valkey that has lost its data, or stood still, does not know of all servers at once.
   */
  get count(): number {
    return Math.max(...this.#counts);
  }

  /** What this server does, from now on: it serves nobody before it has joined the others. */
  tell(activity: () => ServerActivity): void {
    this.#activity = activity;
  }

  list(): readonly ServerState[] {
    const self = { ...this.self, ...this.#activity(), seenAt: this.#clock.now() };
    return [self, ...this.#others].toSorted((one, other) => one.startedAt - other.startedAt);
  }

  /** Tells of this server, and learns of the others. Returns whether Valkey replied; nothing changes if not. */
  async beat(link: Pick<ValkeyLink, "servers">): Promise<boolean> {
    try {
      const text = JSON.stringify({ ...this.self, ...this.#activity() });
      this.#learn(await link.servers({ id: this.self.id, text }));
      this.#beats.succeeded();
      return true;
    } catch (error) {
      this.#beats.failed(error);
      return false;
    }
  }

  /** Another server knows at once that this one has stopped. */
  async leave(link: Pick<ValkeyLink, "removeServer">): Promise<void> {
    await link.removeServer(this.self.id).catch(() => {});
  }

  #learn({ texts, wasMissing }: RegisterContents): void {
    const before = this.count;
    this.#counts = [...this.#counts.slice(1 - REMEMBERED_BEATS), Math.max(1, texts.length)];
    if (this.count !== before) this.#options.onCount?.(this.count);
    const told = parseServerStates(texts, this.#clock.now()).filter(({ id }) => id !== this.self.id);
    // Valkey has lost its data: the others tell of themselves again before the next heartbeat.
    const lost = wasMissing ? this.#others.filter(({ id }) => !told.some((each) => each.id === id)) : [];
    this.#others = [...told, ...lost];
  }
}

/** Those that this release understands, each once. */
export function parseServerStates(texts: readonly string[], seenAt: number): ServerState[] {
  const states = texts.flatMap((text) => {
    const told = ServerReport.read(parseJson(text));
    return told instanceof Invalid ? [] : [{ ...told, adminUrl: originOf(told.adminUrl), seenAt }];
  });
  return [...new Map(states.map((state) => [state.id, state])).values()];
}

/** Whoever can write to Valkey can tell anything: a server is asked at a host and port, and at no path that is told. */
function originOf(url: string | null | undefined): string | null | undefined {
  if (url === null) return null;
  const { protocol = "", origin } = URL.parse(url ?? "") ?? {};
  return /^https?:$/.test(protocol) ? origin : undefined;
}
