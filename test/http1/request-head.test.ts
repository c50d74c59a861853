import { describe, expect, test } from "bun:test";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import { ReadBuffer } from "../../src/http1/read-buffer.ts";
import { type RequestHead, RequestHeadParser } from "../../src/http1/request-head.ts";

function parse(parser: RequestHeadParser, requestLine: string, ...headerLines: string[]) {
  const readBuffer = new ReadBuffer();
  readBuffer.append(Buffer.from([requestLine, ...headerLines, "", ""].join("\r\n"), "latin1"));
  return parser.parse(readBuffer);
}

const framingOf = (head: ReturnType<typeof parse>) => (head as RequestHead).framing;

describe("header fields", () => {
  const fieldsOf = (...lines: string[]) => {
    const fields = HeaderFields.parse(lines.map((line) => `${line}\r\n`).join(""));
    if (typeof fields === "number") throw new Error(`rejected with ${fields}`);
    return fields;
  };

  test("are found by name in any case, without the whitespace around their values", () => {
    const fields = fieldsOf(
      "Hos: b",
      "Host: a",
      "Hosts: c",
      "CONTENT-type:\t application/json \t",
      "Empty:",
      "Latin: \xe9\xa0",
    );
    const values = ["host", "content-type", "empty", "latin", "other"].map((name) => fields.get(name));
    expect(values).toEqual(["a", "application/json", "", "\xe9\xa0", null]);
  });

  test("with the same name are joined in their order", () => {
    const fields = fieldsOf("A: 1", "B: 2", "a: 3");
    expect(fields.get("a")).toBe("1, 3");
  });
});

test.each([
  ["HTTP/1.1", "100-Continue", true],
  ["HTTP/1.0", "100-continue", false],
  ["HTTP/1.1", "tea", false],
])("%s with Expect: %s: the client waits for 100 (%p)", (version, value, expected) => {
  const head = parse(new RequestHeadParser(), `POST / ${version}`, "Host: x", `Expect: ${value}`);
  expect(framingOf(head).expectsContinue).toBe(expected);
});

describe("successive requests on one connection", () => {
  test("with the same header fields are framed by their own version", () => {
    const parser = new RequestHeadParser();
    const closes = ["1.1", "1.0", "1.1"].map(
      (version) => framingOf(parse(parser, `GET / HTTP/${version}`, "Host: x")).close,
    );
    expect(closes).toEqual([false, true, false]);
  });

  test("reuse the parsed header fields of the last request only", () => {
    const parser = new RequestHeadParser();
    const headersOf = (host: string) => framingOf(parse(parser, "GET / HTTP/1.1", `Host: ${host}`)).headers;
    const first = headersOf("a");
    expect(headersOf("a")).toBe(first);
    headersOf("b");
    expect(headersOf("a")).not.toBe(first);
  });

  test("reuse header fields of up to 2 KiB", () => {
    const isReused = (bytes: number) => {
      const [parser, line] = [new RequestHeadParser(), `Host: ${"a".repeat(bytes - "Host: \r\n".length)}`];
      const [first, second] = [1, 2].map(() => framingOf(parse(parser, "GET / HTTP/1.1", line)));
      return first === second;
    };
    expect([isReused(2_048), isReused(2_049)]).toEqual([true, false]);
  });
});
