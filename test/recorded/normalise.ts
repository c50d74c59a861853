const ORIGIN = /^https?:\/\/[^/]+/;
/** The types of pages and metrics, whose content is not recorded. */
const VARYING_TYPE = /^text\/html|^text\/plain; version=/;
/** Limits from here on are used up by no request of the record. What is left of others is recorded as it is. */
const COUNTED_FROM = 60;
/** Longer bodies are recorded as their beginning and their hash. */
const MAX_BODY_LENGTH = 2_000;

/** What differs from one run to the next, or would change with every request that is added before. */
const IN_BODY: readonly (readonly [RegExp, string])[] = [
  [/\b(pet_(?:live|test)_)[0-9A-Za-z]{36}\b/g, "$1<36 characters>"],
  [/\b(pet_(?:live|test)_)[0-9A-Za-z]{4}…[0-9A-Za-z]{4}/g, "$1<hint>"],
  [/\b(pet_admin_)[\w-]{43}/g, "$1<43 characters>"],
  [/\b(pet_admin_)[\w-]{4}…[\w-]{4}/g, "$1<hint>"],
  [/"secret":"[\w-]{43}"/, '"secret":"<43 characters>"'],
  [/"version":"\d+\.\d+\.\d+"/, '"version":"<version>"'],
  [/"runtime":"Bun [\d.]+"/, '"runtime":"Bun <version>"'],
  [/"instance":\{"address":"127.0.0.1:\d+","pid":\d+\}/, '"instance":"<address and pid>"'],
  [/"latencyMs":[\d.]+/g, '"latencyMs":"<ms>"'],
  [/"kind":"server","name":"[^"]*"/g, '"kind":"server","name":"<host>"'],
];

/** Lines that so many responses have that they are recorded as one. */
const USUAL_LINES: readonly (readonly [lines: string | RegExp, name: string])[] = [
  [
    /X-RateLimit-Limit: (\d+)\nX-RateLimit-Reset: 1794744060\nX-RateLimit-Remaining: <fewer>/,
    "<rate limit of $1, reset in a minute>",
  ],
  ["X-Request-Id: <new>\nDate: <now>\nX-Content-Type-Options: nosniff", "<X-Request-Id, Date, nosniff>"],
  [
    "<X-Request-Id, Date, nosniff>\nContent-Length: <that of the body>",
    "<X-Request-Id, Date, nosniff, length>",
  ],
  [
    "Referrer-Policy: no-referrer\nCross-Origin-Resource-Policy: same-origin\nCross-Origin-Opener-Policy: same-origin\n" +
      "Content-Security-Policy: default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\n" +
      "Cache-Control: no-store",
    "<headers of the admin API>",
  ],
];

/** Responses as text in which nothing varies from one run to the next. */
export class Normaliser {
  readonly #given = new Map<string, string>();

  /** What the last response that had one gave as its `next` page, the `cursor` of it, or its `etag`. */
  given(name: string): string | undefined {
    return this.#given.get(name);
  }

  normalise(raw: string, request: string): string {
    const headEnd = raw.indexOf("\r\n\r\n");
    if (headEnd === -1) return raw === "" ? "(no response)" : JSON.stringify(raw);
    const lines = raw.slice(0, headEnd).split("\r\n");
    const bytes = Buffer.from(raw.slice(headEnd + 4), "latin1");
    const text = bytes.toString();
    const isVarying = VARYING_TYPE.test(fieldOf(lines, "Content-Type"));
    const body = isVarying ? titleOf(text) : normaliseBody(text, lines[0] ?? "");
    this.#remember(lines);
    const limit = Number(fieldOf(lines, "X-RateLimit-Limit"));
    const fields = lines.map((line) => {
      const [, name = "", value = ""] = /^([^:]+): (.*)$/.exec(line) ?? [];
      if (name === "Content-Length") {
        const isHead = request.startsWith("HEAD ") && (isVarying || body !== text);
        return isHead || Number(value) === bytes.length ? "Content-Length: <that of the body>" : line;
      }
      if (name === "X-RateLimit-Remaining" && limit >= COUNTED_FROM) return `${name}: <fewer>`;
      if (name === "ETag" && isVarying) return `${name}: ${value.replace(/[\w+/]{22}/, "<22 characters>")}`;
      return name === "" ? line : `${name}: ${normaliseField(name, value)}`;
    });
    const head = USUAL_LINES.reduce((text, [usual, name]) => text.replace(usual, name), fields.join("\n"));
    return `${head}${body === "" ? "" : `\n\n${shortened(body)}`}`;
  }

  #remember(lines: readonly string[]): void {
    const etag = fieldOf(lines, "ETag");
    if (etag !== "") this.#given.set("etag", etag);
    const next = /<([^>]*)>; rel="next"/.exec(fieldOf(lines, "Link"))?.[1];
    if (next === undefined) return;
    this.#given.set("next", next.replace(ORIGIN, ""));
    this.#given.set("cursor", new URL(next).searchParams.get("cursor") ?? "");
  }
}

function fieldOf(lines: readonly string[], name: string): string {
  return lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
}

function normaliseField(name: string, value: string): string {
  switch (name) {
    case "Date":
      return isNow(value) ? "<now>" : value;
    case "X-Request-Id":
      return value.replace(/^[0-9a-f]{8}-[0-9a-z]+$/, "<new>");
    case "Location":
      return value.replace(/\d+$/, "<new>");
    case "Set-Cookie":
      return value.replace(/^(petstore-admin-)\d+=/, "$1<port>=").replace(/=[\w.-]{20,}/, "=<session>");
    case "Content-Security-Policy":
      return value.replace(/'sha256-[\w+/]{43}='/g, "'sha256-<hash>'");
    default:
      return value;
  }
}

function isNow(text: string): boolean {
  const isDate = /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/.test(text);
  return isDate && Math.abs(Date.parse(text) - Date.now()) < 60_000;
}

function normaliseBody(text: string, statusLine: string): string {
  const isNew = statusLine.startsWith("HTTP/1.1 201 ");
  const body = isNew ? text.replace(/"id":\d+/, '"id":"<new>"') : text;
  return IN_BODY.reduce((result, [pattern, replacement]) => result.replace(pattern, replacement), body);
}

function titleOf(page: string): string {
  return page === "" ? "" : `… ${/<title>.*<\/title>/.exec(page)?.[0] ?? ""} …`;
}

function shortened(body: string): string {
  if (body.length <= MAX_BODY_LENGTH) return body;
  const hash = new Bun.CryptoHasher("sha256").update(body).digest("hex");
  return `${body.slice(0, 200)}… (${body.length} characters, SHA-256 ${hash})`;
}
