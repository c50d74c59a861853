import type { ScheduledTimer, Scheduler } from "../../runtime/scheduler.ts";
import { OutageCauses } from "../../runtime/outage-causes.ts";
import { loggableError, type LimiterConnection } from "./connection.ts";
import type { KeySubject } from "../../domain/rate-limit.ts";

export interface AvailabilityOptions {
  /** Opens a connection on which requests of this key work. */
  readonly open: (subject: KeySubject) => Promise<LimiterConnection>;
  /** How long Valkey may be silent while requests wait for it, before it counts as unavailable. */
  readonly timeoutMs: number;
  /** Called at each change, at the start when Valkey is unavailable, and in an outage for each other cause. */
  readonly onStateChange?: (state: "available" | "unavailable", cause?: unknown) => void;
  readonly scheduler: Scheduler;
}

/** What sends batches on the connection. */
interface Sender {
  /** Returns whether a batch has no reply. */
  readonly isWaiting: () => boolean;
  /** Called when nothing that was sent may wait for Valkey any longer. */
  readonly onUnavailable: () => void;
  /** Called when Valkey replies again. */
  readonly onAvailable: () => void;
  /** Called when the connection is dropped: it brings no more replies. */
  readonly onDrop: () => void;
}

/** A state from when it is entered until the next one is. */
interface State {
  readonly name: "starting" | "available" | "outage" | "closed";
  /** The next retry of an outage. */
  timer?: ScheduledTimer;
}

/** A Valkey that works again is used again within a second. */
const RETRY_EVERY_MS = 250;
/** A connection that lasted this long may have failed for a moment only, so the first retry follows at once. */
const STABLE_AFTER_MS = 1_000;
/** How often an idle connection is tried: a firewall may have dropped it. */
const TRY_EVERY_MS = 5_000;
const ANY_KEY: KeySubject = { kind: "key", id: 0 };

/** Whether Valkey is available, and the connection to it, which is replaced when it has failed or is silent. */
export class Availability {
  readonly #options: AvailabilityOptions;
  readonly #sender: Sender;
  readonly #causes: OutageCauses;
  #state: State = { name: "starting" };
  #connection: LimiterConnection | undefined;
  #connectedAt = 0;
  #trying: ScheduledTimer | undefined;

  constructor(options: AvailabilityOptions, sender: Sender) {
    this.#options = options;
    this.#sender = sender;
    this.#causes = new OutageCauses((cause) => options.onStateChange?.("unavailable", cause));
  }

  async start(): Promise<void> {
    try {
      const connection = await this.#options.open(ANY_KEY);
      if (this.#state.name === "closed") return connection.close();
      this.#use(connection);
      this.#enter("available");
    } catch (cause) {
      if (this.#state.name === "starting") this.beginOutage(cause);
    }
  }

  /** The connection. There is one whenever Valkey is available; in an outage it may be a silent one. */
  get connection(): LimiterConnection | undefined {
    return this.#connection;
  }

  get isAvailable(): boolean {
    return this.#state.name === "available";
  }

  /** Must be called when Valkey is silent. `subject` is the key that it has to serve again. */
  beginOutage(cause: unknown, subject = ANY_KEY, retryInMs = RETRY_EVERY_MS): void {
    const outage = this.#enter("outage");
    this.#retryIn(retryInMs, outage, subject);
    this.#sender.onUnavailable();
    this.#causes.report(loggableError(cause));
  }

  /** Must be called when an operation fails on the connection. */
  failed(connection: LimiterConnection, cause: unknown, subject?: KeySubject): void {
    if (connection !== this.#connection) return;
    const wasStable = this.#options.scheduler.now() - this.#connectedAt >= STABLE_AFTER_MS;
    if (this.isAvailable) this.beginOutage(cause, subject, wasStable ? 0 : RETRY_EVERY_MS);
    this.#dropConnection();
  }

  /** Must be called when Valkey has replied to everything that was sent. */
  replied(): void {
    if (this.#state.name !== "outage") return;
    this.#enter("available");
    this.#causes.end();
    this.#options.onStateChange?.("available");
    this.#sender.onAvailable();
  }

  /** Replaces the connection if it is silent while no request waits for it. */
  async #try(): Promise<void> {
    const connection = this.#connection;
    if (connection === undefined || !this.isAvailable) return;
    const isAlive = await connection.time().then(
      () => true,
      () => false,
    );
    const other = isAlive ? undefined : await this.#options.open(ANY_KEY).catch(() => undefined);
    if (other === undefined) return;
    if (connection !== this.#connection || !this.isAvailable || this.#sender.isWaiting())
      return other.close();
    this.#use(other);
  }

  close(): void {
    this.#enter("closed");
    this.#trying?.close();
    this.#sender.onUnavailable();
    this.#dropConnection();
  }

  /** Enters a state. The timer of the state before ends with it. */
  #enter(name: State["name"]): State {
    this.#state.timer?.close();
    this.#state = { name };
    return this.#state;
  }

  #retryIn(ms: number, outage: State, subject: KeySubject): void {
    outage.timer = this.#options.scheduler.setTimeout(() => void this.#retry(outage, subject), ms);
    outage.timer.unref();
  }

  /** Opens another connection, because the silent one may be dead while Valkey works. */
  async #retry(outage: State, subject: KeySubject): Promise<void> {
    let cause: unknown;
    const connection = await this.#options.open(subject).catch((error: unknown) => {
      cause = error;
      return undefined;
    });
    if (this.#state !== outage) return connection?.close();
    if (connection === undefined) {
      this.#causes.report(loggableError(cause));
      return this.#retryIn(RETRY_EVERY_MS, outage, subject);
    }
    this.#use(connection);
    this.replied();
  }

  #use(connection: LimiterConnection): void {
    const { scheduler } = this.#options;
    this.#dropConnection();
    this.#connection = connection;
    this.#connectedAt = scheduler.now();
    this.#trying ??= scheduler.setInterval(() => void this.#try(), TRY_EVERY_MS);
    this.#trying.unref();
    connection.onEnd(() => this.failed(connection, new Error("the connection was closed")));
  }

  #dropConnection(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    this.#sender.onDrop();
    connection?.close();
  }
}
