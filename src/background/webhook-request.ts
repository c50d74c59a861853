/* One POST to the webhook, as https://www.standardwebhooks.com describes it. */

import { createHmac } from "node:crypto";
import { toJson } from "../api/json.ts";
import type { Environment } from "../domain/environments.ts";
import { type AuditEntry, auditView } from "../domain/audit.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { OutgoingError, sendRequest } from "../runtime/outgoing-request.ts";
import { formatTime, printable } from "../text/formatting.ts";

export interface WebhookTarget {
  readonly url: string;
  /** The bytes of the secrets: one, or two while a receiver changes from one to the other. */
  readonly secrets: readonly Uint8Array[];
}

export interface WebhookMessage {
  /** The same in every repeat. */
  readonly id: string;
  /** JSON. */
  readonly body: string;
}

/** The response, or why there is none. */
export interface WebhookResponse {
  readonly status: number | null;
  readonly error: string | null;
  readonly durationMs: number;
  /** The first line of the body. */
  readonly line: string;
}

/** A database that was restored assigns identifiers again, so the time of the entry is a part of the identifier. */
export function entryMessage(
  { id, at, ...rest }: AuditEntry,
  { source, environment }: { readonly source: string; readonly environment: Environment },
): WebhookMessage {
  const data = { environment, ...auditView({ id, at, ...rest }) };
  const body = toJson({ type: rest.action, timestamp: formatTime(at), data });
  return { id: `${source}_${id}_${at}`, body };
}

const TEST_EVENT = "webhook.test";

export function testMessage(at: number, environment: Environment): WebhookMessage {
  const body = toJson({ type: TEST_EVENT, timestamp: formatTime(at), data: { environment } });
  return { id: `test_${crypto.randomUUID()}`, body };
}

/** More of a response is not read. */
const MAX_RESPONSE_BYTES = 4_096;
const MAX_LINE_LENGTH = 200;

interface SendOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Ends the request. */
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Sends a message once, with a signature for each secret. */
export async function sendMessage(
  { url, secrets }: WebhookTarget,
  { id, body }: WebhookMessage,
  { now, signal, timeoutMs }: SendOptions,
): Promise<WebhookResponse> {
  const timestamp = `${Math.floor(now / 1_000)}`;
  const signatures = secrets.map((secret) =>
    createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64"),
  );
  const startedAt = scheduler.now();
  try {
    const { status, text, durationMs } = await sendRequest(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signatures.map((signature) => `v1,${signature}`).join(" "),
      },
      body,
      timeoutMs,
      maxBytes: MAX_RESPONSE_BYTES,
      // The status is the response.
      isEnough: (beginning) => beginning.includes("\n"),
      signal,
    });
    const [line = ""] = text.split(/\r?\n/);
    return { status, error: null, line: printable(line.slice(0, MAX_LINE_LENGTH)), durationMs };
  } catch (error) {
    const durationMs = Math.round(scheduler.now() - startedAt);
    if (!(error instanceof OutgoingError)) throw error;
    return { status: null, error: error.message, line: "", durationMs };
  }
}
