import { sha256 } from "../runtime/hash.ts";
import { AUDIT_ACTIONS } from "./audit.ts";
import { DAY_MS, HOUR_MS } from "../text/time-units.ts";

/** What operators can choose to receive: an action, all of a kind such as `operator.*`, or everything. */
export const WEBHOOK_EVENTS: readonly string[] = [
  "*",
  ...new Set(AUDIT_ACTIONS.map((action) => action.replace(/\..*/, ".*"))),
  ...AUDIT_ACTIONS,
];

/** What somebody should look at. */
export const DEFAULT_WEBHOOK_EVENTS: readonly string[] = [
  "key.banned",
  "key.expires-soon",
  "operator.*",
  "plan.*",
  "ban-rules.updated",
  "data.restored",
];

/** The actions of the audit trail that are delivered; undefined for all of them. */
export function deliveredActions(events: readonly string[]): ReadonlySet<string> | undefined {
  if (events.includes("*")) return undefined;
  return new Set(
    AUDIT_ACTIONS.filter(
      (action) => events.includes(action) || events.includes(action.replace(/\..*/, ".*")),
    ),
  );
}

/** The URL for operators. Many services have a token in the path or the query, so a hash stands for both. */
export function shownWebhookUrl(url: string): string {
  const { origin, pathname, search } = new URL(url);
  return pathname + search === "/" ? url : `${origin}/… (SHA-256 ${sha256(url).slice(0, 8)})`;
}

/** An entry that could not be delivered for so long is skipped. No retention of the audit trail is shorter. */
export const MAX_WAITING_MS = 3 * DAY_MS;

/** How long a test event waits for its response. An operation may take longer, so the operator learns what is wrong. */
export const WEBHOOK_TEST_TIMEOUT_MS = 5_000;

const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = HOUR_MS;

/** How long to wait after so many attempts that failed. `random` is from 0 to 1: not all senders repeat at once. */
export function retryDelayMs(failures: number, random: number): number {
  const longest = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
  return longest * (0.5 + random / 2);
}

/** An attempt to deliver an entry of the audit trail. */
export interface WebhookDelivery {
  /** The identifier of the entry. */
  readonly id: number;
  readonly type: string;
  /** When the attempt began, in milliseconds since the epoch. */
  readonly at: number;
  /** Null if there was no response. */
  readonly status: number | null;
  /** Why there was no response, or null. */
  readonly error: string | null;
  readonly durationMs: number;
}

export const isDelivered = ({ status }: Pick<WebhookDelivery, "status">): boolean =>
  status !== null && status >= 200 && status < 300;

/** The number of attempts that are stored, the last ones. */
export const MAX_DELIVERIES = 20;

/**
 * Adds an attempt to the last ones. The first attempt to deliver the same entry stays, because it says since when the
 * entry fails.
 */
export function withDelivery(
  delivery: WebhookDelivery,
  earlier: readonly WebhookDelivery[],
): readonly WebhookDelivery[] {
  const oldest = earlier.at(-1);
  if (earlier.length < MAX_DELIVERIES || oldest === undefined) return [delivery, ...earlier];
  const last = [delivery, ...earlier.slice(0, MAX_DELIVERIES - 2)];
  return [...last, oldest.id === delivery.id ? oldest : (earlier[MAX_DELIVERIES - 2] ?? oldest)];
}

/**
 * Whether attempts to deliver an entry have failed for so long that it is skipped. The time of the entry itself does
 * not count: the clock of the server that wrote it may be wrong.
 */
export function hasFailedTooLong(id: bigint, deliveries: readonly WebhookDelivery[], now: number): boolean {
  const first = deliveries.findLast((delivery) => BigInt(delivery.id) === id);
  return first !== undefined && first.at <= now - MAX_WAITING_MS;
}

/** How far the audit trail has been delivered, and by which server. */
export interface WebhookState {
  /** Distinguishes the entries of this database from those of another one. */
  readonly source: string;
  /** The identifier of the last entry that was delivered or skipped. */
  readonly position: bigint;
  /** The server that delivers; undefined if it has stopped. */
  readonly server?: string;
  /** Grows while that server delivers. */
  readonly beat: number;
  /** The last attempts, newest first. */
  readonly deliveries: readonly WebhookDelivery[];
}

/** What has not been delivered yet. */
export interface WaitingEntries {
  readonly count: number;
  /** The time of the oldest entry, in milliseconds since the epoch; undefined if there is none. */
  readonly oldestAt?: number;
}
