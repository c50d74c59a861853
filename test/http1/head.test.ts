import { describe, expect, test } from "bun:test";
import { type Head, HeadReader } from "../../src/http1/request-head.ts";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";

const intakeOf = (text: string) => {
  const readBuffer = new ReadBuffer();
  readBuffer.add(Buffer.from(text, "latin1"));
  return readBuffer;
};
const read = (line: string, ...headers: string[]) =>
  new HeadReader().next(intakeOf([line, ...headers, "", ""].join("\r\n")));
const readFields = (...headers: string[]) => read("POST / HTTP/1.1", "Host: x", ...headers);
const framingOf = (head: ReturnType<typeof read>) => (head as Head).framing;

describe("the first line", () => {
  test.each([
    ["/v1/pets", "/v1/pets", ""],
    ["/v1/pets?", "/v1/pets", ""],
    ["/v1/pets?limit=1&a=%20", "/v1/pets", "limit=1&a=%20"],
    ["/v1/pets?a?b", "/v1/pets", "a?b"],
    ["/v1/pets?limit=1#&limit=0", "/v1/pets", "limit=1"],
    ["/v1/./../%2e", "/v1/./../%2e", ""],
    ["http://other.example/v1/pets?limit=1", "/v1/pets", "limit=1"],
    ["HTTPS://other.example", "/", ""],
    ["http://other.example?limit=1", "/", "limit=1"],
  ])("%s asks for %s and says “%s”", (target, path, query) => {
    expect(read(`GET ${target} HTTP/1.1`, "Host: x")).toMatchObject({ method: "GET", path, query });
  });

  test("takes any method that is a token, as it is written", () => {
    expect(read("get / HTTP/1.1", "Host: x")).toMatchObject({ method: "get" });
    expect(read("M-SEARCH / HTTP/1.1", "Host: x")).toMatchObject({ method: "M-SEARCH" });
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
    [400, "CONNECT other.example:80 HTTP/1.1"],
    [400, "GET ftp://other.example/ HTTP/1.1"],
    [505, "GET / HTTP/1.2"],
    [505, "PRI * HTTP/2.0"],
  ])("%d: “%s”", (status, line) => {
    expect(read(line, "Host: x")).toBe(status as 400);
  });
});

describe("the host", () => {
  test("may be anything, but is named once", () => {
    for (const host of ["", "a b", "[::1", "x/y?z"]) {
      expect(read("GET / HTTP/1.1", `Host: ${host}`)).toMatchObject({ path: "/" });
    }
    expect(read("GET / HTTP/1.1")).toBe(400);
    expect(read("GET / HTTP/1.1", "Host: a", "Host: a")).toBe(400);
  });

  test("need not be named in HTTP/1.0", () => {
    expect(read("GET / HTTP/1.0")).toMatchObject({ path: "/" });
  });
});

describe("the end of the body", () => {
  test.each([
    [0, []],
    [0, ["Content-Length: 0"]],
    [12, ["Content-Length: 12"]],
    [12, ["content-length:\t012"]],
    ["chunked" as const, ["Transfer-Encoding: Chunked"]],
  ])("%p: %p", (length, headers) => {
    expect(framingOf(readFields(...headers)).length).toBe(length);
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
    [["Transfer-Encoding: gzip"]],
    [["Transfer-Encoding: gzip, chunked"]],
    [["Transfer-Encoding: chunked, identity"]],
    [["Transfer-Encoding: xchunked"]],
    [["Transfer-Encoding:"]],
  ])("400 where two readers could disagree: %p", (headers) => {
    expect(readFields(...headers)).toBe(400);
  });

  test("400: chunks in HTTP/1.0, which has none", () => {
    expect(read("POST / HTTP/1.0", "Transfer-Encoding: chunked")).toBe(400);
  });
});

describe("the connection", () => {
  test.each([
    ["HTTP/1.1", [], { closes: false, stays: false }],
    ["HTTP/1.1", ["Connection: close"], { closes: true, stays: false }],
    ["HTTP/1.1", ["Connection: a", "Connection: b, Close"], { closes: true, stays: false }],
    ["HTTP/1.1", ["Connection: keep-alive"], { closes: false, stays: false }],
    ["HTTP/1.0", [], { closes: true, stays: false }],
    ["HTTP/1.0", ["Connection: Keep-Alive"], { closes: false, stays: true }],
    ["HTTP/1.0", ["Connection: keep-alive, close"], { closes: true, stays: false }],
  ])("%s %p: %p", (version, headers, expected) => {
    expect(framingOf(read(`GET / ${version}`, "Host: x", ...headers))).toMatchObject(expected);
  });

  test("a 100 is waited for in HTTP/1.1 alone, and nothing else can be expected", () => {
    const expects = (version: string, value: string) =>
      framingOf(read(`POST / ${version}`, "Host: x", `Expect: ${value}`)).expects;
    expect(expects("HTTP/1.1", "100-Continue")).toBe(true);
    expect(expects("HTTP/1.0", "100-continue")).toBe(false);
    expect(expects("HTTP/1.1", "tea")).toBe(false);
  });
});

test("headers that are the same as before are understood by the version that they come with", () => {
  const heads = new HeadReader();
  const read = (line: string, headers: string) => heads.next(intakeOf(`${line}\r\n${headers}\r\n`));
  expect(read("GET / HTTP/1.0", "")).toMatchObject({ framing: { closes: true } });
  expect(read("GET / HTTP/1.1", "")).toBe(400);
  expect(read("GET /a HTTP/1.1", "Host: x\r\n")).toMatchObject({ path: "/a", framing: { closes: false } });
  expect(read("GET /b HTTP/1.1", "Host: x\r\n")).toMatchObject({ path: "/b", framing: { closes: false } });
  expect(read("GET /c HTTP/1.0", "Host: x\r\n")).toMatchObject({ path: "/c", framing: { closes: true } });
  expect(read("GET /d HTTP/1.1", "Host: x\r\nConnection: close\r\n")).toMatchObject({
    framing: { closes: true },
  });
  expect(read("GET / HTTP/1.1", "Host\r\n")).toBe(400);
  expect(read("GET / HTTP/1.1", "Host\r\n")).toBe(400);
  for (let i = 0; i < 20; i++) {
    const length = `Host: x\r\nContent-Length: ${i % 7}\r\n`;
    expect(read("POST / HTTP/1.1", length)).toMatchObject({ framing: { length: i % 7 } });
  }
});
