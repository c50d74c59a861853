import { isHostAndPort } from "./authority.ts";
import { TOKEN_CHARACTERS } from "./header-fields.ts";

export interface RequestLine {
  readonly method: string;
  /** `*` for the server as a whole. */
  readonly path: string;
  readonly query: string;
  /** Or a later minor version, which is served as HTTP/1.1 (RFC 9110, 2.5). Otherwise HTTP/1.0. */
  readonly isHttp11: boolean;
}

type Target = Pick<RequestLine, "path" | "query">;

/** A target has no fragment, but may have visible characters that are not allowed in a URI: some clients send them. */
const REQUEST_LINE = new RegExp(`^([${TOKEN_CHARACTERS}]+) ([\\x21\\x22\\x24-\\x7e]+) HTTP/(\\d)\\.(\\d)$`);
const SCHEME_AND_AUTHORITY = /^https?:\/\/([^/?]*)/i;
const METHOD_AND_SPACE = new RegExp(`^[${TOKEN_CHARACTERS}]+ `);

/** `line` has no CRLF (RFC 9112, 3). */
export function parseRequestLine(line: string): RequestLine | 400 | 501 | 505 {
  const [, method = "", text = "", major, minor] = REQUEST_LINE.exec(line) ?? [];
  if (method === "") return 400;
  if (major !== "1") return 505;
  const target = parseTarget(method, text);
  if (typeof target === "number") return target;
  return { method, path: target.path, query: target.query, isHttp11: minor !== "0" };
}

/** For the start of a request line that is longer than allowed. */
export function errorInLongRequestLine(start: string): 400 | 414 {
  return METHOD_AND_SPACE.test(start) ? 414 : 400;
}

function parseTarget(method: string, target: string): Target | 400 | 501 {
  if (method === "CONNECT") return isHostAndPort(target) && /:\d+$/.test(target) ? 501 : 400;
  if (target.startsWith("/")) return splitQuery(target);
  if (target === "*") return method === "OPTIONS" ? { path: "*", query: "" } : 400;
  return parseAbsoluteForm(target) ?? 400;
}

/** Proxies send it. Its authority takes the place of `Host` (RFC 9112, 3.2.2), which the server does not use either. */
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
