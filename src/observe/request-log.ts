import { errorCodeOf } from "../api/dispatch.ts";
import { maskSecrets } from "../domain/constants.ts";
import { OPERATION_IDS, type OperationId } from "../domain/usage-history.ts";
import { TimeSlice } from "../event-loop.ts";
import type { Request, Response } from "../http1/index.ts";
import type { RequestObserver } from "./request-metrics.ts";

export interface LoggedRequest {
  /** Ascending: `STAMPS_PER_MS` of them are a millisecond, and each request of a server has its own. */
  readonly stamp: number;
  readonly requestId: string;
  readonly keyId: number | null;
  readonly method: string;
  readonly path: string;
  readonly operation: OperationId | null;
  readonly status: number;
  readonly code: string | null;
  readonly durationMs: number;
  readonly address: string;
  readonly userAgent: string | null;
}

/** What a request must have to be found. */
export interface RequestConditions extends Partial<
  Pick<LoggedRequest, "requestId" | "keyId" | "operation" | "code" | "address">
> {
  /** The least and the greatest status. */
  readonly statuses?: readonly [number, number];
  readonly slowerThanMs?: number;
  /** The first stamp, and the one after the last. */
  readonly from?: number;
  readonly before?: number;
}

export const STAMPS_PER_MS = 1_024;

/** A record is nine doubles, here their places, and then its text: request id, path, address and user agent. */
const STAMP = 0;
const PREVIOUS = 1;
const LENGTH = 2;
const STATUS = 3;
const DURATION = 4;
const KEY = 5;
const OPERATION = 6;
const CODE = 7;
const METHOD = 8;
const HEADER_BYTES = 9 * 8;
/** Each can be as long as the head of a request. */
const MAX_LENGTH = 200;
/** The longest has a path and a user agent of two bytes a character. */
const MAX_RECORD_BYTES = 1_128;
/** Records do not cross the end of a segment, and a segment is overwritten as a whole. */
const SEGMENT_BYTES = 32 * 1_024;
const RECORDS_PER_LOOK = 512;

const METHODS = ["other", "GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"];
const CONTROL_CHARACTERS = /\p{Cc}/gu;

interface RequestLogOptions {
  readonly maxBytes: number;
  readonly addressOf: (request: Request) => string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * The last requests of this server, in a ring of bytes: its memory is that of the ring, whatever clients send, and the
 * operating system gives it as the ring fills up. A record takes about 120 bytes, and 0.5 µs of CPU time.
 */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #bytes: Buffer;
  readonly #numbers: Float64Array;
  /** Where the next record begins, and where its segment ends. */
  #next = 0;
  #end = SEGMENT_BYTES;
  #newest = 0;
  #oldest = 0;
  /** Of the newest record. */
  #stamp = 0;
  /** Codes of errors, a closed set, by number; a success has the first. */
  readonly #codes: (string | null)[] = [null];

  constructor(options: RequestLogOptions) {
    this.#options = options;
    this.#bytes = Buffer.allocUnsafeSlow(Math.floor(options.maxBytes / SEGMENT_BYTES) * SEGMENT_BYTES);
    this.#numbers = new Float64Array(this.#bytes.buffer);
  }

  get byteLength(): number {
    return this.#bytes.length;
  }

  /** The time of the oldest request, in milliseconds since the epoch. */
  get since(): number | undefined {
    return this.#stamp === 0 ? undefined : Math.floor(this.#numberAt(this.#oldest, STAMP) / STAMPS_PER_MS);
  }

