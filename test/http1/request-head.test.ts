import { describe, expect, test } from "bun:test";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";
import { type RequestHead, RequestHeadParser } from "../../src/http1/request-head.ts";

const parseWith = (parser: RequestHeadParser, requestLine: string, ...headerLines: string[]) => {
  const readBuffer = new ReadBuffer();
  readBuffer.append(Buffer.from([requestLine, ...headerLines, "", ""].join("\r\n"), "latin1"));
  return parser.parse(readBuffer);
};
const parse = (requestLine: string, ...headerLines: string[]) =>
  parseWith(new RequestHeadParser(), requestLine, ...headerLines);
const parsePost = (...headerLines: string[]) => parse("POST / HTTP/1.1", "Host: x", ...headerLines);
const framingOf = (head: ReturnType<typeof parse>) => (head as RequestHead).framing;

describe("the request line", () => {
  test.each([
    ["/v1/pets", "/v1/pets", ""],
    ["/v1/pets?", "/v1/pets", ""],
    ["/v1/pets?limit=1&a=%20", "/v1/pets", "limit=1&a=%20"],
    ["/v1/pets?a?b", "/v1/pets", "a?b"],
    ["/v1/./../%2e", "/v1/./../%2e", ""],
    ["http://other.example/v1/pets?limit=1", "/v1/pets", "limit=1"],
    ["HTTPS://other.example", "/", ""],
    ["http://other.example?limit=1", "/", "limit=1"],
  ])("%s has the path %s and the query “%s”", (target, path, query) => {
    expect(parse(`GET ${target} HTTP/1.1`, "Host: x")).toMatchObject({ method: "GET", path, query });
  });

  test("may have any token as its method, which is case-sensitive", () => {
    expect(parse("get / HTTP/1.1", "Host: x")).toMatchObject({ method: "get" });
    expect(parse("M-SEARCH / HTTP/1.1", "Host: x")).toMatchObject({ method: "M-SEARCH" });
  });

  test.each([
    [400, "asdf"],
    [400, "GET /"],
    [400, "GET  / HTTP/1.1"],
    [400, "GET / a HTTP/1.1"],
    [400, "GET /\ta HTTP/1.1"],
    [400, " / HTTP/1.1"],
    [400, "G(T / HTTP/1.1"],
    [400, "GET /\xe9 HTTP/1.1"],
    [400, "GET / http/1.1"],
    [400, "GET HTTP/1.1"],
    [400, "GET * HTTP/1.1"],
    [400, "GET pets HTTP/1.1"],
    [501, "CONNECT other.example:80 HTTP/1.1"],
    [400, "GET ftp://other.example/ HTTP/1.1"],
    [505, "PRI * HTTP/2.0"],
  ])("%d: “%s”", (status, requestLine) => {
    expect(parse(requestLine, "Host: x")).toBe(status as 400);
  });
});

describe("the Host field", () => {
  test("is required exactly once", () => {
    expect(parse("GET / HTTP/1.1")).toBe(400);
    expect(parse("GET / HTTP/1.1", "Host: a", "Host: a")).toBe(400);
  });

  test("is optional in HTTP/1.0", () => {
    expect(parse("GET / HTTP/1.0")).toMatchObject({ path: "/" });
  });
});

describe("the length of the body", () => {
  test.each([
    [0, []],
    [0, ["Content-Length: 0"]],
    [12, ["Content-Length: 12"]],
    [12, ["content-length:\t012"]],
    ["chunked" as const, ["Transfer-Encoding: Chunked"]],
  ])("%p: %p", (bodyLength, headerLines) => {
    expect(framingOf(parsePost(...headerLines)).bodyLength).toBe(bodyLength);
  });

  test.each([
    [["Content-Length: -1"]],
    [["Content-Length: +1"]],
    [["Content-Length: 1.0"]],
    [["Content-Length: 0x1"]],
    [["Content-Length: 1 2"]],
    [["Content-Length:"]],
    [["Content-Length: 1, 1"]],
    [["Content-Length: 1", "Content-Length: 1"]],
    [["Content-Length: 1", "Content-Length: 2"]],
    [["Content-Length: 1", "Transfer-Encoding: chunked"]],
    [["Transfer-Encoding: chunked", "Transfer-Encoding: chunked"]],
    [["Transfer-Encoding: chunked, identity"]],
    [["Transfer-Encoding:"]],
  ])("400 where two parsers could disagree: %p", (headerLines) => {
    expect(parsePost(...headerLines)).toBe(400);
  });

  test("400: Transfer-Encoding in HTTP/1.0, which does not have it", () => {
    expect(parse("POST / HTTP/1.0", "Transfer-Encoding: chunked")).toBe(400);
  });
});

