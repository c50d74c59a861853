import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { Subject } from "../domain/rate-limit.ts";
import { copyOf } from "../copy-string.ts";

interface Known {
  readonly subject: Subject;
  readonly isProxy: boolean;
}

const MAX_REMEMBERED = 10_000;

/**
 * What callers without a key are counted by: the IPv4 address, or the /64 that one IPv6 customer holds.
 *
 * `X-Forwarded-For` is read from the right, one hop at a time, and believed only while the hop before it is a proxy
 * that the operator named: what a client writes into the header itself is never reached.
 */
export class Addresses {
  readonly #proxies: BlockList;
  /** Addresses keep coming back, and looking closely at one takes as long as the rest of a refusal. */
  readonly #known = new Map<string, Known>();

  constructor(proxies: readonly string[]) {
    this.#proxies = listOf(proxies);
  }

  subjectOf(peer: string, forwardedFor: () => string | null): Subject {
    let client = this.#look(peer);
    if (client === undefined) return `address:${peer}`;
    if (!client.isProxy) return client.subject;
    const hops = forwardedFor()?.split(",") ?? [];
    while (hops.length > 0 && client.isProxy) {
      const next = this.#look((hops.pop() ?? "").trim());
      if (next === undefined) break;
      client = next;
    }
    return client.subject;
  }

  #look(text: string): Known | undefined {
    return this.#known.get(text) ?? this.#learn(text);
  }

  #learn(text: string): Known | undefined {
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear();
    const own = copyOf(text);
    const address = canonical(own);
    if (address === undefined) return undefined;
    const known = this.#lookClosely(address);
    // A zone of any length may follow in the header; only what is short is worth remembering.
    if (text.length <= 64) this.#known.set(own, known);
    return known;
  }

  #lookClosely(address: string): Known {
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    const counted = family === "ipv4" ? address : networkOf(address);
    return { subject: `address:${counted}`, isProxy: this.#proxies.check(address, family) };
  }
}

function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefix] = network.split("/");
    const family = isIPv4(address) ? "ipv4" : "ipv6";
    list.addSubnet(address, prefix === undefined ? (family === "ipv4" ? 32 : 128) : Number(prefix), family);
  }
  return list;
}

/** Some proxies write the port too. */
const WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d+$/;
const MAPPED_IPV4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/** IPv4 that arrives dressed as IPv6 is the same caller as without; anything that is no address is undefined. */
function canonical(text: string): string | undefined {
  const bare = WITH_PORT.exec(text)?.[1] ?? text.replace(/^\[(.*)\](?::\d+)?$/, "$1").replace(/%.*$/, "");
  const plain = MAPPED_IPV4.exec(bare)?.[1] ?? bare;
  return isIPv4(plain) || isIPv6(plain) ? plain : undefined;
}

/** The /64 of an IPv6 address, however the address was written. */
function networkOf(address: string): string {
  const [head = "", tail] = address.split("::");
  const front = head === "" ? [] : head.split(":");
  const back = tail === undefined || tail === "" ? [] : tail.split(":");
  const backLength = back.length + (back.at(-1)?.includes(".") ? 1 : 0);
  const zeros = tail === undefined ? 0 : 8 - front.length - backLength;
  const groups = [...front, ...Array<string>(Math.max(0, zeros)).fill("0"), ...back].slice(0, 4);
  return `${groups.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
