import type { Awaitable } from "../../runtime/awaitable.ts";
import type { WaitingEntries, WebhookState } from "../webhooks.ts";

/** How far the audit trail has been delivered to the webhook. Of all servers, one delivers. */
export interface WebhookStore {
  /**
   * Returns the state. If there is none, the delivery begins at the end of the audit trail, with this source. If a
   * backup without a state was restored at `restoredSince` or later, it begins with the entry of that restore.
   */
  openWebhook(source: string, restoredSince?: number): Promise<WebhookState>;
  readWebhook(): Awaitable<WebhookState | undefined>;
  /**
   * Makes the server the one that delivers, if the state is still that which it has seen. Returns the state as it is
   * then, or undefined.
   */
  takeWebhook(server: string, seen: WebhookState): Promise<WebhookState | undefined>;
  /**
   * Saves how far the server has come since it took or saved the state. Returns the state as it is then; undefined if
   * another server delivers instead, or if the database has an earlier state: a standby that was promoted may have one.
   */
  saveWebhook(server: string, progress: WebhookState): Promise<WebhookState | undefined>;
  /** Lets another server deliver at once. */
  releaseWebhook(server: string): Promise<void>;
  /** Counts, of the next 1,000 entries after a position, those with one of the actions, or all. */
  countWaiting(position: bigint, actions: ReadonlySet<string> | undefined): Awaitable<WaitingEntries>;
}
