import { cases, get, head } from "./case.ts";
import { INVALID_HOSTS, VALID_HOSTS } from "./host.ts";

const line = (requestLine: string) => head(requestLine, "Host: x");
/** Those that mean the same in a URI as in Host. */
const hosts = (named: Readonly<Record<string, string>>, differing: RegExp) =>
  Object.entries(named).filter(([, host]) => !differing.test(host));

export const TARGET = [
  ...cases("RFC 9112, 3.2.1: origin-form", [
    ["the root", get("/"), "GET /"],
    ["a path and a query", get("/v1/pets?limit=1&a=%20"), "GET /v1/pets?limit=1&a=%20"],
    ["an empty query", get("/a?"), "GET /a"],
    ["a question mark in the query", get("/a?b?c"), "GET /a?b?c"],
    ["a path that starts with two slashes", get("//a/b"), "GET //a/b"],
    ["dot segments, which are not resolved", get("/a/./../b"), "GET /a/./../b"],
    ["percent-encoding, which is not decoded", get("/%2e%2E/%00%0d%0a"), "GET /%2e%2E/%00%0d%0a"],
    ["every character of a path", get("/azAZ09-._~!$&'()*+,;=:@/"), "GET /azAZ09-._~!$&'()*+,;=:@/"],
    [
      "visible characters that URIs do not have, as browsers send them",
      get('/a|b?{"^`\\}'),
      'GET /a|b?{"^`\\}',
    ],
    ["a URI in the query", get("/a?b=http://c/d"), "GET /a?b=http://c/d"],
    ["a fragment", get("/a#b"), 400],
    ["a fragment after the query", get("/a?b#c"), 400],
    ["a byte above 127", get("/caf\xc3\xa9"), 400],
    ["an overlong slash in UTF-8", get("/\xc0\xaf"), 400],
    ["NUL", get("/a\0b"), 400],
    ["a control character", get("/a\x1fb"), 400],
    ["DEL", get("/a\x7fb"), 400],
    ["a vertical tab", get("/a\x0bb"), 400],
    ["no slash at the start", get("a/b"), 400],
    ["only a query", get("?a"), 400],
    ["a backslash at the start", get("\\a"), 400],
  ]),
  ...cases("RFC 9112, 3.2.2: absolute-form", [
    ["http", get("http://x/a?b"), "GET /a?b"],
    ["https", get("https://x/a"), "GET /a"],
    ["the scheme in upper case", get("HTTP://x/a"), "GET /a"],
    ["no path", get("http://x"), "GET /"],
    ["a query and no path", get("http://x?b"), "GET /?b"],
    ["another host than in Host, which is ignored", get("http://other.example/a"), "GET /a"],
    ["an at sign in the path", get("http://x/a@b"), "GET /a@b"],
    ["no Host", head("GET http://x/ HTTP/1.1"), 400],
    ["nothing after the slashes", get("http://"), 400],
    ["a query after the slashes", get("http://?a"), 400],
    ...hosts(VALID_HOSTS, /\s/).map(([name, host]) => [name, get(`http://${host}/a`), "GET /a"] as const),
    ...hosts(INVALID_HOSTS, /[/?]/).map(([name, host]) => [name, get(`http://${host}/a`), 400] as const),
    ["a fragment", get("http://x/#a"), 400],
    ["one slash", get("http:/x"), 400],
    ["no slash", get("http:x"), 400],
    ["another scheme", get("ftp://x/a"), 400],
    ["a scheme without slashes", get("urn:a:b"), 400],
  ]),
  ...cases("RFC 9112, 3.2.3: authority-form", [
    ["CONNECT to a host and a port", head("CONNECT x:443 HTTP/1.1", "Host: x:443"), 501],
    ["CONNECT to an IPv6 address", head("CONNECT [::1]:443 HTTP/1.1", "Host: [::1]:443"), 501],
    ["CONNECT without a port", line("CONNECT x HTTP/1.1"), 400],
    ["CONNECT to an empty port", line("CONNECT x: HTTP/1.1"), 400],
    ["CONNECT to a user", line("CONNECT user@x:443 HTTP/1.1"), 400],
    ["CONNECT to a path", line("CONNECT /a HTTP/1.1"), 400],
    ["CONNECT to a URI", line("CONNECT http://x:443/ HTTP/1.1"), 400],
    ["CONNECT to everything", line("CONNECT * HTTP/1.1"), 400],
    ["GET of a host and a port", get("x:443"), 400],
  ]),
  ...cases("RFC 9112, 3.2.4: asterisk-form", [
    ["OPTIONS", line("OPTIONS * HTTP/1.1"), "OPTIONS *"],
    ["GET", get("*"), 400],
    ["POST", line("POST * HTTP/1.1"), 400],
    ["OPTIONS in lower case, another method", line("options * HTTP/1.1"), 400],
    ["OPTIONS with a query", line("OPTIONS *?a HTTP/1.1"), 400],
    ["OPTIONS with two asterisks", line("OPTIONS ** HTTP/1.1"), 400],
    ["OPTIONS with an asterisk in the path", line("OPTIONS /* HTTP/1.1"), "OPTIONS /*"],
    ["OPTIONS with content", "OPTIONS * HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", 'OPTIONS * "a"'],
  ]),
];
