import { isIPv6 } from "node:net";
import { CLOSES, type Outcome, readingOf, WAITS } from "./cases/case.ts";

/*
 * A second reading of RFC 9112, to compare the server with. It shares no code with it and takes no shortcuts: it gets
 * everything that the client sends in one string (one character for each byte) and consumes it from left to right.
 */

const MAX_REQUEST_LINE_BYTES = 8_192;
const MAX_HEAD_BYTES = 16_384;
const MAX_FIELDS = 128;
const MAX_CHUNK_LINE_BYTES = 1_024;
const MAX_CHUNK_LINES = 20_000;
const MAX_CHUNK_SIZE_DIGITS = 8;
/** What the handler in the tests reads, and what the server discards at most. */
const MAX_BODY_BYTES = 131_072;

/** Ends the reading: a status, or that more has to arrive. */
class Stop {
  constructor(readonly outcome: Outcome) {}
}

const fail = (status: 400 | 413 | 414 | 431 | 501 | 505): never => {
  throw new Stop(status);
};
const wait = (): never => {
  throw new Stop(WAITS);
};

export function readStream(stream: string): Outcome[] {
  return readRequests(new Input(stream, false));
}

/**
 * How a load balancer may read the stream. It accepts what RFC 9112 lets it accept: LF alone as the end of a line
 * (2.2), folded fields (5.2), equal lengths (6.3). It goes on behind what does not change where a request ends: a
 * target, a field or a Host that is not valid. Such requests are listed, too.
 */
export function readLeniently(stream: string): Outcome[] {
  return readRequests(new Input(stream, true));
}

function readRequests(input: Input): Outcome[] {
  const outcomes: Outcome[] = [];
  try {
    for (;;) {
      input.skipEmptyLines();
      if (input.rest === "") return outcomes;
      const { reading, closes } = readRequest(input);
      outcomes.push(reading);
      if (closes) return [...outcomes, CLOSES];
    }
  } catch (stop) {
    if (!(stop instanceof Stop)) throw stop;
    return [...outcomes, stop.outcome];
  }
}

class Input {
  constructor(
    public rest: string,
    readonly isLenient: boolean,
  ) {}

  /** A CRLF and nothing before it. */
  endOfLine(): void {
    if (this.isLenient && this.rest.startsWith("\n")) return void this.take(1);
    if (!"\r\n".startsWith(this.rest.slice(0, 2))) fail(400);
    if (this.rest.length < 2) wait();
    this.take(2);
  }

  /** Rejects what does not change where the request ends. */
  reject(status: 400 | 431 | 501 | 505): void {
    if (!this.isLenient) fail(status);
  }

  skipEmptyLines(): void {
    this.rest = this.rest.replace(this.isLenient ? /^[\r\n]+/ : /^(\r\n)+/, "");
  }

  take(count: number): string {
    const taken = this.rest.slice(0, count);
    this.rest = this.rest.slice(count);
    return taken;
  }

  /** A line without its CRLF. `tooLong` is what becomes of one that has more bytes than `maxBytes`. */
  line(maxBytes: number, tooLong: () => never): string {
    const end = this.rest.indexOf("\n");
    if (end >= maxBytes || (end === -1 && this.rest.length >= maxBytes)) return tooLong();
    if (end === -1) return wait();
    const line = this.take(end + 1);
    if (this.isLenient) return line.replace(/\r*\n$/, "");
    return line.endsWith("\r\n") ? line.slice(0, -2) : fail(400);
  }
}

type Fields = readonly (readonly [name: string, value: string])[];

interface Target {
  readonly path: string;
  readonly query: string;
}

function readRequest(input: Input): { reading: string; closes: boolean } {
  const available = input.rest.length;
  const { method, target, minorVersion } = readRequestLine(input);
  const lines: string[] = [];
  for (;;) {
    const line = input.line(MAX_HEAD_BYTES - (available - input.rest.length), () => fail(431));
    if (line === "") break;
    if (input.isLenient && lines.length > 0 && /^[ \t]/.test(line)) lines.push(`${lines.pop()} ${line}`);
    else lines.push(line);
  }
  const fields = lines.map((line) => readField(input, line));
  if (fields.length > MAX_FIELDS) input.reject(431);
  checkHost(input, fields, minorVersion);
  const body = readBody(input, fields, minorVersion);
  return { reading: readingOf({ method, ...target, body }), closes: closesAfter(fields, minorVersion) };
}

