import { errorCode } from "./api-client.ts";

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly key: string;
  readonly perSecond: number;
  /** The number of attempts for each request, one after the other. */
  readonly maxAttempts?: number;
}

/** One attempt of a request. Times are those of `performance.now()`. */
export interface Attempt {
  readonly server: number;
  readonly kind: Operation["kind"];
  readonly startedAt: number;
  readonly endedAt: number;
  /**
   * The status; 0 means that no response arrived, because the connection was rejected or broke, or the time was over.
   */
  readonly status: number;
  /** The code of an error; without a response, "connection" or "timeout". */
  readonly code: string | undefined;
  readonly retryAfterMs: number;
}

export const durationOf = ({ startedAt, endedAt }: Attempt) => endedAt - startedAt;
export const isError = ({ status }: Attempt) => status !== 200 && status !== 201;

/** The timeout, which is longer than a server may take: only a server that hangs reaches it. */
const TIMEOUT_MS = 10_000;
const MAX_ATTEMPTS = 20;
/** How much the pause grows with each attempt, up to one round of all servers. */
const BACKOFF_MS = 20;
/** Spreads the retries of requests that failed together. */
const jitter = (number: number) => 1 + (number % 16) / 32;
const CREATE_EVERY = 3;

/**
 * Sends requests at a constant rate, however long earlier ones take. A third of them are creates. Each request is
 * retried on the next server until it succeeds; a create keeps its Idempotency-Key. Pet 1 must exist.
 */
export class SteadyLoad {
  readonly attempts: Attempt[] = [];
  /** The names of created pets, with the identifiers that the server assigned. */
  readonly acknowledged = new Map<string, string>();
  readonly failures: string[] = [];
  readonly #options: LoadOptions;
  readonly #end = new AbortController();
  readonly #ended: Promise<void>;

  constructor(options: LoadOptions) {
    this.#options = options;
    const begin = (number: number) => this.#carryOut(operationOf(number), number);
    this.#ended = beginEvery(1_000 / options.perSecond, begin, { signal: this.#end.signal });
  }

  /** Resolves when every operation has succeeded or failed. */
  async stop(): Promise<void> {
    this.#end.abort();
    await this.#ended;
  }

  async #carryOut(operation: Operation, number: number): Promise<void> {
    const { urls, maxAttempts = MAX_ATTEMPTS } = this.#options;
    const servers = urls.length;
    for (let attempts = 0; attempts < maxAttempts; attempts++) {
      const { attempt, body } = await this.#attempt(operation, (number + attempts) % servers);
      this.attempts.push(attempt);
      const { status, code, retryAfterMs } = attempt;
      if (status === operation.success) {
        const id = typeof body === "object" && body !== null && "id" in body ? String(body.id) : "";
        if (operation.name !== undefined) this.acknowledged.set(operation.name, id);
        return;
      }
      // After a conflict, an earlier attempt that was aborted may still be running.
      if (status !== 0 && status !== 503 && code !== "idempotency_conflict") {
        return void this.failures.push(`${operation.kind}: ${status} ${code}`);
      }
      await Bun.sleep(Math.max(retryAfterMs * jitter(number), BACKOFF_MS * Math.min(attempts, servers)));
    }
    this.failures.push(`${operation.kind}: failed ${maxAttempts} times`);
  }

  async #attempt({ kind, path, init }: Operation, server: number) {
    const startedAt = performance.now();
    const finished = (status: number, code: string | undefined, retryAfterMs = 0): Attempt => {
      return { server, kind, startedAt, endedAt: performance.now(), status, code, retryAfterMs };
    };
    try {
      const response = await fetch((this.#options.urls[server] ?? "") + path, {
        ...init,
        headers: { ...init?.headers, Authorization: `Bearer ${this.#options.key}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const body: unknown = await response.json();
      const retryAfterMs = Number(response.headers.get("retry-after") ?? 0) * 1_000;
      return { attempt: finished(response.status, errorCode(body), retryAfterMs), body };
    } catch (error) {
      const isTimeout = error instanceof Error && error.name === "TimeoutError";
      return { attempt: finished(0, isTimeout ? "timeout" : "connection") };
    }
  }
}

type Operation = ReturnType<typeof operationOf>;

function operationOf(number: number) {
  if (number % CREATE_EVERY !== 0) {
    return number % 2 === 0
      ? { kind: "list" as const, path: "/pets", success: 200 }
      : { kind: "get" as const, path: "/pets/1", success: 200 };
  }
  const name = `pet ${number}`;
  const headers = { "Content-Type": "application/json", "Idempotency-Key": `create-${number}` };
  const init = { method: "POST", headers, body: JSON.stringify({ name, categoryId: 1 }) };
  return { kind: "create" as const, path: "/pets", init, success: 201, name };
}

/** Begins work at a fixed interval, however long earlier work takes. Resolves when all work has ended. */
export async function beginEvery(
  ms: number,
  begin: (number: number) => Promise<void>,
  { count = Infinity, signal }: { count?: number; signal?: AbortSignal },
): Promise<void> {
  const startedAt = performance.now();
  const pending = new Set<Promise<void>>();
  for (let number = 0; number < count; number++) {
    await Bun.sleep(Math.max(0, startedAt + number * ms - performance.now()));
    if (signal?.aborted) break;
    const operation = begin(number);
    pending.add(operation);
    void operation.finally(() => pending.delete(operation));
  }
  await Promise.all(pending);
}
