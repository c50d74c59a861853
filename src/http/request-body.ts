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
  if (!JSON_TYPE.test(contentType)) return false;
  const charset = CHARSET.exec(contentType)?.[1];
  return charset === undefined || charset.toLowerCase() === "utf-8";
}

export interface JsonBody {
  readonly value: unknown;
  /** As the client sent it. */
  readonly bytes: Uint8Array;
}

/** Only the fields of the given names have to be in `value`. */
export function readJsonBody(request: Request, names: readonly string[]): Awaitable<JsonBody | Rejection> {
  return andThen(request.body(MAX_BODY_BYTES), (bytes) =>
    bytes === undefined ? BODY_TOO_LARGE : parseBody(request, bytes, names),
  );
}

function parseBody({ headers }: Request, bytes: Uint8Array, names: readonly string[]): JsonBody | Rejection {
  if (bytes.length === 0) return BODY_REQUIRED;
  if (!isJsonType(headers.get("content-type") ?? "")) return UNSUPPORTED_MEDIA_TYPE;
  const text = decode(bytes);
  if (text === undefined) return INVALID_ENCODING;
  const value = parseFields(text, names);
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
