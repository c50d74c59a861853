import { cases, get, head, WAITS } from "./case.ts";

const HEAD_WITH_A = "GET / HTTP/1.1\r\nHost: x\r\nA: \r\n\r\n";
const headOfBytes = (bytes: number) => get("/", `A: ${"a".repeat(bytes - HEAD_WITH_A.length)}`);
const fields = (count: number) => Array.from({ length: count }, (_, i) => `A${i}: b`);
const raw = (lines: string) => `GET / HTTP/1.1\r\nHost: x\r\n${lines}\r\n\r\n`;

const VISIBLE = Array.from({ length: 94 }, (_, i) => String.fromCharCode(i + 33)).join("");
const CONTROL_CHARACTERS = [...Array(32).keys(), 127].filter((code) => ![0x09, 0x0a, 0x0d].includes(code));

export const FIELDS = [
  ...cases("RFC 9112, 5: field syntax", [
    ["an empty value", get("/", "A:"), "GET /"],
    ["no space after the colon", get("/", "A:b"), "GET /"],
    ["spaces and tabs around the value", get("/", "A: \t b \t"), "GET /"],
    ["spaces and tabs inside the value", get("/", "A: b \t c"), "GET /"],
    ["colons in the value", get("/", "A: b:c:d"), "GET /"],
    ["the same name twice", get("/", "A: b", "A: c"), "GET /"],
    ["a colon directly after the name of another field", get("/", "A::b"), "GET /"],
    ["no colon", get("/", "A"), 400],
    ["no colon in the last line", head("GET / HTTP/1.1", "Host: x", "A: b", "C"), 400],
    ["an empty name", get("/", ": b"), 400],
    ["only a colon", get("/", ":"), 400],
  ]),
  ...cases("RFC 9112, 5.1: field line parsing", [
    ["a space before the colon", get("/", "A : b"), 400],
    ["a tab before the colon", get("/", "A\t: b"), 400],
    ["a space before the colon of Host", head("GET / HTTP/1.1", "Host : x"), 400],
    ["a space before the name", get("/", " A: b"), 400],
    ["a space before the name of the first field", head("GET / HTTP/1.1", " Host: x"), 400],
    ["a space inside the name", get("/", "A B: c"), 400],
    ["a tab inside the name", get("/", "A\tB: c"), 400],
  ]),
  ...cases("RFC 9112, 5.2: obsolete line folding", [
    ["a space", get("/", "A: b", " c"), 400],
    ["a tab", get("/", "A: b", "\tc"), 400],
    ["only a space", get("/", "A: b", " "), 400],
    ["after an empty value", get("/", "A:", " b"), 400],
    ["of Host", head("GET / HTTP/1.1", "Host:", " x"), 400],
  ]),
  ...cases("RFC 9112, 2.2: line terminators of fields", [
    ["a field that ends with LF", raw("A: b\nC: d"), 400],
    ["a field that ends with LF, and no more", "GET / HTTP/1.1\r\nHost: x\n", 400],
    ["a field that ends with CR", raw("A: b\rC: d"), 400],
    ["a field that ends with CR CR LF", raw("A: b\r\r\nC: d"), 400],
    ["a field that ends with LF CR", raw("A: b\n\rC: d"), 400],
    ["CR inside a value", raw("A: b\rc"), 400],
    ["CR at the start of a value", raw("A:\rb"), 400],
    ["a head that ends with LF LF", "GET / HTTP/1.1\r\nHost: x\n\n", 400],
    ["a head that ends with CR LF LF", "GET / HTTP/1.1\r\nHost: x\r\n\n", 400],
    ["a head that ends with LF CR LF", "GET / HTTP/1.1\r\nHost: x\n\r\n", 400],
    ["a head that ends with CR LF CR, then a letter", "GET / HTTP/1.1\r\nHost: x\r\n\rA: b\r\n\r\n", 400],
  ]),
  ...cases("RFC 9110, 5.1: field names", [
    ["any case", head("GET / HTTP/1.1", "hOsT: x"), "GET /"],
    ["every character of a token", get("/", "!#$%&'*+-.^_`|~09azAZ: b"), "GET /"],
    ...[...'(),/;<=>?@[\\]{}"'].map(
      (character) => [`the separator ${character}`, get("/", `A${character}B: c`), 400] as const,
    ),
    ["NUL", get("/", "A\0B: c"), 400],
    ["a control character", get("/", "A\x1fB: c"), 400],
    ["DEL", get("/", "A\x7fB: c"), 400],
    ["UTF-8", get("/", "X-T\xc3\xabst: c"), 400],
  ]),
  ...cases("RFC 9110, 5.5: field values", [
    ["visible characters", get("/", `A: ${VISIBLE}`), "GET /"],
    ["bytes above 127", get("/", "A: \x80\xff caf\xc3\xa9"), "GET /"],
    ["a long Range", get("/", `Range: bytes=${Array(1_000).fill("0-").join(",")}`), "GET /"],
    ["a cookie that nobody can parse", get("/", "Cookie: ===;;;"), "GET /"],
    ...CONTROL_CHARACTERS.map(
      (code) => [`character ${code}`, get("/", `A: b${String.fromCharCode(code)}c`), 400] as const,
    ),
    ["NUL at the end", get("/", "A: b\0"), 400],
    ["a form feed at the start", get("/", "A: \fb"), 400],
  ]),
  ...cases("RFC 6585, 5: request header fields too large", [
    ["128 fields", head("GET / HTTP/1.1", "Host: x", ...fields(127)), "GET /"],
    ["129 fields", head("GET / HTTP/1.1", "Host: x", ...fields(128)), 431],
    ["2,000 fields", head("GET / HTTP/1.1", "Host: x", ...fields(2_000)), 431],
    ["10,000 fields", head("GET / HTTP/1.1", "Host: x", ...fields(10_000)), 431],
    ["a head of 16,384 bytes", headOfBytes(16_384), "GET /"],
    ["a head of 16,385 bytes", headOfBytes(16_385), 431],
    ["16,383 bytes without an end", get("/", "A: ").slice(0, -4).padEnd(16_383, "a"), WAITS],
    ["16,384 bytes without an end", get("/", "A: ").slice(0, -4).padEnd(16_384, "a"), 431],
    ["a value of 100,000 bytes", get("/", `A: ${"a".repeat(100_000)}`), 431],
    ["a name of 100,000 bytes", get("/", `${"A".repeat(100_000)}: b`), 431],
    ["a cookie of 64 KiB", get("/", `Cookie: a=${"b".repeat(65_536)}`), 431],
    ["too many fields, one of them invalid", head("GET / HTTP/1.1", "Host: x", ...fields(128), "A"), 400],
  ]),
];
