import type { Random } from "../harness/random.ts";

export interface FuzzRequest {
  /** The request, with one character for each byte. */
  readonly text: string;
  readonly method: string;
  /** Whether it is HTTP whose end the server finds. If not, nothing can follow on its connection. */
  readonly isFramed: boolean;
}

/** Splits a list whose items are separated by bars. */
const listOf = (text: string) => text.split("|") as [string, ...string[]];
const PATHS = listOf(
  "/v1/pets|/v1/pets/1|/v1/store/orders|/v1/store/orders/1|/openapi.json|/docs|/healthz|/",
);
const METHODS = listOf("GET|GET|GET|GET|GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|get|X");
const WRITES = [
  ["POST", "/v1/pets"],
  ["POST", "/v1/store/orders"],
  ["PATCH", "/v1/store/orders/1"],
] as const;
const PARAMETERS = listOf("limit|status|cursor|id|LIMIT|limit%20|%|");
const PARAMETER_VALUES = listOf("|0|1|05|100|101|-1|1e1|available|Sold|%00|%ff|%zz");
const HEADERS = listOf(
  "Authorization|Content-Type|If-None-Match|Idempotency-Key|Accept|Accept-Encoding|X-Request-Id|" +
    "X-Forwarded-For|Range|Cookie",
);
const HEADER_VALUES = listOf('|*|""|W/"x"|Bearer|Bearer x|gzip;q=0|application/json;x|::1|,');
/** Lines that define where a body ends, or change the connection. */
const FRAMING = listOf(
  "Content-Length: 0|Content-Length: 5|Content-Length: -1|Content-Length: 1, 1|Content-Length: 99999999999999999999|" +
    "Transfer-Encoding: chunked|Transfer-Encoding: gzip|Transfer-Encoding : chunked|Connection: close|" +
    "Connection: upgrade|Expect: 100-continue|Expect: x|Host: y|Upgrade: h2c| folded",
);
const CHUNKS = listOf(
  "0\r\n\r\n|1\r\nx\r\n0\r\n\r\n|z\r\n|ffffffffff\r\n|1;a=b\r\nx\r\n0\r\nT: x\r\n\r\n|2\r\nx\r\n",
);
const VERSIONS = listOf("HTTP/1.1|HTTP/1.0|HTTP/2.0|HTTP/1.10|HTTP/0.9|http/1.1|");
const MAX_RAW_BYTES = 400;

/** Generates a request that is seldom valid. Most have the key, so that they pass authentication. */
export function fuzzRequest(random: Random, key: string): FuzzRequest {
  const kind = random.below(10);
  if (kind > 2) return framed(random, key);
  const text = kind === 0 ? rawBytes(random) : brokenGrammar(random, key);
  return { text, method: "", isFramed: false };
}

function framed(random: Random, key: string): FuzzRequest {
  const hasBody = random.chance(2);
  const [method, path] =
    hasBody && !random.chance(16)
      ? random.pick<readonly [string, string]>(WRITES)
      : [random.pick(METHODS), target(random)];
  const lines = [`${method} ${path} HTTP/1.1`, "Host: x"];
  if (!random.chance(16)) lines.push(`Authorization: Bearer ${key}`);
  if (random.chance(3)) lines.push(...Array.from({ length: random.below(4) }, () => header(random)));
  const body = hasBody ? fuzzJson(random) : "";
  if (hasBody) {
    if (!random.chance(16)) lines.push("Content-Type: application/json");
    lines.push(`Content-Length: ${body.length}`);
  }
  return { text: `${lines.join("\r\n")}\r\n\r\n${body}`, method, isFramed: true };
}

function target(random: Random): string {
  const path = random.chance(6)
    ? `/v1/${encodeURI(random.text(random.below(12), 0x21)).replaceAll("#", "")}`
    : random.pick(PATHS);
  if (random.chance(3)) return path;
  const pairs = Array.from({ length: random.below(4) }, () => {
    const value = random.chance(3)
      ? encodeURIComponent(random.text(random.below(40)))
      : random.pick(PARAMETER_VALUES);
    return `${random.pick(PARAMETERS)}=${value}`;
  });
  return `${path}?${pairs.join("&")}`;
}

