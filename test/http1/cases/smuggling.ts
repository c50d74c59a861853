import { cases, get, head, post, WAITS } from "./case.ts";

const SMUGGLED = get("/smuggled");
const LAST_CHUNK = "0\r\n\r\n";
const CHUNK = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n${LAST_CHUNK}`;
const CHUNKED = "Transfer-Encoding: chunked";
const chunked = (body: string) => post(body, CHUNKED);
const LENGTH = `Content-Length: ${`${LAST_CHUNK}${SMUGGLED}`.length}`;

/** Fields of a body that is a last chunk to one server, and a request behind it to another. */
const AMBIGUOUS: Readonly<Record<string, readonly string[]>> = {
  "a length that covers a request after the last chunk": [LENGTH, CHUNKED],
  "the same in the other order": [CHUNKED, LENGTH],
  "with a plus sign before the length": [LENGTH.replace(": ", ": +"), CHUNKED],
  "with a letter after the length": [`${LENGTH}x`, CHUNKED],
  "with a folded coding": ["Transfer-Encoding:", " chunked", LENGTH],
  "with a space after the coding": [LENGTH, `${CHUNKED} `],
  "with a comma before the coding": [LENGTH, "Transfer-Encoding: , chunked"],
  "with the coding in another case": [LENGTH, "Transfer-Encoding: Chunked"],
  "with two codings": [CHUNKED, "Transfer-Encoding: identity", LENGTH],
  "with a tab in the name of the coding": ["Transfer\tEncoding: chunked", LENGTH],
  "with a space before the name of the coding": [LENGTH, ` ${CHUNKED}`],
  "with the coding behind LF": [LENGTH, `A: b\n${CHUNKED}`],
  "with the coding behind CR": [LENGTH, `A: b\r${CHUNKED}`],
};

/** Requests that two servers could cut in different places; the second half would be a request that nobody sent. */
export const SMUGGLING = cases("RFC 9112, 11.2: request smuggling", [
  ...Object.entries(AMBIGUOUS).map(
    ([name, fields]) => [name, post(LAST_CHUNK + SMUGGLED, ...fields), 400] as const,
  ),
  ["a length inside a chunk", post(CHUNK, CHUNKED, `Content-Length: ${CHUNK.indexOf("GET")}`), 400],
  ["a length of 6, a byte after the last chunk", post(`${LAST_CHUNK}X`, "Content-Length: 6", CHUNKED), 400],
  ["a length of 30, a byte after the last chunk", post(`${LAST_CHUNK}X`, CHUNKED, "Content-Length: 30"), 400],
  ["two lengths", post(`a${SMUGGLED}`, "Content-Length: 1", `Content-Length: ${1 + SMUGGLED.length}`), 400],
  ["a chunk size of plus zero before a byte", chunked("+0\r\n\r\nX"), 400],
  ["an extension that hides a line ending", chunked(`1;a\n${CHUNK}`), 400],
  ["a request in a chunk", chunked(CHUNK), `POST / ${JSON.stringify(SMUGGLED)}`],
  [
    "a request in the body of GET",
    head("GET / HTTP/1.1", "Host: x", `Content-Length: ${SMUGGLED.length}`) + SMUGGLED,
    `GET / ${JSON.stringify(SMUGGLED)}`,
  ],
  [
    "a part of a request in the body of GET",
    head("GET / HTTP/1.1", "Host: x", "Content-Length: 9") + "GET /a HT\r\n" + get("/b"),
    'GET / "GET /a HT"',
    "GET /b",
  ],
  ["a byte after a length of zero", `${post("X", "Content-Length: 0")}${get("/b")}`, "POST /", "XGET /b"],
  ["a byte after a request without a length", `${get("/a")}X`, "GET /a", WAITS],
  ["a byte after the last chunk", `${chunked(`${LAST_CHUNK}X`)}${get("/b")}`, "POST /", "XGET /b"],
]);
