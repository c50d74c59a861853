import { isIPv4, isIPv6 } from "node:net";
import type { Kind } from "./kinds.ts";

interface Network {
  readonly address: string;
  readonly prefix: number;
  readonly width: 32 | 128;
}

const PREFIX = /^(?:0|[1-9]\d{0,2})$/;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;
const MAPPED_BITS = 96;

/**
 * A network as CIDR, or one address, which becomes a network of one. Bits behind the prefix must be zero: 10.1.2.3/8
 * would trust 16 million addresses where its writer may have meant one. IPv4 written as IPv6 becomes plain IPv4, as
 * callers' addresses do.
 */
export const network: Kind<string> = {
  placeholder: "CIDR",
  expected: "an address or network such as 10.0.0.0/8, 192.0.2.7 or fd00::/8",
  read: (text) => {
    const parsed = parse(text);
    return parsed && strayBits(parsed) === 0n ? `${parsed.address}/${parsed.prefix}` : undefined;
  },
  write: (value) => value,
  hint: (text) => {
    const parsed = parse(text);
    return parsed && `${networkAddress(parsed)}/${parsed.prefix} or ${parsed.address}/${parsed.width}`;
  },
};

function parse(text: string): Network | undefined {
  const [address = "", prefixText, ...rest] = text.split("/");
  const width = isIPv4(address) ? 32 : isIPv6(address) && !address.includes("%") ? 128 : undefined;
  if (width === undefined || rest.length > 0) return undefined;
  if (prefixText !== undefined && !PREFIX.test(prefixText)) return undefined;
  const prefix = prefixText === undefined ? width : Number(prefixText);
  if (prefix > width) return undefined;
  const mapped = prefix >= MAPPED_BITS ? MAPPED_IPV4.exec(address)?.[1] : undefined;
  if (mapped !== undefined) return { address: mapped, prefix: prefix - MAPPED_BITS, width: 32 };
  return { address: address.toLowerCase(), prefix, width };
}

function strayBits({ address, prefix, width }: Network): bigint {
  return bitsOf(address) & ((1n << BigInt(width - prefix)) - 1n);
}

function bitsOf(address: string): bigint {
  if (isIPv4(address)) return numberOf(address.split("."), { base: 10, digitBits: 8n });
  return numberOf(groupsOf(address), { base: 16, digitBits: 16n });
}

function numberOf(
  digits: readonly string[],
  { base, digitBits }: { base: number; digitBits: bigint },
): bigint {
  return digits.reduce((sum, digit) => (sum << digitBits) | BigInt(Number.parseInt(digit, base)), 0n);
}

/** The eight groups. Not by the URL parser: it refuses some addresses that have both `::` and an IPv4 tail. */
function groupsOf(address: string): string[] {
  const [head = [], tail] = address.split("::").map(writtenGroups);
  if (tail === undefined) return head;
  return [...head, ...Array<string>(8 - head.length - tail.length).fill("0"), ...tail];
}

function writtenGroups(half: string): string[] {
  if (half === "") return [];
  return half.split(":").flatMap((group) => {
    if (!group.includes(".")) return group;
    const bits = bitsOf(group);
    return [bits >> 16n, bits & 0xffffn].map((part) => part.toString(16));
  });
}

function networkAddress({ address, prefix, width }: Network): string {
  const bits = bitsOf(address) - strayBits({ address, prefix, width });
  if (width === 32) return [24n, 16n, 8n, 0n].map((shift) => (bits >> shift) & 255n).join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((bits >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
