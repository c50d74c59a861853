/* One POST to the webhook, as https://www.standardwebhooks.com describes it. */

import { createHmac } from "node:crypto";
import packageJson from "../../package.json" with { type: "json" };
import { toJson } from "../api/json.ts";
import type { Environment } from "../domain/api-keys.ts";
import { type AuditEntry, auditView } from "../domain/audit.ts";
import { scheduler } from "../runtime/event-loop.ts";
import { tlsFor } from "../runtime/outgoing-tls.ts";
import { formatTime, printable } from "../text/formatting.ts";

export interface WebhookTarget {
  readonly url: string;
  /** The bytes of the secret. */
  readonly secret: Uint8Array;
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

const TIMEOUT_MS = 10_000;
/** More of a response is not read. */
const MAX_RESPONSE_BYTES = 4_096;
const MAX_LINE_LENGTH = 200;

interface SendOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Ends the request. */
  readonly signal: AbortSignal;
  readonly timeoutMs?: number | undefined;
}

/** Sends a message once. Follows no redirect, because the operator has named the address that gets it. */
export async function sendMessage(
  { url, secret }: WebhookTarget,
  { id, body }: WebhookMessage,
  { now, signal, timeoutMs = TIMEOUT_MS }: SendOptions,
): Promise<WebhookResponse> {
  const timestamp = `${Math.floor(now / 1_000)}`;
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  const startedAt = scheduler.now();
  const timeout = AbortSignal.timeout(timeoutMs);
  const ended = (rest: Omit<WebhookResponse, "durationMs">) => ({
    ...rest,
    durationMs: Math.round(scheduler.now() - startedAt),
  });
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "Accept-Encoding": "identity",
        "User-Agent": `Petstore/${packageJson.version}`,
        "webhook-id": id,
        "webhook-timestamp": timestamp,
        "webhook-signature": `v1,${signature}`,
      },
      body,
      redirect: "manual",
      decompress: false,
      signal: AbortSignal.any([timeout, signal]),
      ...tlsFor(url),
    });
    // The status is the response. A body that breaks off or takes too long changes nothing.
    const line = await firstLine(response).catch(() => "");
    return ended({ status: response.status, error: null, line });
  } catch (error) {
    const reason = timeout.aborted ? `no response within ${timeoutMs / 1_000} seconds` : reasonOf(error);
    return ended({ status: null, error: printable(reason).slice(0, MAX_LINE_LENGTH), line: "" });
  }
}

async function firstLine({ body }: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  // Leaving the loop cancels the rest.
  for await (const part of body ?? []) {
    text += decoder.decode(part.subarray(0, MAX_RESPONSE_BYTES), { stream: true });
    if (text.length >= MAX_RESPONSE_BYTES || text.includes("\n")) break;
  }
  const [line = ""] = text.split(/\r?\n/, 1);
  return printable(line.slice(0, MAX_LINE_LENGTH));
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return "code" in error && typeof error.code === "string" ? error.code : error.message;
}
