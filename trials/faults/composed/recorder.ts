import { once } from "node:events";
import { parseResponse, RawConnection } from "../../harness/http-connection.ts";
import { errorCode } from "../../harness/api-client.ts";
import { runPetstore } from "../../harness/petstore.ts";
import type { Action, Operation } from "./history.ts";
import type { Played } from "./played.ts";

/** A key, or an operator with a token. */
export interface Credential {
  readonly name: string;
  readonly secret: string;
  /** The identifier in operators' operations. */
  readonly id: string;
  readonly isOperator: boolean;
}

export interface Call {
  /** The number of the server, starting with 1. */
  readonly server: number;
  readonly credential: Credential;
  readonly method?: string;
  readonly path: string;
  readonly idempotencyKey?: string | undefined;
  readonly body?: unknown;
  /** When this resolves, the end of the body is sent. */
  readonly bodyAfter?: Promise<unknown>;
}

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

type IdentifiedCall = Call & { readonly requestId: string };

/** The timeout of a request, which is longer than a server may take. */
const TIMEOUT_MS = 15_000;

/** Sends requests and runs commands, and records them with their times. */
export class Recorder {
  readonly operations: Operation[] = [];
  readonly #startedAt = performance.now();
  #requests = 0;

  constructor(readonly deployment: Played) {}

  readonly now = () => performance.now() - this.#startedAt;

  /** Sends a request. `actionOf` derives the action from the response. */
  async request(call: Call, actionOf: (reply: Reply) => Action): Promise<Reply> {
    const { server, credential } = call;
    const requestId = `composed-${++this.#requests}`;
    const startedAt = this.now();
    const sent = { at: startedAt };
    const { reply, problem } = await this.#exchange({ ...call, requestId }, sent).then(
      (given) => ({ reply: given, problem: undefined }),
      (error: Error) => ({ reply: { status: 0, body: undefined }, problem: error.message }),
    );
    this.operations.push({
      server,
      credential: credential.name,
      startedAt,
      sentAt: sent.at,
      endedAt: this.now(),
      status: reply.status,
      code: problem ?? errorCode(reply.body),
      requestId,
      action: actionOf(reply),
    });
    return reply;
  }

  /** Runs a command. Status 200 stands for success, and 0 for any failure. */
  async command(args: readonly string[], actionOf: (output: unknown) => Action): Promise<boolean> {
    const startedAt = this.now();
    const { code, out, err } = await runPetstore(...args, "--json", ...this.deployment.storage);
    const isDone = code === 0;
    this.operations.push({
      server: 0,
      credential: "command line",
      startedAt,
      sentAt: startedAt,
      endedAt: this.now(),
      status: isDone ? 200 : 0,
      code: isDone ? undefined : err.trim(),
      action: actionOf(isDone ? JSON.parse(out) : undefined),
    });
    return isDone;
  }

  #port({ server, credential }: Call): number {
    const { ports, servers } = this.deployment.fleet;
    if (!credential.isOperator) return ports[server - 1] ?? 0;
    return Number(new URL(servers[server - 1]?.adminUrl ?? "").port);
  }

  async #exchange(call: IdentifiedCall, sent: { at: number }): Promise<Reply> {
    const connection = new RawConnection(this.#port(call));
    const start = () =>
      setTimeout(() => connection.socket.destroy(new Error("no response in time")), TIMEOUT_MS);
    let timer = start();
    try {
      await once(connection.socket, "connect");
      const { head, body } = textOf(call);
      if (call.bodyAfter) {
        // The server reads the head, and some of the body, before the rest is sent.
        await connection.write(head + body.slice(0, 1));
        clearTimeout(timer);
        await Promise.race([call.bodyAfter, connection.until((text) => text !== "")]);
        sent.at = this.now();
        timer = start();
        if (!connection.isClosed) await connection.write(body.slice(1));
      } else {
        await connection.write(head + body);
      }
      const text = await connection.response(call.method);
      const response = parseResponse(text, call.method);
      if (response === undefined) throw connection.error ?? new Error("the connection was closed");
      return { status: response.status, body: response.body === "" ? undefined : JSON.parse(response.body) };
    } finally {
      clearTimeout(timer);
      connection.socket.destroy();
    }
  }
}

function textOf({ method = "GET", path, credential, idempotencyKey, body, requestId }: IdentifiedCall) {
  const content = body === undefined ? "" : JSON.stringify(body);
  const lines = [
    `${method} ${path} HTTP/1.1`,
    "Host: localhost",
    "Connection: close",
    `Authorization: Bearer ${credential.secret}`,
    `X-Request-Id: ${requestId}`,
    ...(idempotencyKey === undefined ? [] : [`Idempotency-Key: ${idempotencyKey}`]),
    ...(body === undefined
      ? []
      : ["Content-Type: application/json", `Content-Length: ${Buffer.byteLength(content)}`]),
  ];
  return { head: `${lines.join("\r\n")}\r\n\r\n`, body: content };
}
