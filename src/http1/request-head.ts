import { HeaderFields } from "./header-fields.ts";
import { TOKEN_CHARACTERS } from "./grammar.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** The statuses of requests that are no sound HTTP/1.1; their answers have no body, and end the connection. */
export type Fault = 400 | 408 | 431 | 505;

/** What a request says of itself before its body. */
export interface Head {
  readonly method: string;
  /** As it was sent, up to the query: nothing is decoded and no dots are walked. */
  readonly path: string;
  readonly query: string;
  readonly framing: Framing;
}

/** The fields, and what they mean to the connection. */
export interface Framing {
  readonly headers: HeaderFields;
  /** Bytes of the body that follows. */
  readonly length: number | "chunked";
  /** Whether this is the last request on the connection. */
  readonly closes: boolean;
  /** Whether to answer that the connection stays: HTTP/1.0 has to be told. */
  readonly stays: boolean;
  /** Whether the client waits for a 100 before it sends the body. */
  readonly expects: boolean;
}

export const MAX_HEAD_BYTES = 16 * 1024;
/** Looking this far mostly does, also where many requests have come at once. */
const USUAL_HEAD_BYTES = 1_024;
/** A greeting of TLS, or lines that end with a mere LF: the end of such a head is not waited for. */
const CANNOT_BE_HEAD = new RegExp(`^[^\\r${TOKEN_CHARACTERS}]|^\\r[^\\n]|[^\\r]\\n`);

const METHOD = new RegExp(`^[${TOKEN_CHARACTERS}]+$`);
const TARGET = /^[\x21-\x7e]+$/;
const ABSOLUTE = /^https?:\/\/[^/?#]*/i;
const OTHER_VERSION = / HTTP\/\d\.\d$/;
const VERSION_LENGTH = " HTTP/1.1".length;

/** HeaderFields as they came, and what they mean. */
interface Known {
  readonly text: string;
  readonly isCurrent: boolean;
  readonly framing: Framing | Fault;
}

/** In HTTP/1.1 that is a fault: a host has to be named. */
const NOTHING_SAID: Known = { text: "", isCurrent: true, framing: 400 };
/** One for each kind of request that a client sends in turn, with a body and without. */
const MAX_KNOWN = 4;

function isSame(known: Known, text: string, isCurrent: boolean): boolean {
  return known.text === text && known.isCurrent === isCurrent;
}

/**
 * Reads heads, one after the other. A client that stays mostly says the same of itself each time: fields are read anew
 * only when their text is another than those before.
 */
export class HeadReader {
  #last: Known = NOTHING_SAID;
  readonly #known: Known[] = [];
  #oldest = 0;

  /** Takes the next head out of the readBuffer; undefined while it has not all come. */
  next(readBuffer: ReadBuffer): Head | Fault | undefined {
    // Old clients send one after a body, and it counts for nothing (RFC 9112, 2.2).
    readBuffer.skipEmptyLines();
    if (readBuffer.length === 0) return undefined;
    return (
      this.#within(USUAL_HEAD_BYTES, readBuffer) ??
      this.#within(MAX_HEAD_BYTES, readBuffer) ??
      faultIn(readBuffer)
    );
  }

  #within(maxBytes: number, readBuffer: ReadBuffer): Head | Fault | undefined {
    const text = readBuffer.peek(maxBytes);
    const end = text.indexOf("\r\n\r\n");
    if (end === -1) return undefined;
    readBuffer.skip(end + 4);
    return this.#read(text.slice(0, end + 2));
  }

  /** `text` goes up to the empty line at the end of the head. */
  #read(text: string): Head | Fault {
    const lineEnd = text.indexOf("\r\n");
    const targetEnd = lineEnd - VERSION_LENGTH;
    const isCurrent = text.startsWith(" HTTP/1.1", targetEnd);
    if (!isCurrent && !text.startsWith(" HTTP/1.0", targetEnd)) {
      return OTHER_VERSION.test(text.slice(0, lineEnd)) ? 505 : 400;
    }
    const blank = text.indexOf(" ");
    const method = text.slice(0, blank);
    const target = text.slice(blank + 1, targetEnd);
    if (!METHOD.test(method) || !TARGET.test(target)) return 400;
    const framing = this.#understand(text.slice(lineEnd + 2), isCurrent);
    return typeof framing === "number" ? framing : headOf(method, target, framing);
  }

  #understand(text: string, isCurrent: boolean): Framing | Fault {
    if (!isSame(this.#last, text, isCurrent)) {
      const known = this.#known.find((other) => isSame(other, text, isCurrent));
      this.#last = known ?? this.#learn(text, isCurrent);
    }
    return this.#last.framing;
  }

  #learn(text: string, isCurrent: boolean): Known {
    const known = { text, isCurrent, framing: framingOf(HeaderFields.read(text), isCurrent) };
    this.#known[this.#oldest] = known;
    this.#oldest = (this.#oldest + 1) % MAX_KNOWN;
    return known;
  }
}

/** What is wrong with a head already before its end. */
function faultIn(readBuffer: ReadBuffer): Fault | undefined {
  if (readBuffer.length >= MAX_HEAD_BYTES) return 431;
  return CANNOT_BE_HEAD.test(readBuffer.peek(MAX_HEAD_BYTES)) ? 400 : undefined;
}

function headOf(method: string, target: string, framing: Framing): Head | Fault {
  const local = target.startsWith("/") ? target : localPart(target);
  if (local === undefined) return 400;
  const mark = local.indexOf("?");
  return mark === -1
    ? { method, path: local, query: "", framing }
    : { method, path: local.slice(0, mark), query: withoutFragment(local.slice(mark + 1)), framing };
}

/** Of a target in the absolute form, which proxies use (RFC 9112, 3.2.2). */
function localPart(target: string): string | undefined {
  const origin = ABSOLUTE.exec(target)?.[0];
  if (origin === undefined) return undefined;
  const local = target.slice(origin.length);
  return local.startsWith("/") ? local : `/${local}`;
}

function withoutFragment(query: string): string {
  const mark = query.indexOf("#");
  return mark === -1 ? query : query.slice(0, mark);
}

/** A fault when it cannot be told where the request ends, or for whom it is. */
function framingOf(fields: HeaderFields | undefined, isCurrent: boolean): Framing | Fault {
  if (fields === undefined) return 400;
  if (fields.areTooMany) return 431;
  const hosts = fields.count("host");
  if (hosts > 1 || (isCurrent && hosts === 0)) return 400;
  const length = lengthOf(fields, isCurrent);
  if (length === undefined) return 400;
  const closes = fields.lists("connection", "close");
  const stays = !isCurrent && !closes && fields.lists("connection", "keep-alive");
  const expects = isCurrent && fields.get("expect")?.toLowerCase() === "100-continue";
  return { headers: fields, length, closes: closes || (!isCurrent && !stays), stays, expects };
}

const DIGITS = /^\d+$/;

/** Where two readers could disagree on the end of a body, there is none: that is how requests are smuggled. */
function lengthOf(fields: HeaderFields, isCurrent: boolean): number | "chunked" | undefined {
  const coding = fields.get("transfer-encoding");
  const length = fields.get("content-length");
  if (coding !== null) {
    return isCurrent && length === null && coding.toLowerCase() === "chunked" ? "chunked" : undefined;
  }
  if (length === null) return 0;
  return DIGITS.test(length) ? Number(length) : undefined;
}