function readRequestLine(input: Input) {
  if (!/^(\r|[!#$%&'*+\-.^_`|~0-9A-Za-z])/.test(input.rest)) input.reject(400);
  if (/^\r[^\n]/.test(input.rest)) input.reject(400);
  const start = input.rest;
  const line = input.line(MAX_REQUEST_LINE_BYTES, () =>
    fail(
      isToken(start.slice(0, MAX_REQUEST_LINE_BYTES).split(" ", 2)[0] ?? "") &&
        start.slice(0, MAX_REQUEST_LINE_BYTES).includes(" ")
        ? 414
        : 400,
    ),
  );
  const words = line.split(" ");
  const [method = "", target = "", version = ""] = words;
  if (words.length !== 3 || !isToken(method) || !/^[\x21-\x7e]+$/.test(target)) input.reject(400);
  if (!/^HTTP\/[0-9]\.[0-9]$/.test(version)) input.reject(400);
  if (version[5] !== "1") input.reject(505);
  return { method, target: readTarget(input, method, target), minorVersion: Number(version[7]) };
}

function isToken(text: string): boolean {
  return /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(text);
}

function readTarget(input: Input, method: string, target: string): Target {
  if (target.includes("#")) input.reject(400);
  if (method === "CONNECT") input.reject(isAuthority(target) && /:[0-9]+$/.test(target) ? 501 : 400);
  if (target === "*" && method !== "OPTIONS") input.reject(400);
  if (target === "*" || target.startsWith("/")) return split(target);
  const scheme = /^[a-z][a-z0-9+\-.]*:\/\//i.exec(target)?.[0] ?? "";
  const authority = target.slice(scheme.length).split(/[/?]/, 1)[0] ?? "";
  if (!/^https?:/i.test(scheme) || !isAuthority(authority)) input.reject(400);
  const rest = target.slice(scheme.length + authority.length);
  return split(rest.startsWith("/") ? rest : `/${rest}`);
}

function split(target: string): Target {
  const [path = "", ...query] = target.split("?");
  return { path, query: query.join("?") };
}

/** uri-host [ ":" port ], where the host is not empty and has no comma. */
function isAuthority(text: string): boolean {
  const literal = /^\[([^\]]*)\](:[0-9]*)?$/.exec(text)?.[1];
  if (literal !== undefined) {
    const isFuture = /^v[0-9a-f]+\.[a-z0-9\-._~!$&'()*+,;=:]+$/i.test(literal);
    return isFuture || (!literal.includes("%") && isIPv6(literal));
  }
  return /^([a-z0-9\-._~!$&'()*+;=]|%[0-9a-f][0-9a-f])+(:[0-9]*)?$/i.test(text);
}

function readField(input: Input, line: string): readonly [string, string] {
  const colon = line.indexOf(":");
  const name = line.slice(0, Math.max(colon, 0));
  const value = line.slice(colon + 1);
  if (!isToken(name) || !/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) input.reject(400);
  return [name.toLowerCase(), value.replace(/^[ \t]+|[ \t]+$/g, "")];
}

const valuesOf = (fields: Fields, name: string) =>
  fields.filter(([other]) => other === name).map(([, value]) => value);

const listOf = (fields: Fields, name: string) =>
  valuesOf(fields, name).flatMap((value) =>
    value.split(",").map((item) => item.replace(/^[ \t]+|[ \t]+$/g, "").toLowerCase()),
  );

function checkHost(input: Input, fields: Fields, minorVersion: number): void {
  const hosts = valuesOf(fields, "host");
  if (hosts.length > 1 || (minorVersion > 0 && hosts.length === 0)) input.reject(400);
  for (const host of hosts) if (!isAuthority(host)) input.reject(400);
}

function closesAfter(fields: Fields, minorVersion: number): boolean {
  const options = listOf(fields, "connection");
  if (options.includes("close")) return true;
  return minorVersion === 0 && !options.includes("keep-alive");
}

function readBody(input: Input, fields: Fields, minorVersion: number): string {
  const lengths = valuesOf(fields, "content-length");
  const codings = valuesOf(fields, "transfer-encoding");
  if (codings.length > 0) {
    if (lengths.length > 0 || minorVersion === 0) fail(400);
    checkCodings(listOf(fields, "transfer-encoding"));
    return readChunks(input);
  }
  const [length, ...otherLengths] = input.isLenient ? new Set(listOf(fields, "content-length")) : lengths;
  if (length === undefined) return "";
  if (otherLengths.length > 0 || !/^[0-9]+$/.test(length)) fail(400);
  if (!Number.isSafeInteger(Number(length))) fail(400);
  if (Number(length) > MAX_BODY_BYTES) fail(413);
  return input.rest.length < Number(length) ? wait() : input.take(Number(length));
}

/** `chunked` has to be there once, as the last one, without parameters; of the others the server knows none. */
function checkCodings(codings: readonly string[]): void {
  const isCoding = (text: string) => /^[!#$%&'*+\-.^_`|~0-9a-z]+([ \t]*;.*)?$/.test(text);
  const isChunked = (text: string) => /^chunked([ \t]*;|$)/.test(text);
  if (!codings.every(isCoding) || codings.slice(0, -1).some(isChunked)) fail(400);
  const last = codings.at(-1) ?? "";
  if (isChunked(last) && last !== "chunked") fail(400);
  if (codings.length > 1 || last !== "chunked") fail(501);
}

const EXTENSION =
  /^[ \t]*;[ \t]*([^\s;="]+)([ \t]*=[ \t]*([^\s;="]+|"(?:[\t \x21\x23-\x5b\x5d-\x7e\x80-\xff]|\\[\t\x20-\x7e\x80-\xff])*"))?/;

function readChunks(input: Input): string {
  let body = "";
  let lines = 0;
  const nextLine = () =>
    ++lines > MAX_CHUNK_LINES ? fail(400) : input.line(MAX_CHUNK_LINE_BYTES, () => fail(400));
  for (;;) {
    const line = nextLine();
    const digits = /^[0-9a-f]*/i.exec(line)?.[0] ?? "";
    if (!areExtensions(line.slice(digits.length))) input.reject(400);
    if (digits === "" || digits.replace(/^0+/, "").length > MAX_CHUNK_SIZE_DIGITS) fail(400);
    const size = Number.parseInt(digits, 16);
    if (size === 0) break;
    if (body.length + size > MAX_BODY_BYTES) fail(413);
    if (input.rest.length < size) wait();
    body += input.take(size);
    input.endOfLine();
  }
  while (true) {
    const line = nextLine();
    if (line === "") return body;
    readField(input, line);
  }
}

function areExtensions(text: string): boolean {
  let rest = text;
  while (rest !== "") {
    const [extension = "", name = "", , value = "a"] = EXTENSION.exec(rest) ?? [];
    if (!isToken(name) || !(value.startsWith('"') || isToken(value))) return false;
    rest = rest.slice(extension.length);
  }
  return true;
}
