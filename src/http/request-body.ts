import { type Rejection, rejection } from "../contract/errors.ts";
import { parseJson } from "../contract/json.ts";
import { andThen, type Awaitable } from "../domain/awaitable.ts";
import type { Request } from "../http1/index.ts";

export const MAX_BODY_BYTES = 64 * 1024;

type BodyRejection = Rejection<"invalid_json" | "invalid_body" | "body_too_large" | "unsupported_media_type">;

const TOO_LARGE = rejection("body_too_large", "The body must be at most 64 KiB (65,536 bytes).");
const NO_BODY = rejection("invalid_body", "A body is required: a JSON object.");
const WRONG_TYPE = rejection("unsupported_media_type", "Content-Type must be application/json.");
const NOT_UTF8 = rejection("invalid_json", "The body must be JSON in UTF-8 without a byte order mark.");
const NOT_JSON = rejection("invalid_json", "The body must be valid JSON.");

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** `bytes` are as they came, for the fingerprint of a repeated idempotentRequest. */
export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Uint8Array;
}

export function readJsonBody(request: Request): Awaitable<JsonBody | BodyRejection> {
  return andThen(request.body(MAX_BODY_BYTES), (bytes) =>
    bytes === undefined ? TOO_LARGE : parseBody(request, bytes),
  );
}

function parseBody({ headers }: Request, bytes: Uint8Array): JsonBody | BodyRejection {
  if (bytes.length === 0) return NO_BODY;
  if (!JSON_TYPE.test(headers.get("content-type") ?? "")) return WRONG_TYPE;
  const text = decode(bytes);
  if (text === undefined) return NOT_UTF8;
  try {
    return { value: parseJson(text), bytes };
  } catch {
    return NOT_JSON;
  }
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Neither invalid UTF-8 nor a byte order mark is JSON. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = strictUtf8.decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    return undefined;
  }
}
