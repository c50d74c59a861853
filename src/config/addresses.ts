import { isIPv4, isIPv6 } from "node:net";
import { integer, type Kind } from "./kinds.ts";

const HOST_NAME = /^(?=.{1,253}$)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?)*$/i;
/** Such as 1.2.3.999 or 10.1: a mistyped address, never a name. */
const ENDS_IN_NUMBER = /(?:^|\.)\d+$/;

export const host: Kind<string> = {
  placeholder: "HOST",
  expected: "an address or host name without port, such as 127.0.0.1, ::1, 0.0.0.0 or localhost",
  read: (text) => {
    const bare = text.replace(/^\[(.*)\]$/, "$1");
    if (isIPv6(bare)) return bare;
    return isIPv4(text) || (HOST_NAME.test(text) && !ENDS_IN_NUMBER.test(text)) ? text : undefined;
  },
  write: (value) => value,
};

export const port: Kind<number> = {
  ...integer({ min: 0, max: 65_535 }),
  remark: (text) =>
    /^(?:tcp|udp|sctp):\/\//.test(text)
      ? "Kubernetes sets this for a service named petstore; set enableServiceLinks: false, or give --port"
      : undefined,
};

const VERSION_SEGMENT = "/v1";

/** A base address as clients see it: always ends in `/v1`, so that paths can be put behind it. */
export const baseUrl: Kind<string> = {
  placeholder: "URL",
  expected:
    "an http:// or https:// address without user, query or fragment, such as https://api.example.com/v1",
  read: (text) => {
    // The URL parser repairs what it can; a setting with blanks or backslashes in it was not meant that way.
    if (!/^https?:\/\/[^\s\\/?#@]+(?:\/[^\s\\?#]*)?$/i.test(text) || !URL.canParse(text)) return undefined;
    const { origin, pathname } = new URL(text);
    const path = pathname.replace(/\/+$/, "");
    return origin + (path.endsWith(VERSION_SEGMENT) ? path : path + VERSION_SEGMENT);
  },
  write: (value) => value,
};

/**
 * The base address of a server that listens there. One that listens everywhere is reached over loopback from the
 * same machine, which is where this address is shown.
 */
export function listenUrl(host: string, port: number): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${isIPv6(reached) ? `[${reached}]` : reached}:${port}${VERSION_SEGMENT}`;
}
