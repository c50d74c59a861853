import type { Request } from "../http1/index.ts";
import { scheduler } from "../runtime/scheduler.ts";

/** What a client says about its trace in `traceparent` (W3C Trace Context). */
export interface TraceContext {
  readonly traceId: string;
  /** The span of the client. */
  readonly parentId: string;
  readonly isSampled: boolean;
}

/** Version 00 ends after the flags; later versions may be longer. */
const TRACEPARENT =
  /^(?:00(?=.{53}$)|(?!00|ff)[\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:-|$)/;
const SAMPLED = 1;

/** Returns undefined if the header is missing or invalid. */
export function traceContextOf({ headers }: Pick<Request, "headers">): TraceContext | undefined {
  const header = headers.get("traceparent");
  if (header === null) return undefined;
  const [, traceId, parentId, flags = ""] = TRACEPARENT.exec(header) ?? [];
  if (traceId === undefined || parentId === undefined) return undefined;
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0 };
}

/** The parts of a request that have a span of their own. */
type Part = "authentication" | "rate limit" | "store";

interface Span {
  readonly name: Part;
  /** Milliseconds since the request began. */
  readonly from: number;
  to?: number;
}

/** The spans of one request. */
export class Trace {
  readonly traceId: string;
  readonly parentId: string | undefined;
  readonly startedAt = Date.now();
  readonly spans: Span[] = [];
  readonly #startedAt = scheduler.now();

  constructor(parent?: TraceContext) {
    this.traceId = parent?.traceId ?? randomId(16);
    this.parentId = parent?.parentId;
  }

  /** Begins a part, and ends the one before. */
  begin(name: Part): void {
    this.end();
    this.spans.push({ name, from: scheduler.now() - this.#startedAt });
  }

  end(): void {
    const last = this.spans.at(-1);
    if (last) last.to ??= scheduler.now() - this.#startedAt;
  }
}

export function randomId(bytes: number): string {
  return crypto.getRandomValues(new Uint8Array(bytes)).toHex();
}