  readonly observe: RequestObserver = (record, response) => {
    if (!record.isCounted(response)) return;
    const { request, requestId, operation, keyId, durationMs } = record;
    const userAgent = request.headers.get("user-agent") ?? "";
    const text = `${requestId} ${start(request.path)} ${this.#options.addressOf(request)} ${start(userAgent)}`;
    if (this.#next + MAX_RECORD_BYTES > this.#end) this.#enterSegment();
    const at = this.#next;
    const length = this.#bytes.write(text.includes("pet_") ? maskSecrets(text) : text, at + HEADER_BYTES);
    // When the clock is set back, the times stay until it has caught up: they never descend.
    this.#stamp = Math.max(this.#options.now() * STAMPS_PER_MS, this.#stamp + 1);
    const numbers = this.#numbers;
    const first = at >> 3;
    numbers[first + STAMP] = this.#stamp;
    numbers[first + PREVIOUS] = this.#newest;
    numbers[first + LENGTH] = length;
    numbers[first + STATUS] = response.status;
    numbers[first + DURATION] = durationMs;
    numbers[first + KEY] = keyId ?? NaN;
    numbers[first + OPERATION] = operation === undefined ? -1 : OPERATION_IDS.indexOf(operation);
    numbers[first + CODE] = response.status < 400 ? 0 : this.#codeNumber(response);
    numbers[first + METHOD] = Math.max(0, METHODS.indexOf(request.method));
    this.#newest = at;
    this.#next = (at + HEADER_BYTES + length + 7) & ~7;
  };

  /** Those that meet all conditions, newest first, and whether there are more. */
  async find(
    conditions: RequestConditions,
    limit: number,
  ): Promise<{ readonly items: readonly LoggedRequest[]; readonly hasMore: boolean }> {
    const items: LoggedRequest[] = [];
    const matches = this.#matcherOf(conditions);
    const slice = new TimeSlice();
    for (let at = this.#newest, looked = 1; this.#stamp > 0; looked++) {
      const stamp = this.#numberAt(at, STAMP);
      if (stamp < (conditions.from ?? 0)) break;
      const item = matches(at) ? this.#read(at, conditions) : undefined;
      if (item && items.length === limit) return { items, hasMore: true };
      if (item) items.push(item);
      if (at === this.#oldest) break;
      at = this.#numberAt(at, PREVIOUS);
      if (looked % RECORDS_PER_LOOK > 0 || !slice.isOver) continue;
      await slice.next();
      // New records may have overwritten the one that would come next.
      if (this.#numberAt(this.#oldest, STAMP) >= stamp) break;
    }
    return { items, hasMore: false };
  }

  /** What can be told without reading the text. */
  #matcherOf(conditions: RequestConditions): (at: number) => boolean {
    const { keyId, code, operation, slowerThanMs = -1, before = Infinity } = conditions;
    const [least, greatest] = conditions.statuses ?? [0, Infinity];
    const equal: [index: number, value: number][] = [];
    if (keyId !== undefined) equal.push([KEY, keyId ?? NaN]);
    if (code !== undefined) equal.push([CODE, this.#codes.indexOf(code)]);
    if (operation) equal.push([OPERATION, OPERATION_IDS.indexOf(operation)]);
    return (at) => {
      const status = this.#numberAt(at, STATUS);
      return (
        status >= least &&
        status <= greatest &&
        this.#numberAt(at, STAMP) < before &&
        this.#numberAt(at, DURATION) > slowerThanMs &&
        equal.every(([index, value]) => this.#numberAt(at, index) === value)
      );
    };
  }

  /** Undefined if the text does not meet the conditions. */
  #read(at: number, conditions: Pick<RequestConditions, "address" | "requestId">): LoggedRequest | undefined {
    const from = at + HEADER_BYTES;
    const text = this.#bytes.toString("utf8", from, from + this.#numberAt(at, LENGTH));
    const [requestId = "", path = "", address = "", ...words] = text
      .replace(CONTROL_CHARACTERS, "\uFFFD")
      .split(" ");
    const wanted = conditions.requestId;
    if (wanted !== undefined && requestId !== maskSecrets(wanted)) return undefined;
    if (conditions.address !== undefined && address !== conditions.address) return undefined;
    const keyId = this.#numberAt(at, KEY);
    return {
      stamp: this.#numberAt(at, STAMP),
      requestId,
      keyId: Number.isNaN(keyId) ? null : keyId,
      method: METHODS[this.#numberAt(at, METHOD)] ?? "other",
      path,
      operation: OPERATION_IDS[this.#numberAt(at, OPERATION)] ?? null,
      status: this.#numberAt(at, STATUS),
      code: this.#codes[this.#numberAt(at, CODE)] ?? null,
      durationMs: Math.round(this.#numberAt(at, DURATION) * 1_000) / 1_000,
      address,
      userAgent: words.join(" ").trim() || null,
    };
  }

  #enterSegment(): void {
    const after = (end: number) => (end === this.#bytes.length ? 0 : end);
    this.#next = after(this.#end);
    this.#end = this.#next + SEGMENT_BYTES;
    if (this.#oldest === this.#next) this.#oldest = after(this.#end);
  }

  #numberAt(at: number, index: number): number {
    return this.#numbers[(at >> 3) + index] ?? 0;
  }

  #codeNumber(response: Response): number {
    const code = errorCodeOf(response) ?? null;
    const known = this.#codes.indexOf(code);
    return known === -1 ? this.#codes.push(code) - 1 : known;
  }
}

function start(text: string): string {
  return text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text;
}