describe("the Connection field", () => {
  test.each([
    ["HTTP/1.1", [], { close: false, keepAlive: false }],
    ["HTTP/1.1", ["Connection: close"], { close: true, keepAlive: false }],
    ["HTTP/1.1", ["Connection: a", "Connection: b, Close"], { close: true, keepAlive: false }],
    ["HTTP/1.1", ["Connection: keep-alive"], { close: false, keepAlive: false }],
    ["HTTP/1.0", [], { close: true, keepAlive: false }],
    ["HTTP/1.0", ["Connection: Keep-Alive"], { close: false, keepAlive: true }],
    ["HTTP/1.0", ["Connection: keep-alive, close"], { close: true, keepAlive: false }],
  ])("%s %p: %p", (version, headerLines, expected) => {
    expect(framingOf(parse(`GET / ${version}`, "Host: x", ...headerLines))).toMatchObject(expected);
  });
});

test("Expect: 100-continue is honoured in HTTP/1.1 only, and other expectations are ignored", () => {
  const expectsContinue = (version: string, value: string) =>
    framingOf(parse(`POST / ${version}`, "Host: x", `Expect: ${value}`)).expectsContinue;
  expect(expectsContinue("HTTP/1.1", "100-Continue")).toBe(true);
  expect(expectsContinue("HTTP/1.0", "100-continue")).toBe(false);
  expect(expectsContinue("HTTP/1.1", "tea")).toBe(false);
});

describe("successive requests on one connection", () => {
  test("with the same header fields get their own method, path and query", () => {
    const parser = new RequestHeadParser();
    const requests = ["GET /a", "GET /b", "POST /b"].map((start) =>
      parseWith(parser, `${start} HTTP/1.1`, "Host: x"),
    );
    expect(requests).toMatchObject([
      { method: "GET", path: "/a" },
      { method: "GET", path: "/b" },
      { method: "POST", path: "/b" },
    ]);
  });

  test("with the same header fields are framed by their own version", () => {
    const parser = new RequestHeadParser();
    for (const [version, close] of [
      ["1.1", false],
      ["1.0", true],
      ["1.1", false],
    ]) {
      expect(framingOf(parseWith(parser, `GET / HTTP/${version}`, "Host: x")).close).toBe(close === true);
    }
  });

  test("without header fields are valid in HTTP/1.0 and 400 in HTTP/1.1", () => {
    const parser = new RequestHeadParser();
    expect(parseWith(parser, "GET / HTTP/1.0")).toMatchObject({ path: "/" });
    expect(parseWith(parser, "GET / HTTP/1.1")).toBe(400);
  });

  test("with malformed header fields are 400 each time", () => {
    const parser = new RequestHeadParser();
    for (let i = 0; i < 3; i++) expect(parseWith(parser, "GET / HTTP/1.1", "Host")).toBe(400);
  });

  test("reuse the parsed header fields of the last request only", () => {
    const parser = new RequestHeadParser();
    const headersOf = (host: string) =>
      framingOf(parseWith(parser, "GET / HTTP/1.1", `Host: ${host}`)).headers;
    const first = headersOf("a");
    expect(headersOf("a")).toBe(first);
    headersOf("b");
    expect(headersOf("a")).not.toBe(first);
  });

  test("with different header fields in turn get their own", () => {
    const parser = new RequestHeadParser();
    for (let i = 0; i < 20; i++) {
      const head = parseWith(parser, "POST / HTTP/1.1", "Host: x", `Content-Length: ${i % 7}`);
      expect(framingOf(head)).toMatchObject({ bodyLength: i % 7 });
    }
  });
});
