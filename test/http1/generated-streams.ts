import * as fc from "fast-check";
import { get } from "./cases/case.ts";

const token = fc.stringMatching(/^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,8}$/);
const value = fc.stringMatching(/^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]{0,12}[\x21-\x7e\x80-\xff])?$/);
const path = fc.stringMatching(/^(\/([a-z0-9\-_~:@!$&'()*+,;=]|%2[0-9a-f]){1,6}){1,3}$/);
const query = fc.stringMatching(/^(\?[a-z0-9=&?/]{0,12})?$/);
const target = fc.tuple(path, query).map((parts) => parts.join(""));

const host = fc.constantFrom("x", "example.com:8080", "127.0.0.1", "[::1]:80", "a_b");
const whiteSpace = fc.constantFrom("", " ", "\t", "  ");
const hexSize = (size: number) =>
  fc.constantFrom(size.toString(16), size.toString(16).toUpperCase(), `00${size.toString(16)}`);

/** Fields that no part of the framing depends on. */
const field = fc
  .tuple(token, whiteSpace, value, whiteSpace)
  .map(([name, before, text, after]) => `X-${name}:${before}${text}${after}`);

/** Bodies, among them those that a confused server would take for a request or the end of chunks. */
const body = fc.oneof(
  fc.string({ unit: "binary-ascii", maxLength: 40 }),
  fc.constantFrom(get("/smuggled"), "0\r\n\r\n", `0\r\n\r\n${get("/smuggled")}`, "\r\n", "GET /smuggled HT"),
);

const extension = fc.oneof(
  fc.constantFrom("", ";a", ";a=b", ' ; a = "b;\\"c"'),
  fc.tuple(token, token).map(([name, text]) => `;${name}=${text}`),
);

const chunk = fc
  .tuple(body, extension)
  .filter(([data]) => data !== "")
  .chain(([data, text]) => hexSize(data.length).map((size) => `${size}${text}\r\n${data}\r\n`));

const chunks = fc
  .tuple(fc.array(chunk, { maxLength: 3 }), extension, fc.array(field, { maxLength: 2 }))
  .map(
    ([parts, text, trailer]) =>
      `${parts.join("")}0${text}\r\n${trailer.map((line) => `${line}\r\n`).join("")}\r\n`,
  );

/** The fields that end the head, and the body. */
const content = fc.oneof(
  fc.constant({ fields: [] as string[], bytes: "" }),
  body.map((bytes) => ({ fields: [`Content-Length: ${bytes.length}`], bytes })),
  chunks.map((bytes) => ({ fields: ["Transfer-Encoding: chunked"], bytes })),
);

const method = fc.oneof(
  { weight: 20, arbitrary: fc.constantFrom("GET", "POST", "PUT", "HEAD", "PATCH") },
  token,
);
const version = fc.oneof(
  { weight: 20, arbitrary: fc.constant("HTTP/1.1") },
  fc.constantFrom("HTTP/1.0", "HTTP/1.2"),
);
const connection = fc.oneof(
  { weight: 15, arbitrary: fc.constant([] as string[]) },
  fc.constantFrom(["Connection: close"], ["Connection: keep-alive"], ["Expect: 100-continue"]),
);

export const validRequest = fc
  .record({
    method,
    target: fc.oneof(
      { weight: 8, arbitrary: target },
      fc.tuple(host, target).map(([h, t]) => `http://${h}${t}`),
    ),
    version,
    host,
    connection,
    fields: fc.array(field, { maxLength: 4 }),
    content,
  })
  .map((request) =>
    [
      `${request.method === "CONNECT" ? "GET" : request.method} ${request.target} ${request.version}`,
      `Host: ${request.host}`,
      ...request.fields,
      ...request.connection,
      ...request.content.fields,
      "",
      request.content.bytes,
    ].join("\r\n"),
  );

/** Requests one behind the other. */
export const validStream = fc
  .array(validRequest, { minLength: 1, maxLength: 5 })
  .map((requests) => requests.join(""));

/** Pieces that parsers disagree on. */
const PIECES = [
  ...'\r\n\0\t :;,="\\/?#@*%[]-+_0159afx',
  ..."\x0b\x0c\x7f\x80\xa0\xff",
  ..."\r\n|\r\n\r\n|\n\n|\r\r\n|\n\r| \r\n|\r\n |\r\n\t| :|: |HTTP/1.1|HTTP/1.0|http/".split("|"),
  ..."chunked|Chunked|identity|gzip|, chunked|chunked,|;q=1|0x|1e1|00|99999999999999999999".split("|"),
  ..."Transfer-Encoding: chunked\r\n|Transfer-Encoding : chunked\r\n|\nTransfer-Encoding: chunked\r\n".split(
    "|",
  ),
  ..."Content-Length: 0\r\n|Content-Length: 5\r\n|Content-Length: 5, 5\r\n|Content-Length: +5\r\n".split("|"),
  ..."Host: y\r\n|Host:\r\n|Connection: close\r\n|Expect: 100-continue\r\n|Upgrade: h2c\r\n".split("|"),
  ..."0\r\n\r\n|0\r\n\n|5;\r\nhello\r\n|5 \r\nhello\r\n|5;a=b\nhello\r\n|http://|user@|GET * |OPTIONS * ".split(
    "|",
  ),
  get("/smuggled"),
];

/** Positions are fractions, so that they fit every stream. */
const position = fc.noBias(fc.integer({ min: 0, max: 9_999 })).map((number) => number / 10_000);
const at = (stream: string, fraction: number) => Math.floor(fraction * stream.length);

/** At a position, some bytes are removed and others inserted: new ones, or some from another position. */
const mutation = fc.record({
  start: position,
  removed: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 6 }), fc.constant(Infinity)),
  inserted: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom(...PIECES) },
    fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
    fc.constant(""),
    fc.record({ from: position, length: fc.integer({ min: 1, max: 30 }) }),
  ),
});

type Mutation = typeof mutation extends fc.Arbitrary<infer T> ? T : never;

function mutate(stream: string, { start, removed, inserted }: Mutation): string {
  const index = at(stream, start);
  const text =
    typeof inserted === "string"
      ? inserted
      : stream.slice(at(stream, inserted.from), at(stream, inserted.from) + inserted.length);
  return stream.slice(0, index) + text + stream.slice(index + removed);
}

/** Requests one behind the other, of which some bytes are changed, lost or repeated. */
export const mutatedStream = fc
  .tuple(validStream, fc.array(mutation, { minLength: 1, maxLength: 3 }))
  .map(([stream, mutations]) => mutations.reduce(mutate, stream));

/** Where a stream is cut into segments, as fractions of its length. */
export const cuts = fc.array(position, { maxLength: 12 });

export function segmentsOf(stream: string, fractions: readonly number[]): string[] {
  const ends = [...fractions.map((fraction) => at(stream, fraction)), stream.length].toSorted(
    (a, b) => a - b,
  );
  return ends.map((end, i) => stream.slice(ends[i - 1] ?? 0, end)).filter((segment) => segment !== "");
}