function header(random: Random): string {
  const name = random.chance(3) ? `X-${random.text(random.below(9), 0x61, 0x7a)}` : random.pick(HEADERS);
  return `${name}: ${random.chance(2) ? random.text(random.below(60)) : random.pick(HEADER_VALUES)}`;
}

function rawBytes(random: Random): string {
  const start = random.chance(2) ? "" : `${random.pick(METHODS)} ${random.pick(PATHS)} HTTP/1.1\r\n`;
  return start + random.text(1 + random.below(MAX_RAW_BYTES), 0, 255);
}

function brokenGrammar(random: Random, key: string): string {
  const lines = [`${random.pick(["GET", "POST"])} ${random.pick(PATHS)} ${random.pick(VERSIONS)}`, "Host: x"];
  lines.push(
    `Authorization: Bearer ${key}`,
    ...Array.from({ length: random.below(3) }, () => random.pick(FRAMING)),
  );
  let text = `${lines.join("\r\n")}\r\n\r\n${random.chance(2) ? random.pick(CHUNKS) : fuzzJson(random)}`;
  for (let change = random.below(4); change > 0; change--) text = mutate(random, text);
  return text;
}

function mutate(random: Random, text: string): string {
  const at = random.below(text.length);
  const length = 1 + random.below(6);
  switch (random.below(5)) {
    case 0:
      return text.slice(0, at) + random.text(1, 0, 255) + text.slice(at + 1);
    case 1:
      return text.slice(0, at) + text.slice(at + length);
    case 2:
      return text.slice(0, at) + random.pick(["\r", "\n", "\0", " ", "\t", ":", "\r\n"]) + text.slice(at);
    case 3:
      return text.slice(0, at) + text.slice(at, at + 40) + text.slice(at);
    default:
      return text.slice(0, at) + "x".repeat(random.chance(4) ? 20_000 : length) + text.slice(at);
  }
}

const NAMES = listOf("name|categoryId|status|petId|id|createdAt|__proto__|constructor|");
const SCALARS = listOf(
  "null|true|0|-0|7|7.0|7.5|1e3|1e400|-1e-400|9007199254740993|9223372036854775807|9223372036854775808|" +
    '-9223372036854775809|""|" "|"Rex"|"available"|"sold"|"completed"|"cancelled"|"\\u0000"|"\\ud800"|"🐶"|' +
    "NaN|01|+1|'x'|undefined",
);
const VALID = ['{"name":"Rex","categoryId":7}', '{"petId":1}', '{"status":"completed"}'] as const;
const MAX_DEPTH = 4;
const MAX_MEMBERS = 5;

/**
 * Generates a body, with one character for each byte. It is often JSON, often with the right names, and seldom valid.
 */
function fuzzJson(random: Random): string {
  const text = Buffer.from(document(random)).toString("latin1");
  return random.chance(3) ? damage(random, text) : text;
}

function document(random: Random): string {
  if (random.chance(8)) return value(random, 0);
  return random.chance(3) ? random.pick(VALID) : object(random, 0);
}

function value(random: Random, depth: number): string {
  if (depth >= MAX_DEPTH || !random.chance(4)) {
    if (random.chance(20)) return "9".repeat(1 + random.below(400));
    return random.chance(10)
      ? JSON.stringify(random.text(random.below(1_100), 1, 0x2ff))
      : random.pick(SCALARS);
  }
  if (random.chance(2)) return object(random, depth + 1);
  return `[${Array.from({ length: random.below(MAX_MEMBERS) }, () => value(random, depth + 1)).join(",")}]`;
}

function object(random: Random, depth: number): string {
  const members = Array.from({ length: random.below(MAX_MEMBERS) }, () => {
    const name = random.chance(6) ? random.text(random.below(8)) : random.pick(NAMES);
    return `${JSON.stringify(name)}:${value(random, depth + 1)}`;
  });
  return `{${members.join(",")}}`;
}

function damage(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const inserted = random.text(random.below(3), 0, 255);
  return text.slice(0, at) + inserted + text.slice(at + random.below(3));
}
