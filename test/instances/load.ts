import { codeOf } from "./asking.ts";
import { createOf, type Kind, type Operation, readOf } from "./operations.ts";

export interface LoadOptions {
  readonly urls: readonly string[];
  readonly key: string;
  readonly perSecond: number;
}

/** One request on the wire, as a client saw it. Times are those of `performance.now()`. */
export interface Attempt {
  readonly member: number;
  readonly kind: Kind;
  readonly startedAt: number;
  readonly endedAt: number;
  /** Zero: no answer, because the connection was refused or broke, or the client gave up. */
  readonly status: number;
  readonly code: string | undefined;
  readonly retryAfterMs: number;
}

/** Longer than any server may take to answer, so that what is given up on is a server that hangs. */
const GIVE_UP_MS = 10_000;
const MAX_TRIES = 20;
/** A client that finds a door closed goes to the next one; after all of them, it takes a breath. */
const NEXT_DOOR_MS = 20;
/** Clients that were turned away together do not come back together. */
const spread = (number: number) => 1 + (number % 16) / 32;
/** A third are creates, so that each of few seconds has many. */
const CREATE_EVERY = 3;
const TICK_MS = 10;

/**
 * Requests at a steady pace, whatever becomes of those before: a server that stands still is met by as many as it would
 * be in earnest. Each is repeated, at the next server, until it is done; creates with the same Idempotency-Key.
 */
export class Load {
  readonly attempts: Attempt[] = [];
  /** Names of animals by the identifier that a client was told. */
  readonly acknowledged = new Map<string, string>();
  /** What was not done in the end, and why. */
  readonly failures: string[] = [];
  readonly #options: LoadOptions;
  readonly #underWay = new Set<Promise<void>>();
  readonly #startedAt = performance.now();
  #begun = 0;
  #timer: Timer | undefined;

  constructor(options: LoadOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#catchUp(), TICK_MS);
  }

  get operations(): number {
    return this.#begun;
  }

  /** Begins nothing new, and waits until all that was begun is done or given up. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await Promise.all(this.#underWay);
  }

  #catchUp(): void {
    const due = ((performance.now() - this.#startedAt) / 1_000) * this.#options.perSecond;
    while (this.#begun < due) this.#begin(this.#begun++);
  }

  #begin(number: number): void {
    const operation = number % CREATE_EVERY === 0 ? createOf(number) : readOf(number);
    const work = this.#carryOut(operation, number).finally(() => this.#underWay.delete(work));
    this.#underWay.add(work);
  }

  async #carryOut(operation: Operation, number: number): Promise<void> {
    const members = this.#options.urls.length;
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { attempt, body } = await this.#try(operation, (number + tries) % members);
      this.attempts.push(attempt);
      const { status, code, retryAfterMs } = attempt;
      if (status === operation.success) return this.#note(operation, body);
      // Whether an earlier try that broke off is still at work, only time can tell.
      if (status !== 0 && status !== 503 && code !== "idempotency_conflict") {
        return void this.failures.push(`${operation.kind}: ${status} ${code}`);
      }
      await Bun.sleep(Math.max(retryAfterMs * spread(number), NEXT_DOOR_MS * Math.min(tries, members)));
    }
    this.failures.push(`${operation.kind}: given up`);
  }

  #note({ name }: Operation, body: unknown): void {
    if (name === undefined) return;
    const id = typeof body === "object" && body !== null && "id" in body ? String(body.id) : "";
    this.acknowledged.set(name, id);
  }

  async #try({ kind, path, init }: Operation, member: number): Promise<{ attempt: Attempt; body: unknown }> {
    const startedAt = performance.now();
    const seen = await this.#send(member, path, init);
    const endedAt = performance.now();
    const retryAfterMs = Number(seen.headers?.get("retry-after") ?? 0) * 1_000;
    const { status, body } = seen;
    return {
      attempt: { member, kind, startedAt, endedAt, status, code: seen.code ?? codeOf(body), retryAfterMs },
      body,
    };
  }

  async #send(member: number, path: string, init: RequestInit): Promise<Seen> {
    try {
      const response = await fetch((this.#options.urls[member] ?? "") + path, {
        ...init,
        headers: { ...init.headers, Authorization: `Bearer ${this.#options.key}` },
        signal: AbortSignal.timeout(GIVE_UP_MS),
      });
      const body: unknown = await response.json();
      return { status: response.status, headers: response.headers, body };
    } catch (error) {
      const code = error instanceof Error && error.name === "TimeoutError" ? "timeout" : "connection";
      return { status: 0, code, body: undefined };
    }
  }
}

interface Seen {
  readonly status: number;
  readonly headers?: Headers;
  readonly code?: string;
  readonly body: unknown;
}
