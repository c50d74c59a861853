import type { Request } from "../http1/index.ts";
import { andThen, type Awaitable } from "./awaitable.ts";
import {
  BODY_REQUIRED,
  bodyTooLarge,
  INVALID_ENCODING,
  INVALID_JSON,
  type Rejection,
  UNSUPPORTED_MEDIA_TYPE,
} from "./errors.ts";
import type { ObjectSchema } from "./schema.ts";

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;
const CHARSET = /;[ \t]*charset="?([^";, \t]*)/i;

function isJsonType(contentType: string): boolean {
  if (contentType === "application/json") return true;
  if (!JSON_TYPE.test(contentType)) return false;
  const charset = CHARSET.exec(contentType)?.[1];
  return charset === undefined || charset.toLowerCase() === "utf-8";
}

export interface JsonBody {
  readonly value: unknown;
  /** As the client sent it. */
  readonly bytes: Uint8Array;
}

/** Undefined if the text is not JSON. Only the fields of the given names have to be in the value. */
export type JsonParser = (text: string, names: readonly string[]) => unknown;

export interface BodyOptions {
  readonly schema: ObjectSchema<unknown>;
  readonly maxBytes: number;
  readonly parse: JsonParser;
}

/** Few pets have a longer name. A body of 16 KiB can take 0.8 ms. */
const LARGE_BODY_BYTES = 2 * 1024;

export function readJsonBody(request: Request, options: BodyOptions): Awaitable<JsonBody | Rejection> {
  const { maxBytes } = options;
  return andThen(request.body(maxBytes), (bytes) => {
    if (bytes === undefined) return bodyTooLarge(maxBytes);
    if (bytes.length <= LARGE_BODY_BYTES) return parseBody(request, bytes, options);
    return inOwnTurn(() => parseBody(request, bytes, options));
  });
}

const waiting: (() => void)[] = [];

/** One large body in each turn of the event loop: the requests of other clients are handled in between. */
function inOwnTurn<T>(work: () => T): Promise<T> {
  return new Promise((resolve) => {
    waiting.push(() => resolve(Promise.try(work)));
    if (waiting.length === 1) setImmediate(takeTurn);
  });
}

function takeTurn(): void {
  waiting[0]?.();
  waiting.shift();
  if (waiting.length > 0) setImmediate(takeTurn);
}

/** No body at all is an empty object if no field is required. */
function parseBody(
  { headers }: Request,
  bytes: Uint8Array,
  { schema, parse }: BodyOptions,
): JsonBody | Rejection {
  if (bytes.length === 0) return schema.isEmptyValid ? { value: {}, bytes } : BODY_REQUIRED;
  if (!isJsonType(headers.get("content-type") ?? "")) return UNSUPPORTED_MEDIA_TYPE;
  const text = decode(bytes);
  if (text === undefined) return INVALID_ENCODING;
  const value = parse(text, schema.names);
  return value === undefined ? INVALID_JSON : { value, bytes };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Undefined for invalid UTF-8 and for a byte order mark, which JSON does not allow (RFC 8259, 8.1). */
function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = utf8.decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    return undefined;
  }
}
