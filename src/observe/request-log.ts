import { Database } from "bun:sqlite";
import { ANY_SECRET_PREFIX } from "../domain/secrets.ts";
import { maskSecrets } from "../domain/masks.ts";
import { MAX_LOGGED_LENGTH, MAX_LOGGED_METHOD_LENGTH } from "../domain/logging.ts";
import { yieldToEventLoop } from "../runtime/scheduler.ts";
import type { RequestObserver } from "./request-record.ts";

export interface LoggedRequest {
  /**
   * The time and order of a request. Stamps ascend, `STAMPS_PER_MS` of them make a millisecond, and each request of a
   * server has its own.
   */
  readonly stamp: number;
  readonly requestId: string;
  readonly keyId: number | null;
  readonly method: string;
  readonly path: string;
  readonly operation: string | null;
  readonly status: number;
  readonly code: string | null;
  /** The message of an error, as the client got it, or its beginning. */
  readonly message: string | null;
  readonly durationMs: number;
  readonly address: string;
  readonly userAgent: string | null;
}

export interface RequestConditions extends Partial<
  Pick<LoggedRequest, "requestId" | "keyId" | "operation" | "code" | "address">
> {
  /** The lowest and the highest status, both included. */
  readonly statuses?: readonly [number, number];
  readonly slowerThanMs?: number;
  /** The first stamp that is included. */
  readonly from?: number;
  /** The first stamp that is excluded. */
  readonly before?: number;
}

export const STAMPS_PER_MS = 1_024;

/** The positions of the numbers of a request. */
const STAMP = 0;
const STATUS = 1;
const DURATION = 2;
const KEY = 3;
const OPERATION = 4;
const CODE = 5;
const NUMBERS = 6;
/** The number of texts of a request: request id, method, path, address, user agent and message. */
const TEXTS = 6;
/**
 * Separates texts. None of them contains a line feed: it ends a line in the head of a request, and messages are
 * sentences of this program.
 */
const SEPARATOR = "\n";
/** The number of requests that are written together. */
const BLOCK_REQUESTS = 512;
const CONTROL_CHARACTERS = /\p{Cc}/gu;
const OTHER_METHOD = "other";

interface Block {
  readonly id: number;
  readonly numbers: Uint8Array;
  readonly texts: string;
}

interface RequestLogOptions {
  /** The maximum size of the log, which always takes at least one block. */
  readonly maxBytes: number;
  /** The time in milliseconds since the epoch. */
  readonly now: () => number;
}

/**
 * The memory that SQLite takes for each byte of a block: pages have overhead, and the end of the last one is unused.
 */
const OVERHEAD = 1.25;

