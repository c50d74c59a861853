import { type Refusal, refuse } from "../contract/errors.ts";
import { parseJson } from "../contract/json.ts";

export const MAX_BODY_BYTES = 64 * 1024;

type BodyRefusal = Refusal<"invalid_json" | "invalid_body" | "body_too_large" | "unsupported_media_type">;

const TOO_LARGE = refuse("body_too_large", "The body must be at most 64 KiB (65,536 bytes).");
const NO_BODY = refuse("invalid_body", "A body is required: a JSON object.");
const WRONG_TYPE = refuse("unsupported_media_type", "Content-Type must be application/json.");
const NOT_UTF8 = refuse("invalid_json", "The body must be JSON in UTF-8 without a byte order mark.");
const NOT_JSON = refuse("invalid_json", "The body must be valid JSON.");

const JSON_TYPE = /^application\/json[ \t]*(?:;|$)/i;

/** `bytes` are as they came, for the fingerprint of a repeated attempt. */
export interface JsonBody {
  readonly value: unknown;
  readonly bytes: Uint8Array;
}

export function readJsonBody(request: Request): Promise<JsonBody | BodyRefusal> {
  return readBytes(request).then((bytes) => (bytes === undefined ? TOO_LARGE : parseBody(request, bytes)));
}

function parseBody(request: Request, bytes: Uint8Array): JsonBody | BodyRefusal {
  if (bytes.length === 0) return NO_BODY;
  if (!JSON_TYPE.test(request.headers.get("content-type") ?? "")) return WRONG_TYPE;
  const text = decode(bytes);
  if (text === undefined) return NOT_UTF8;
  try {
    return { value: parseJson(text), bytes };
  } catch {
    return NOT_JSON;
  }
}

/**
 * `request.bytes()` gathers whatever comes, so it is only for a length that was announced and is small; a body of
 * unknown length is counted as it arrives. The runtime refuses a length that is not a plain number by itself.
 */
function readBytes(request: Request): Promise<Uint8Array | undefined> {
  const announced = request.headers.get("content-length");
  if (announced === null) return countBytes(request.body);
  return Number(announced) > MAX_BODY_BYTES ? Promise.resolve(undefined) : request.bytes();
}

async function countBytes(body: ReadableStream<Uint8Array> | null): Promise<Uint8Array | undefined> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** `request.json()` lets invalid UTF-8 and a byte order mark pass; neither is JSON. */
function decode(bytes: Uint8Array): string | undefined {
  try {
    const text = strictUtf8.decode(bytes);
    return text.startsWith("\uFEFF") ? undefined : text;
  } catch {
    return undefined;
  }
}
