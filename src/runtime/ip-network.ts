import { IPv6 } from "ipaddr.js";

/**
 * A network of 128-bit addresses. IPv4 is mapped to ::ffff:a.b.c.d, so one comparison serves both versions, and ::/0
 * contains all of IPv4.
 */
export interface IpNetwork {
  readonly address: IPv6;
  readonly prefixLength: number;
}

const IPV4: IpNetwork = { address: IPv6.parse("::ffff:0:0"), prefixLength: 96 };

const OCTET = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";
const IPV4_TEXT = new RegExp(`^${OCTET}(?:\\.${OCTET}){3}$`);

/**
 * The version of an IP address, which may have a zone in IPv6 (fe80::1%eth0). node:net is loaded when it is used,
 * because that takes 8 ms.
 */
export function ipVersionOf(text: string): 4 | 6 | undefined {
  if (IPV4_TEXT.test(text)) return 4;
  if (!text.includes(":")) return undefined;
  return process.getBuiltinModule("node:net").isIPv6(text) ? 6 : undefined;
}

/** Parses an address strictly: ipaddr.js alone accepts 10.1 and 010.0.0.1. An address with a zone is rejected. */
export function parseIpAddress(text: string): IPv6 | undefined {
  const version = text.includes("%") ? undefined : ipVersionOf(text);
  if (version === undefined) return undefined;
  if (version === 4) {
    const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
    return new IPv6([0, 0, 0, 0, 0, 0xffff, 256 * a + b, 256 * c + d]);
  }
  // ipaddr.js reads ::192.0.2.1 as ::ffff:192.0.2.1, but 0::192.0.2.1 correctly.
  return IPv6.parse(text.replace(/^::(?=\d+\.)/, "0::"));
}

const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;

/** Parses a network in CIDR notation. A single address is a network of one. */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [addressText = "", prefixText, ...rest] = text.split("/");
  const address = parseIpAddress(addressText);
  if (address === undefined || rest.length > 0) return undefined;
  if (prefixText === undefined) return { address, prefixLength: 128 };
  const prefixLength = Number(prefixText) + (addressText.includes(":") ? 0 : IPV4.prefixLength);
  return PREFIX_LENGTH.test(prefixText) && prefixLength <= 128 ? { address, prefixLength } : undefined;
}

/** Sets every bit after the prefix of a network to zero. */
export function withoutHostBits({ address, prefixLength }: IpNetwork): IpNetwork {
  return { address: IPv6.networkAddressFromCIDR(`${address.toString()}/${prefixLength}`), prefixLength };
}

export function contains({ address, prefixLength }: IpNetwork, other: IPv6): boolean {
  return other.match(address, prefixLength);
}

function isIpv4(address: IPv6): boolean {
  return contains(IPV4, address);
}

export function formatIpAddress(address: IPv6): string {
  return isIpv4(address) ? address.toByteArray().slice(-4).join(".") : address.toString();
}

/**
 * How limits count an address: IPv6 by its /64 network, because one customer usually has a whole one. A loopback
 * address stays an address.
 */
export function countedAddress(address: IPv6): string {
  const text = formatIpAddress(address);
  if (isIpv4(address) || text === "::1") return text;
  const groups = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${groups.join(":")}::/64`;
}

export function formatIpNetwork({ address, prefixLength }: IpNetwork): string {
  return isIpv4(address) && prefixLength >= IPV4.prefixLength
    ? `${formatIpAddress(address)}/${prefixLength - IPV4.prefixLength}`
    : `${address.toString()}/${prefixLength}`;
}

const LOOPBACK: readonly IpNetwork[] = [
  { address: IPv6.parse("::ffff:7f00:0"), prefixLength: IPV4.prefixLength + 8 },
  { address: IPv6.parse("::1"), prefixLength: 128 },
];

export function isLoopback(host: string): boolean {
  if (host === "localhost") return true;
  const address = parseIpAddress(host.replace(/^\[(.*)\]$/, "$1"));
  return address !== undefined && LOOPBACK.some((network) => contains(network, address));
}
