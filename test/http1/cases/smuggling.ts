import { cases, get, head, post, WAITS } from "./case.ts";

const SMUGGLED = get("/smuggled");
const inBody = (...fields: string[]) => post(`0\r\n\r\n${SMUGGLED}`, ...fields);
const BODY_BYTES = `0\r\n\r\n${SMUGGLED}`.length;
const CHUNK = `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`;

/** Requests that two servers could cut in different places; the second half would be a request that nobody sent. */
export const SMUGGLING = cases("RFC 9112, 11.2: request smuggling", [
  [
    "a length that covers a request after the last chunk",
    inBody(`Content-Length: ${BODY_BYTES}`, "Transfer-Encoding: chunked"),
    400,
  ],
  ["the same in the other order", inBody("Transfer-Encoding: chunked", `Content-Length: ${BODY_BYTES}`), 400],
  [
    "with a plus sign before the length",
    inBody(`Content-Length: +${BODY_BYTES}`, "Transfer-Encoding: chunked"),
    400,
  ],
  [
    "with a letter after the length",
    inBody(`Content-Length: ${BODY_BYTES}x`, "Transfer-Encoding: chunked"),
    400,
  ],
  ["with a folded coding", inBody("Transfer-Encoding:", " chunked", `Content-Length: ${BODY_BYTES}`), 400],
  [
    "with a space after the coding",
    inBody(`Content-Length: ${BODY_BYTES}`, "Transfer-Encoding: chunked "),
    400,
  ],
  [
    "with a comma before the coding",
    inBody(`Content-Length: ${BODY_BYTES}`, "Transfer-Encoding: , chunked"),
    400,
  ],
  [
    "with the coding in another case",
    inBody(`Content-Length: ${BODY_BYTES}`, "Transfer-Encoding: Chunked"),
    400,
  ],
  [
    "with two codings",
    inBody("Transfer-Encoding: chunked", "Transfer-Encoding: identity", `Content-Length: ${BODY_BYTES}`),
    400,
  ],
  [
    "with a tab in the name of the coding",
    inBody("Transfer\tEncoding: chunked", `Content-Length: ${BODY_BYTES}`),
    400,
  ],
  [
    "with a space before the name of the coding",
    inBody(`Content-Length: ${BODY_BYTES}`, " Transfer-Encoding: chunked"),
    400,
  ],
  [
    "with the coding behind LF",
    inBody(`Content-Length: ${BODY_BYTES}`, "A: b\nTransfer-Encoding: chunked"),
    400,
  ],
  [
    "with the coding behind CR",
    inBody(`Content-Length: ${BODY_BYTES}`, "A: b\rTransfer-Encoding: chunked"),
    400,
  ],
  [
    "a length that ends inside a chunk",
    post(CHUNK, "Transfer-Encoding: chunked", `Content-Length: ${CHUNK.indexOf("GET")}`),
    400,
  ],
  [
    "a length of 6 and a byte after the last chunk",
    post("0\r\n\r\nX", "Content-Length: 6", "Transfer-Encoding: chunked"),
    400,
  ],
  [
    "a length of 30 and a byte after the last chunk",
    post("0\r\n\r\nX", "Transfer-Encoding: chunked", "Content-Length: 30"),
    400,
  ],
  [
    "two lengths, the second with a request",
    post(`aaaa${SMUGGLED}`, "Content-Length: 4", `Content-Length: ${4 + SMUGGLED.length}`),
    400,
  ],
  ["a chunk size of plus zero before a byte", post("+0\r\n\r\nX", "Transfer-Encoding: chunked"), 400],
  ["an extension that hides a line ending", post(`1;a\n${CHUNK}`, "Transfer-Encoding: chunked"), 400],
  ["a request in a chunk", post(CHUNK, "Transfer-Encoding: chunked"), `POST / ${JSON.stringify(SMUGGLED)}`],
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
  [
    "a byte after the last chunk",
    `${post("0\r\n\r\nX", "Transfer-Encoding: chunked")}${get("/b")}`,
    "POST /",
    "XGET /b",
  ],
]);