/**
 * The last requests of this server. They are in memory that belongs to SQLite, because the garbage collector would let
 * all other memory grow with it (`npm run attacks -- --only json-bodies`: 350 MB instead of 195).
 */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #database = new Database(":memory:");
  /** The number of requests in the next block. `#numbers` and `#texts` have their values. */
  #waiting = 0;
  readonly #numbers = new Float64Array(BLOCK_REQUESTS * NUMBERS);
  readonly #texts: string[] = [];
  /** The stamp of the newest request. */
  #stamp = 0;
  /** The operations and the codes of errors, which are closed sets, by number. The number 0 is for none. */
  readonly #operations: (string | null)[] = [null];
  readonly #codes: (string | null)[] = [null];
  /** The size of each block, oldest first. */
  readonly #blockBytes: number[] = [];
  #storedBytes = 0;

  constructor(options: RequestLogOptions) {
    this.#options = options;
    this.#database.run("PRAGMA journal_mode = OFF");
    this.#database.run(
      "CREATE TABLE blocks (id INTEGER PRIMARY KEY, numbers BLOB NOT NULL, texts TEXT NOT NULL)",
    );
  }

  get byteLength(): number {
    return this.#storedBytes;
  }

  /** The time of the oldest request, in milliseconds since the epoch. */
  get since(): number | undefined {
    this.#write();
    const oldest = this.#database.query<Block, []>("SELECT * FROM blocks ORDER BY id LIMIT 1").get();
    return oldest ? Math.floor((numbersOf(oldest)[STAMP] ?? 0) / STAMPS_PER_MS) : undefined;
  }

  readonly observe: RequestObserver = (record, response) => {
    if (!record.isCounted(response)) return;
    const { request, requestId, operation, durationMs, keyId } = record;
    const { status } = response;
    const userAgent = request.headers.get("user-agent") ?? "";
    this.#texts.push(
      beginningOf(requestId),
      request.method.length > MAX_LOGGED_METHOD_LENGTH ? OTHER_METHOD : request.method,
      beginningOf(request.path),
      request.clientAddress,
      beginningOf(userAgent),
      beginningOf(response.errorMessage ?? ""),
    );
    // When the clock is set back, stamps continue to ascend slowly until it has caught up.
    this.#stamp = Math.max(this.#options.now() * STAMPS_PER_MS, this.#stamp + 1);
    const numbers = this.#numbers;
    const at = this.#waiting * NUMBERS;
    numbers[at + STAMP] = this.#stamp;
    numbers[at + STATUS] = status;
    numbers[at + DURATION] = durationMs;
    numbers[at + KEY] = keyId ?? NaN;
    numbers[at + OPERATION] = numberIn(this.#operations, operation);
    numbers[at + CODE] = status < 400 ? 0 : numberIn(this.#codes, response.errorCode);
    if (++this.#waiting === BLOCK_REQUESTS) this.#write();
  };

  /** Finds the requests that meet all conditions, newest first, and whether more follow. */
  async find(
    conditions: RequestConditions,
    limit: number,
  ): Promise<{ readonly items: readonly LoggedRequest[]; readonly hasMore: boolean }> {
    this.#write();
    const items: LoggedRequest[] = [];
    const matches = this.#matcherOf(conditions);
    const before = this.#database.query<Block, [number]>(
      "SELECT * FROM blocks WHERE id < ? ORDER BY id DESC LIMIT 1",
    );
    for (let block = before.get(Number.MAX_SAFE_INTEGER); block; block = before.get(block.id)) {
      const numbers = numbersOf(block);
      let texts: readonly string[] | undefined;
      if ((numbers.at(STAMP - NUMBERS) ?? 0) < (conditions.from ?? 0)) break;
      for (let at = numbers.length - NUMBERS; at >= 0; at -= NUMBERS) {
        if (!matches(numbers, at)) continue;
        texts ??= block.texts.split(SEPARATOR);
        const item = this.#read(numbers, at, texts, conditions);
        if (item && items.length === limit) return { items, hasMore: true };
        if (item) items.push(item);
      }
      await yieldToEventLoop();
    }
    return { items, hasMore: false };
  }

  /** Checks the conditions that need no texts. */
  #matcherOf(conditions: RequestConditions): (numbers: Float64Array, at: number) => boolean {
    const {
      keyId,
      code,
      operation,
      slowerThanMs = -Infinity,
      from = -Infinity,
      before = Infinity,
    } = conditions;
    const [least, greatest] = conditions.statuses ?? [-Infinity, Infinity];
    const equal: [index: number, value: number][] = [];
    if (keyId !== undefined) equal.push([KEY, keyId ?? NaN]);
    if (code !== undefined) equal.push([CODE, this.#codes.indexOf(code)]);
    if (operation) equal.push([OPERATION, this.#operations.indexOf(operation)]);
    return (numbers, at) => {
      const {
        [at + STAMP]: stamp = NaN,
        [at + STATUS]: status = NaN,
        [at + DURATION]: duration = NaN,
      } = numbers;
      return (
        status >= least &&
        status <= greatest &&
        stamp >= from &&
        stamp < before &&
        duration > slowerThanMs &&
        equal.every(([index, value]) => numbers[at + index] === value)
      );
    };
  }

  /** Reads a request. Returns undefined if its texts do not meet the conditions. */
  #read(
    numbers: Float64Array,
    at: number,
    texts: readonly string[],
    conditions: Pick<RequestConditions, "address" | "requestId">,
  ): LoggedRequest | undefined {
    const numberOf = (index: number) => numbers[at + index] ?? NaN;
    const start = (at / NUMBERS) * TEXTS;
    const [requestId = "", method = "", path = "", address = "", userAgent = "", message = ""] = texts
      .slice(start, start + TEXTS)
      .map((text) => text.replace(CONTROL_CHARACTERS, "\uFFFD"));
    const wanted = conditions.requestId;
    if (wanted !== undefined && requestId !== maskSecrets(wanted)) return undefined;
    if (conditions.address !== undefined && address !== conditions.address) return undefined;
    const keyId = numberOf(KEY);
    return {
      stamp: numberOf(STAMP),
      requestId,
      keyId: Number.isNaN(keyId) ? null : keyId,
      method,
      path,
      operation: this.#operations[numberOf(OPERATION)] ?? null,
      status: numberOf(STATUS),
      code: this.#codes[numberOf(CODE)] ?? null,
      message: message === "" ? null : message,
      durationMs: Math.round(numberOf(DURATION) * 1_000) / 1_000,
      address,
      userAgent: userAgent.trim() === "" ? null : userAgent,
    };
  }

  #write(): void {
    if (this.#waiting === 0) return;
    const numbers = new Uint8Array(this.#numbers.buffer, 0, this.#waiting * NUMBERS * 8);
    const joined = this.#texts.join(SEPARATOR);
    // Hardly any block contains a secret, and searching for this text alone takes a tenth of the time.
    const texts = joined.includes(ANY_SECRET_PREFIX) ? maskSecrets(joined) : joined;
    this.#database.query("INSERT INTO blocks (numbers, texts) VALUES (?, ?)").run(numbers, texts);
    const bytes = Math.ceil((numbers.length + Buffer.byteLength(texts)) * OVERHEAD);
    this.#blockBytes.push(bytes);
    this.#storedBytes += bytes;
    while (this.#storedBytes > this.#options.maxBytes) {
      this.#database.query("DELETE FROM blocks WHERE id = (SELECT min(id) FROM blocks)").run();
      this.#storedBytes -= this.#blockBytes.shift() ?? 0;
    }
    this.#waiting = 0;
    this.#texts.length = 0;
  }
}

/** The number of a value, which is added if it is new. */
function numberIn(values: (string | null)[], value: string | null = null): number {
  const known = values.indexOf(value);
  return known === -1 ? values.push(value) - 1 : known;
}

function numbersOf({ numbers }: Block): Float64Array {
  return new Float64Array(numbers.slice().buffer);
}

function beginningOf(text: string): string {
  return text.slice(0, MAX_LOGGED_LENGTH);
}
