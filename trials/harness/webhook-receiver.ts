/* A receiver of webhooks on loopback, which verifies what it gets by a computation of its own. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./cleanup.ts";

export interface ReceivedEvent {
  /** The header `webhook-id`. */
  readonly id: string;
  readonly type: string;
  /** The path of the request. */
  readonly path: string;
  /** The identifier of the audit entry; of a test event undefined. */
  readonly entry: number | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Whether the receiver has accepted it. */
  readonly isAccepted: boolean;
}

/** What the receiver does with its nth request, from 1 on: it responds, or never responds. */
export type Behaviour = (n: number) => Response | Promise<Response> | "hang";

export const accept = () => new Response("ok\n");

/** A secret as a file has it. */
export const WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=";

/** The flags of a server that delivers to a receiver. */
export function webhookFlags({ url }: Pick<Receiver, "url">, ...events: string[]): string[] {
  const file = join(temporaryDirectory("webhook"), "secret");
  writeFileSync(file, `${WEBHOOK_SECRET}\n`, { mode: 0o600 });
  const chosen = events.flatMap((event) => ["--webhook-events", event]);
  return ["--webhook-url", url, "--webhook-secret-file", file, ...chosen];
}

async function isSigned(headers: Headers, body: string): Promise<boolean> {
  const bytes = Uint8Array.from(atob(WEBHOOK_SECRET.slice("whsec_".length)), (char) => char.charCodeAt(0));
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes, algorithm, false, ["verify"]);
  const content = `${headers.get("webhook-id")}.${headers.get("webhook-timestamp")}.${body}`;
  const signatures = (headers.get("webhook-signature") ?? "").split(" ");
  const isRight = signatures.map(async (each) => {
    const [version, signature = ""] = each.split(",");
    const given = Uint8Array.from(atob(signature), (char) => char.charCodeAt(0));
    return version === "v1" && crypto.subtle.verify("HMAC", key, given, new TextEncoder().encode(content));
  });
  return (await Promise.all(isRight)).includes(true);
}

export function startReceiver(first: Behaviour = accept) {
  let behaviour = first;
  const received: ReceivedEvent[] = [];
  const unsigned: string[] = [];
  let waiting: { readonly until: () => boolean; readonly resolve: () => void }[] = [];
  let requests = 0;
  const serve = (port: number) =>
    Bun.serve({
      port,
      hostname: "127.0.0.1",
      idleTimeout: 60,
      async fetch(request) {
        const body = await request.text();
        if (!(await isSigned(request.headers, body))) unsigned.push(body);
        const { type, data } = JSON.parse(body);
        const response = await behaviour(++requests);
        received.push({
          id: request.headers.get("webhook-id") ?? "",
          type,
          path: new URL(request.url).pathname,
          entry: data.id,
          headers: Object.fromEntries(request.headers),
          body,
          isAccepted: response !== "hang" && response.ok,
        });
        waiting = waiting.filter(({ until, resolve }) => !until() || resolve());
        return response === "hang" ? new Promise<Response>(() => {}) : response;
      },
    });
  let server = serve(0);
  const { port = 0 } = server;
  return {
    url: `http://127.0.0.1:${port}/hook`,
    received,
    /** The bodies of requests whose signature was wrong. */
    unsigned,
    behave(next: Behaviour) {
      behaviour = next;
    },
    /** Refuses connections until `comeBack`. */
    goAway: () => server.stop(true),
    comeBack() {
      server = serve(port);
    },
    /** Resolves when what was received meets the condition. */
    when: (until: () => boolean) =>
      new Promise<void>((resolve) => {
        if (until()) resolve();
        else waiting.push({ until, resolve });
      }),
    /** The identifiers of accepted entries in the order of their first arrival. */
    accepted: () => [
      ...new Set(received.filter(({ isAccepted }) => isAccepted).flatMap(({ entry }) => entry ?? [])),
    ],
    close: () => server.stop(true),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

export type Receiver = ReturnType<typeof startReceiver>;
