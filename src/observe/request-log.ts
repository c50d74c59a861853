import { Database } from "bun:sqlite";
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

/** The numbers of a request, by their positions. Its text ends at END in the text of the block. */
const STAMP = 0;
const END = 1;
const STATUS = 2;
const DURATION = 3;
const KEY = 4;
const OPERATION = 5;
const CODE = 6;
const NUMBERS = 7;
/** Each can be as long as the head of a request. */
const MAX_LENGTH = 200;
/** Requests that are written together. */
const BLOCK_REQUESTS = 128;
const CONTROL_CHARACTERS = /\p{Cc}/gu;

/** Some consecutive requests. */
interface Block {
  readonly id: number;
  readonly numbers: Uint8Array;
  readonly text: string;
}

interface RequestLogOptions {
  /** The log takes at least a block. */
  readonly maxBytes: number;
  readonly addressOf: (request: Request) => string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
}

/** What SQLite takes for a block beside its bytes: for its pages, and the unused end of the last one. */
const OVERHEAD = 1.25;

/**
 * The last requests of this server, in memory that belongs to SQLite: the garbage collector would let all other memory
 * grow with it (`npm run attacks -- --only json-bodies`: 350 MB instead of 195).
 */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #database = new Database(":memory:");
  /** Those of the next block: how many, their numbers and their text. */
  #waiting = 0;
  readonly #numbers = new Float64Array(BLOCK_REQUESTS * NUMBERS);
  #text = "";
  /** Of the newest request. */
  #stamp = 0;
  /** Codes of errors, a closed set, by number; a success has the first. */
  readonly #codes: (string | null)[] = [null];
  #storedBytes = 0;

  constructor(options: RequestLogOptions) {
    this.#options = options;
    this.#database.run("PRAGMA journal_mode = OFF");
    this.#database.run(
      "CREATE TABLE blocks (id INTEGER PRIMARY KEY, numbers BLOB NOT NULL, text TEXT NOT NULL)",
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
    const address = this.#options.addressOf(request);
    // The user agent alone may have spaces.
    this.#text += `${shown(requestId)} ${shown(request.method)} ${shown(request.path)} ${address} ${shown(userAgent)}`;
    // When the clock is set back, the times stay until it has caught up: they never descend.
    this.#stamp = Math.max(this.#options.now() * STAMPS_PER_MS, this.#stamp + 1);
    const numbers = this.#numbers;
    const at = this.#waiting * NUMBERS;
    numbers[at + STAMP] = this.#stamp;
    numbers[at + END] = this.#text.length;
    numbers[at + STATUS] = status;
    numbers[at + DURATION] = durationMs;
    numbers[at + KEY] = keyId ?? NaN;
    numbers[at + OPERATION] = operation === undefined ? -1 : OPERATION_IDS.indexOf(operation);
    numbers[at + CODE] = status < 400 ? 0 : this.#codeNumber(response);
    if (++this.#waiting === BLOCK_REQUESTS) this.#write();
  };

  /** Those that meet all conditions, newest first, and whether there are more. */
  async find(
    conditions: RequestConditions,
    limit: number,
  ): Promise<{ readonly items: readonly LoggedRequest[]; readonly hasMore: boolean }> {
    this.#write();
    const items: LoggedRequest[] = [];
    const matches = this.#matcherOf(conditions);
    const slice = new TimeSlice();
    const before = this.#database.query<Block, [number]>(
      "SELECT * FROM blocks WHERE id < ? ORDER BY id DESC LIMIT 1",
    );
    for (let block = before.get(Number.MAX_SAFE_INTEGER); block; block = before.get(block.id)) {
      const { text } = block;
      const numbers = numbersOf(block);
      if ((numbers.at(STAMP - NUMBERS) ?? 0) < (conditions.from ?? 0)) break;
      for (let at = numbers.length - NUMBERS; at >= 0; at -= NUMBERS) {
        const item = matches(numbers, at) ? this.#read({ numbers, text, at }, conditions) : undefined;
        if (item && items.length === limit) return { items, hasMore: true };
        if (item) items.push(item);
      }
      if (slice.isOver) await slice.next();
    }
    return { items, hasMore: false };
  }

  /** What can be told without reading the text. */
  #matcherOf(conditions: RequestConditions): (numbers: Float64Array, at: number) => boolean {
    const { keyId, code, operation, slowerThanMs = -1, from = 0, before = Infinity } = conditions;
    const [least, greatest] = conditions.statuses ?? [0, Infinity];
    const equal: [index: number, value: number][] = [];
    if (keyId !== undefined) equal.push([KEY, keyId ?? NaN]);
    if (code !== undefined) equal.push([CODE, this.#codes.indexOf(code)]);
    if (operation) equal.push([OPERATION, OPERATION_IDS.indexOf(operation)]);
    return (numbers, at) => {
      const { [at + STAMP]: stamp = 0, [at + STATUS]: status = 0, [at + DURATION]: duration = 0 } = numbers;
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

  /** Undefined if the text does not meet the conditions. */
  #read(
    { numbers, text, at }: { readonly numbers: Float64Array; readonly text: string; readonly at: number },
    conditions: Pick<RequestConditions, "address" | "requestId">,
  ): LoggedRequest | undefined {
    const numberOf = (index: number) => numbers[at + index] ?? 0;
    const start = at === 0 ? 0 : numberOf(END - NUMBERS);
    const [requestId = "", method = "", path = "", address = "", ...words] = text
      .slice(start, numberOf(END))
      .replace(CONTROL_CHARACTERS, "\uFFFD")
      .split(" ");
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
      operation: OPERATION_IDS[numberOf(OPERATION)] ?? null,
      status: numberOf(STATUS),
      code: this.#codes[numberOf(CODE)] ?? null,
      durationMs: Math.round(numberOf(DURATION) * 1_000) / 1_000,
      address,
      userAgent: words.join(" ") || null,
    };
  }

  /** Makes a block of the requests that wait, and removes the oldest ones. */
  #write(): void {
    if (this.#waiting === 0) return;
    const numbers = new Uint8Array(this.#numbers.buffer, 0, this.#waiting * NUMBERS * 8);
    const insert = this.#database.query("INSERT INTO blocks (numbers, text) VALUES (?, ?)");
    insert.run(numbers, this.#text);
    this.#storedBytes += storedBytes(numbers.length, Buffer.byteLength(this.#text));
    const remove = this.#database.query<{ numbers: number; text: number }, []>(
      `DELETE FROM blocks WHERE id = (SELECT min(id) FROM blocks)
       RETURNING length(numbers) AS numbers, length(CAST(text AS BLOB)) AS text`,
    );
    while (this.#storedBytes > this.#options.maxBytes) {
      const removed = remove.get();
      if (removed === null) break;
      this.#storedBytes -= storedBytes(removed.numbers, removed.text);
    }
    this.#waiting = 0;
    this.#text = "";
  }

  #codeNumber(response: Response): number {
    const code = errorCodeOf(response) ?? null;
    const known = this.#codes.indexOf(code);
    return known === -1 ? this.#codes.push(code) - 1 : known;
  }
}

function numbersOf({ numbers }: Block): Float64Array {
  return new Float64Array(numbers.slice().buffer);
}

function storedBytes(numbersBytes: number, textBytes: number): number {
  return Math.ceil((numbersBytes + textBytes) * OVERHEAD);
}

/** What the log keeps of it: the beginning, without secrets. */
function shown(text: string): string {
  const beginning = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) : text;
  return beginning.includes("pet_") ? maskSecrets(beginning) : beginning;
}
