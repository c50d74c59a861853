import { BlockList, isIPv4, isIPv6 } from "node:net";

/**
 * Who is calling, by address. `X-Forwarded-For` is read from the right, one hop at a time, and believed only while
 * the hop before it is a proxy that the operator named: what a client writes into the header itself is never reached.
 */
export function clientAddress(peer: string, forwardedFor: () => string | null, trusted: BlockList): string {
  let client = canonical(peer) ?? peer;
  if (!isListed(client, trusted)) return client;
  const hops = forwardedFor()?.split(",") ?? [];
  while (hops.length > 0 && isListed(client, trusted)) {
    const next = canonical((hops.pop() ?? "").trim());
    if (next === undefined) break;
    client = next;
  }
  return client;
}

export function trustList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    list.addSubnet(address, prefix === undefined ? (family === "ipv4" ? 32 : 128) : Number(prefix), family);
  }
  return list;
}

function isListed(address: string, list: BlockList): boolean {
  return list.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}

const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** IPv4 that arrives dressed as IPv6 is the same caller as without; anything that is no address is undefined. */
function canonical(address: string): string | undefined {
  const plain = MAPPED_IPV4.exec(address)?.[1] ?? address.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  return isIPv4(plain) || isIPv6(plain) ? plain : undefined;
}

/** What a caller without a key is counted by: the IPv4 address, or the /64 that one IPv6 customer holds. */
export function countedAddress(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const backLength = back.length + (back.at(-1)?.includes(".") ? 1 : 0);
  const zeros = tail === undefined ? 0 : 8 - front.length - backLength;
  const groups = [...front, ...Array<string>(Math.max(0, zeros)).fill("0"), ...back].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
