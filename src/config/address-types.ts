import { hostUrls } from "../text/host-urls.ts";
import { BASE_PATH } from "../domain/paths.ts";
import { shownWebhookUrl } from "../domain/webhooks.ts";
import {
  formatIpNetwork,
  type IpNetwork,
  ipVersionOf,
  parseIpNetwork,
  withoutHostBits,
} from "../runtime/ip-network.ts";
import { alternatives } from "../text/formatting.ts";
import { integerWithin, type ValueType } from "./value-types.ts";
import { didYouMean } from "../text/nearest.ts";

const HOST_NAME = /^(?=.{1,253}$)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
/** Matches mistyped addresses, such as 1.2.3.999 or 10.1, which are not names. */
const ENDS_IN_NUMBER = /(?:^|\.)\d+$/;

export const host: ValueType<string> = {
  placeholder: "HOST",
  expected: "an IP address or host name without a port, such as 127.0.0.1, ::1, 0.0.0.0 or localhost",
  parse: (text) => {
    const bare = text.replace(/^\[(.*)\]$/, "$1");
    if (ipVersionOf(bare) === 6) return bare;
    return ipVersionOf(text) === 4 || (HOST_NAME.test(text) && !ENDS_IN_NUMBER.test(text)) ? text : undefined;
  },
};

export const port = integerWithin({ min: 0, max: 65_535 });

/** The address of a listener. */
interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** The value `off` means that nothing listens. */
export const listenAddress: ValueType<ListenAddress | "off"> = {
  placeholder: "HOST:PORT",
  expected: "a host and a port such as 127.0.0.1:8090 or [::1]:8090, or off",
  parse: (text) => {
    if (text === "off") return text;
    const [, hostText = "", portText = ""] = /^(\[.*\]|[^:]*):(\d+)$/.exec(text) ?? [];
    const [parsedHost, parsedPort] = [host.parse(hostText), port.parse(portText)];
    if (parsedHost === undefined || parsedPort === undefined) return undefined;
    return { host: parsedHost, port: parsedPort };
  },
  format: (value) =>
    value === "off"
      ? value
      : `${ipVersionOf(value.host) === 6 ? `[${value.host}]` : value.host}:${value.port}`,
  hint: (text) => (port.parse(text) === undefined ? undefined : didYouMean(`127.0.0.1:${text}`)),
};

/** A host name without a port, in lower case. */
export const hostname: ValueType<string> = {
  placeholder: "NAME",
  expected: "a host name without a port, such as admin.example.com",
  parse: (text) => (HOST_NAME.test(text) && !ENDS_IN_NUMBER.test(text) ? text.toLowerCase() : undefined),
};

