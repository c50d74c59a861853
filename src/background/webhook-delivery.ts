import type { Environment } from "../domain/environments.ts";
import type { AuditEntry } from "../domain/audit.ts";
import type { WebhookStore } from "../domain/ports/webhooks.ts";
import type { AuditStore } from "../domain/ports/audit.ts";
import type { Clock } from "../domain/ports/clock.ts";
import {
  deliveredActions,
  hasFailedTooLong,
  isDelivered,
  MAX_WAITING_MS,
  WEBHOOK_TEST_TIMEOUT_MS,
  retryDelayMs,
  shownWebhookUrl,
  type WaitingEntries,
  type WebhookDelivery,
  type WebhookState,
  withDelivery,
} from "../domain/webhooks.ts";
import { repeat, type RepeatedWork } from "../runtime/repeat.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { FailureReporter } from "../runtime/failure-reporter.ts";
import type { Log } from "../observe/log.ts";
import {
  entryMessage,
  sendMessage,
  testMessage,
  type WebhookMessage,
  type WebhookResponse,
} from "./webhook-request.ts";

export interface WebhookOptions {
  readonly url: string;
  /** Returns the secrets of the signatures, which may change. */
  readonly secrets: () => readonly Uint8Array[];
  /** Names of actions, `operator.*` or `*`. */
  readonly events: readonly string[];
  readonly environment: Environment;
  readonly webhooks: WebhookStore;
  readonly audit: Pick<AuditStore, "listAudit">;
  /** Whether no other server can use the database. */
  readonly isOnlyServer: boolean;
  /** A name that no other server has. */
  readonly server: string;
  readonly clock: Pick<Clock, "now">;
  /** The time by which waiting entries become too old. */
  readonly retentionNow: () => number;
  readonly log: Log;
  /** Tests have shorter times. */
  readonly times?: Partial<typeof TIMES>;
}

const TIMES = {
  /** How often the server that delivers looks for new entries, and every other server for the state. */
  pollMs: 1_000,
  /** How often the server that delivers shows that it does. A change of the position shows it too. */
  beatMs: 10_000,
  /** A server that has not shown it for so long is replaced. Longer than a request and the pause before the next. */
  silentMs: 30_000,
  timeoutMs: 10_000,
  testTimeoutMs: WEBHOOK_TEST_TIMEOUT_MS,
  /** A factor of the waits between repeats. */
  retryFactor: 1,
};

const PAGE = 100;

/**
 * Delivers the audit trail to the webhook: in order, at least once, by one server at a time. The position in the trail
 * moves when an entry has been delivered. A server sends nothing but the entry after the position that it has read. So
 * two servers that both take themselves for the one that delivers, for example after a pause, may send an entry twice,
 * and never one before its predecessors.
 */
export class WebhookSender {
  /** The attempts of this server by their result, since its start. */
  readonly counts = { delivered: 0, failed: 0, skipped: 0 };
  /** What waits; undefined while another server delivers. */
  waiting: WaitingEntries | undefined;
  readonly #options: WebhookOptions;
  readonly #times: typeof TIMES;
  readonly #actions: ReadonlySet<string> | undefined;
  readonly #stopping = new AbortController();
  readonly #work: RepeatedWork;
  readonly #outage: FailureReporter;
  readonly #unreadable: FailureReporter;
  /** The state that this server has saved; undefined while it does not deliver. */
  #own: WebhookState | undefined;
  /** When the state was saved, by a monotonic clock. */
  #savedAt = 0;
  /** The last state of another server, and since when it has been the same. */
  #seen: { readonly state: WebhookState; readonly since: number } | undefined;
  /** Consecutive attempts that failed, and when the next is due. */
  #failures = 0;
  #retryAt = 0;

