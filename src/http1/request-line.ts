import { TOKEN_CHARACTERS } from "./header-fields.ts";

export interface RequestLine {
  readonly method: string;
  /** The path; `*` for the server as a whole. */
  readonly path: string;
  readonly query: string;
  /** Whether the version is 1.1, or a later minor one, which is served as 1.1 (RFC 9110, 2.5). Otherwise it is 1.0. */
  readonly isHttp11: boolean;
}

type Target = Pick<RequestLine, "path" | "query">;

/** A target has no fragment. It may have visible characters that a URI excludes, because some clients send them. */
const REQUEST_LINE = new RegExp(`^([${TOKEN_CHARACTERS}]+) ([\\x21\\x22\\x24-\\x7e]+) HTTP/(\\d)\\.(\\d)$`);
const SCHEME_AND_AUTHORITY = /^https?:\/\/([^/?]*)/i;
const METHOD_AND_SPACE = new RegExp(`^[${TOKEN_CHARACTERS}]+ `);

/** Whether the text begins as a request line does, up to its target. */
export function isMethodAndSpace(text: string): boolean {
  return METHOD_AND_SPACE.test(text);
}

/** `line` has no CRLF (RFC 9112, 3). */
export function parseRequestLine(line: string): RequestLine | 400 | 501 | 505 {
  const [, method = "", text = "", major, minor] = REQUEST_LINE.exec(line) ?? [];
  if (method === "") return 400;
  if (major !== "1") return 505;
  const target = parseTarget(method, text);
  if (typeof target === "number") return target;
  return { method, path: target.path, query: target.query, isHttp11: minor !== "0" };
}

function parseTarget(method: string, target: string): Target | 400 | 501 {
  if (method === "CONNECT") return isHostAndPort(target) && /:\d+$/.test(target) ? 501 : 400;
  if (target.startsWith("/")) return splitQuery(target);
  if (target === "*") return method === "OPTIONS" ? { path: "*", query: "" } : 400;
  return parseAbsoluteForm(target) ?? 400;
}

/** Parses the form that proxies send. Its authority replaces `Host` (RFC 9112, 3.2.2), which this server ignores. */
function parseAbsoluteForm(target: string): Target | undefined {
  const [prefix = "", authority = ""] = SCHEME_AND_AUTHORITY.exec(target) ?? [];
  if (!isHostAndPort(authority)) return undefined;
  const rest = target.slice(prefix.length);
  return splitQuery(rest.startsWith("/") ? rest : `/${rest}`);
}

function splitQuery(target: string): Target {
  const mark = target.indexOf("?");
  return mark === -1
    ? { path: target, query: "" }
    : { path: target.slice(0, mark), query: target.slice(mark + 1) };
}

const PORT = "(?::[0-9]*)?";
/** A registered name or an IPv4 address. The grammar allows a comma, which is excluded here: it joins two fields. */
const NAME = new RegExp(`^(?:[\\w\\-.~!$&'()*+;=]|%[\\da-f]{2})+${PORT}$`, "i");
const IP_LITERAL = new RegExp(`^\\[([\\da-f:.]+|v[\\da-f]+\\.[\\w\\-.~!$&'()*+;=:]+)\\]${PORT}$`, "i");

/** Whether the text is a host with an optional port (RFC 9110, 4.2.1 and 7.2; RFC 3986, 3.2). */
export function isHostAndPort(text: string): boolean {
  if (!text.startsWith("[")) return NAME.test(text);
  const address = IP_LITERAL.exec(text)?.[1];
  return address !== undefined && (/^v/i.test(address) || isIpv6(address));
}

/** `node:net` is loaded when it is used, because that takes 8 ms. */
function isIpv6(address: string): boolean {
  return process.getBuiltinModule("node:net").isIPv6(address);
}