/** Where events are sent. */
export const webhookUrl: ValueType<string> = {
  placeholder: "URL",
  isUrl: true,
  secret: true,
  expected:
    "an http:// or https:// URL without user and fragment, such as https://hooks.example.com/petstore",
  parse: (text) =>
    /^https?:\/\/[^\s\\/?#@]+(?:[/?][^\s\\#]*)?$/i.test(text) && URL.canParse(text) ? text : undefined,
  format: shownWebhookUrl,
};

/** An OpenTelemetry collector. Without a path, spans go where every collector takes them. */
export const collectorUrl: ValueType<string> = {
  placeholder: "URL",
  isUrl: true,
  expected: "an http:// or https:// URL without user, query and fragment, such as http://127.0.0.1:4318",
  parse: (text) => {
    const url = text.includes("?") || webhookUrl.parse(text) === undefined ? null : URL.parse(text);
    return url?.pathname === "/" ? `${url.origin}/v1/traces` : url?.href;
  },
};

/** The URL of the API as clients see it. It always ends in BASE_PATH. */
export const baseUrl: ValueType<string> = {
  placeholder: "URL",
  isUrl: true,
  expected: `an http:// or https:// URL without user, query or fragment, such as https://api.example.com${BASE_PATH}`,
  parse: (text) => {
    // The URL parser also accepts and repairs blanks and backslashes.
    if (!/^https?:\/\/[^\s\\/?#@]+(?:\/[^\s\\?#]*)?$/i.test(text) || !URL.canParse(text)) return undefined;
    const { origin, pathname } = new URL(text);
    const path = pathname.replace(/\/+$/, "");
    return origin + (path.endsWith(BASE_PATH) ? path : path + BASE_PATH);
  },
};

/** An origin as browsers send it in `Origin`: a scheme, a host, and a port other than the default one. */
export const origin: ValueType<string> = {
  placeholder: "ORIGIN",
  isUrl: true,
  expected: "the origin of a page such as https://app.example.com or http://localhost:3000, without a path",
  parse: (text) => {
    if (!/^https?:\/\/[^\s\\/?#@*]+\/?$/i.test(text) || !URL.canParse(text)) return undefined;
    return new URL(text).origin;
  },
  hint: (text) => (/^https?:\/\/[^\s*@]+$/i.test(text) ? didYouMean(URL.parse(text)?.origin) : undefined),
};

/** Where vulnerabilities are reported: a URI that RFC 9116 allows. */
export const securityContact: ValueType<string> = {
  placeholder: "CONTACT",
  isUrl: true,
  expected: "an email address, or an https:// URL such as https://example.com/security",
  parse: (text) => {
    if (/^(?:mailto:)?[^\s@:/]+@[^\s@:/]+$/i.test(text)) return `mailto:${text.replace(/^mailto:/i, "")}`;
    return /^https:\/\/\S+$/i.test(text) && URL.canParse(text) ? text : undefined;
  },
  hint: (text) => (/^http:[^@?#]*$/i.test(text) ? didYouMean(text.replace(/^http/i, "https")) : undefined),
};

/** The URL of the listener for operators of a remote server. */
export const serverOrigin: ValueType<string> = {
  ...origin,
  placeholder: "URL",
  expected: "the URL of a listener for operators such as https://admin.example.com, without a path",
  hint: (text) =>
    origin.hint?.(text) ?? (text.includes(".") ? didYouMean(origin.parse(`https://${text}`)) : undefined),
};

/** The modes of libpq. `allow` and `prefer` fall back to plain text. */
const SSL_MODES = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"];

export const postgresUrl = serverUrl({
  schemes: ["postgres", "postgresql"],
  path: /^\/?[^/]*$/,
  isValidQuery: (query) => SSL_MODES.includes(query.get("sslmode") ?? "disable"),
  queryRemark: `sslmode must be ${alternatives(SSL_MODES)}`,
  example: "postgres://user:password@host:5432/database?sslmode=verify-full",
});

function serverUrl(options: {
  schemes: readonly string[];
  path: RegExp;
  isValidQuery(query: URLSearchParams): boolean;
  queryRemark: string;
  example: string;
}): ValueType<string> {
  const { schemes, path, isValidQuery, queryRemark, example } = options;
  const isValid = (text: string) => {
    const url = /\s/.test(text) ? null : URL.parse(text);
    if (url === null || url.hostname === "" || !schemes.includes(url.protocol.slice(0, -1))) return false;
    const isDecodableUrl = [url.username, url.password, url.pathname].every(isDecodable);
    return path.test(url.pathname) && isDecodableUrl && isValidQuery(url.searchParams);
  };
  return {
    placeholder: "URL",
    isUrl: true,
    secret: true,
    expected: `a URL such as ${example}`,
    parse: (text) => (hostUrls(text).every(isValid) ? text : undefined),
    hint: (text) => {
      if (!isDecodable(text)) return "write % as %25 in a user, password or database";
      const [first = text] = hostUrls(text);
      return isValidQuery(URL.parse(first)?.searchParams ?? new URLSearchParams()) ? undefined : queryRemark;
    },
  };
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** The bits after the prefix must be zero: 10.1.2.3/8 would trust 16 million addresses where perhaps one was meant. */
export const network: ValueType<IpNetwork> = {
  placeholder: "CIDR",
  expected: "an IP address or network such as 10.0.0.0/8, 192.0.2.7 or fd00::/8",
  parse: (text) => {
    const network = parseIpNetwork(text);
    return network && formatIpNetwork(network) === formatIpNetwork(withoutHostBits(network))
      ? network
      : undefined;
  },
  format: formatIpNetwork,
  hint: (text) => {
    const network = parseIpNetwork(text);
    if (network === undefined) return undefined;
    const single = { ...network, prefixLength: 128 };
    return didYouMean(`${formatIpNetwork(withoutHostBits(network))} or ${formatIpNetwork(single)}`);
  },
};