  constructor(options: WebhookOptions) {
    this.#options = options;
    const { log } = options;
    this.#times = { ...TIMES, ...options.times };
    this.#actions = deliveredActions(options.events);
    this.#outage = new FailureReporter(
      (delivery) => log.event("webhook.failing", Object(delivery)),
      (afterMs) => log.event("webhook.recovered", { afterMs }),
    );
    this.#unreadable = new FailureReporter((error) => log.event("webhook.unreadable", { error }));
    this.#work = repeat(0, () => this.#run());
  }

  /** The URL as operators see it. */
  get url(): string {
    return shownWebhookUrl(this.#options.url);
  }

  /** Describes the webhook for operators. */
  async describe() {
    const { webhooks, events } = this.#options;
    const { position = 0n, deliveries = [] } = (await webhooks.readWebhook()) ?? {};
    const waiting = await webhooks.countWaiting(position, this.#actions);
    return { url: this.url, events, deliveries, waiting };
  }

  /** Sends a test event, apart from the entries of the audit trail. A receiver that accepts it gets them at once. */
  async test(): Promise<WebhookResponse> {
    const { clock, environment } = this.#options;
    const now = clock.now();
    const response = await this.#send(testMessage(now, environment), now, this.#times.testTimeoutMs);
    if (isDelivered(response)) this.#retryAt = 0;
    return response;
  }

  #send(message: WebhookMessage, now: number, timeoutMs: number): Promise<WebhookResponse> {
    const { url, secrets } = this.#options;
    const { signal } = this.#stopping;
    return sendMessage({ url, secrets: secrets() }, message, { now, signal, timeoutMs });
  }

  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#work.close();
    const { webhooks, server } = this.#options;
    // If it fails, another server delivers a little later.
    if (this.#own) await webhooks.releaseWebhook(server).catch(() => {});
  }

  /** Returns after how many milliseconds to run again. */
  async #run(): Promise<number> {
    const { pollMs, beatMs } = this.#times;
    try {
      this.#own ??= await this.#take();
      if (this.#own === undefined) return pollMs;
      if (scheduler.now() >= this.#retryAt) await this.#deliver();
      else await this.#countWaiting();
      if (this.#own && !this.#options.isOnlyServer && scheduler.now() - this.#savedAt >= beatMs)
        await this.#save(this.#own);
      this.#unreadable.succeeded();
      return Math.max(pollMs, Math.min(beatMs, this.#retryAt - scheduler.now()));
    } catch (error) {
      this.#unreadable.failed(error);
      // Nobody knows what is saved, and another server may deliver by now.
      this.#own = undefined;
      this.waiting = undefined;
      return pollMs;
    }
  }

  /** Makes this server the one that delivers, and returns the state, if no other server does. */
  async #take(): Promise<WebhookState | undefined> {
    const { webhooks, server, isOnlyServer, retentionNow } = this.#options;
    const source = crypto.randomUUID().slice(0, 8);
    const state = await webhooks.openWebhook(source, retentionNow() - MAX_WAITING_MS);
    const { server: other, beat } = state;
    const isSame = this.#seen?.state.server === other && this.#seen?.state.beat === beat;
    if (!isSame || this.#seen === undefined) this.#seen = { state, since: scheduler.now() };
    const isSilent = scheduler.now() - this.#seen.since >= this.#times.silentMs;
    if (!isOnlyServer && other !== undefined && other !== server && !isSilent) return undefined;
    const taken = await webhooks.takeWebhook(server, state);
    this.#savedAt = scheduler.now();
    return taken;
  }

  /** Delivers what waits, up to the first attempt that fails. */
  async #deliver(): Promise<void> {
    const { audit, log, retentionNow } = this.#options;
    let skipped = 0;
    try {
      while (this.#own && !this.#stopping.signal.aborted) {
        const { items, hasMore } = await audit.listAudit({ after: this.#own.position, limit: PAGE });
        const isSelected = (entry: AuditEntry) => this.#isSelected(entry);
        if (items.some(isSelected) && !(await this.#isStillSaved(this.#own))) {
          this.#own = undefined;
          this.waiting = undefined;
          return;
        }
        await this.#countWaiting(items.length);
        let { position } = this.#own;
        for (const entry of items) {
          if (isSelected(entry)) {
            if (hasFailedTooLong(entry.id, this.#own.deliveries, retentionNow())) skipped++;
            else if (!(await this.#attempt(entry, position))) return;
          }
          position = entry.id;
        }
        if (position > this.#own.position) await this.#save({ ...this.#own, position });
        if (!hasMore) {
          await this.#countWaiting(0);
          return;
        }
        // A page without requests to the receiver takes SQLite some milliseconds.
        await scheduler.yield();
      }
    } finally {
      this.counts.skipped += skipped;
      if (skipped > 0) log.event("webhook.skipped", { entries: skipped });
    }
  }

  /** Without entries after the position nothing waits, which needs no query. */
  async #countWaiting(entries = PAGE): Promise<void> {
    if (this.#own === undefined) this.waiting = undefined;
    else if (entries === 0) this.waiting = { count: 0 };
    else this.waiting = await this.#options.webhooks.countWaiting(this.#own.position, this.#actions);
  }

  #isSelected({ action }: AuditEntry): boolean {
    return this.#actions?.has(action) !== false;
  }

  /** A standby that was promoted may have an earlier state, whose entries after its position come first. */
  async #isStillSaved({ beat }: WebhookState): Promise<boolean> {
    const { webhooks, server } = this.#options;
    const saved = await webhooks.readWebhook();
    return saved?.server === server && saved.beat === beat;
  }

  /** Returns whether the entry is delivered and this server goes on. `position` is that of the entry before. */
  async #attempt(entry: AuditEntry, position: bigint): Promise<boolean> {
    const { clock, environment } = this.#options;
    const { signal } = this.#stopping;
    const own = this.#own;
    if (own === undefined || signal.aborted) return false;
    const at = clock.now();
    const message = entryMessage(entry, { source: own.source, environment });
    const { line: _, ...response } = await this.#send(message, at, this.#times.timeoutMs);
    const delivery = { id: Number(entry.id), type: entry.action, at, ...response };
    const isDone = isDelivered(delivery);
    // The server that delivers next sends the entry again.
    if (signal.aborted && !isDone) return false;
    this.#countAttempt(delivery);
    const deliveries = withDelivery(delivery, own.deliveries);
    const isSaved = await this.#save({ ...own, position: isDone ? entry.id : position, deliveries });
    return isDone && isSaved;
  }

  #countAttempt(delivery: WebhookDelivery): void {
    if (isDelivered(delivery)) {
      this.counts.delivered++;
      this.#failures = 0;
      this.#outage.succeeded();
      return;
    }
    this.counts.failed++;
    this.#failures++;
    const waitMs = retryDelayMs(this.#failures, scheduler.random()) * this.#times.retryFactor;
    this.#retryAt = scheduler.now() + waitMs;
    const { at: _, ...reported } = delivery;
    this.#outage.failed(reported);
  }

  /** Returns false if the state that was saved is another one by now. */
  async #save(state: WebhookState): Promise<boolean> {
    const { webhooks, server } = this.#options;
    this.#own = await webhooks.saveWebhook(server, state);
    this.#savedAt = scheduler.now();
    if (this.#own === undefined) this.waiting = undefined;
    return this.#own !== undefined;
  }
}
