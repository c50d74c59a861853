import { MAX_BODY_BYTES } from "../contract/constants.ts";
import {
  BODY_REQUIRED,
  BODY_TOO_LARGE,
  INVALID_ENCODING,
  INVALID_JSON,
  type Rejection,
  UNSUPPORTED_MEDIA_TYPE,
} from "../contract/errors.ts";
import { parseFields } from "../contract/json-fields.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { Request } from "../http1/index.ts";

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

/** Few pets have a longer name. A body of 16 KiB can take 0.8 ms. */
const LARGE_BODY_BYTES = 2 * 1024;

/** Only the fields of the given names have to be in `value`. */
export function readJsonBody(request: Request, names: readonly string[]): Awaitable<JsonBody | Rejection> {
  return andThen(request.body(MAX_BODY_BYTES), (bytes) => {
    if (bytes === undefined) return BODY_TOO_LARGE;
    if (bytes.length <= LARGE_BODY_BYTES) return parseBody(request, bytes, names);
    return inOwnTurn(() => parseBody(request, bytes, names));
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

function parseBody(request: Request, bytes: Uint8Array, names: readonly string[]): JsonBody | Rejection {
  const text = jsonTextOf(request, bytes);
  if (typeof text !== "string") return text;
  const value = parseFields(text, names);
  return value === undefined ? INVALID_JSON : { value, bytes };
}

type TextRejection = Rejection<"invalid_body" | "unsupported_media_type" | "invalid_json">;

/** The text of a body that is meant to be JSON; it is not parsed. */
export function jsonTextOf({ headers }: Pick<Request, "headers">, bytes: Uint8Array): string | TextRejection {
  if (bytes.length === 0) return BODY_REQUIRED;
  if (!isJsonType(headers.get("content-type") ?? "")) return UNSUPPORTED_MEDIA_TYPE;
  return decode(bytes) ?? INVALID_ENCODING;
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
