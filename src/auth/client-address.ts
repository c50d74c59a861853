import { detachedCopy } from "../runtime/detached-copy.ts";
import { contains, countedAddress, type IpNetwork, parseIpAddress } from "../runtime/ip-network.ts";
import type { HeaderFields, Peer } from "../http1/index.ts";

interface ClientAddress {
  readonly id: string;
  readonly isProxy: boolean;
}

const MAX_CACHED = 10_000;
/** Every address with brackets and a port is shorter. */
const MAX_CACHED_LENGTH = 64;
/** Proxies append their addresses, so the end of the header counts. A client can send 14 kB before them. */
const MAX_FORWARDED = 1_000;

/**
 * Clients by IPv4 address or IPv6 /64 network: requests without a valid key count against its limits.
 *
 * `X-Forwarded-For` is read from right to left, and only while the address to the right is a trusted proxy, so a
 * client cannot choose its address by sending the header itself.
 */
export class Addresses {
  /** Without the cache, a 401 response to IPv6 behind a proxy takes two thirds more CPU time (wrk, 16 connections). */
  readonly #cache = new Map<string, ClientAddress>();

  constructor(private readonly trustedProxies: readonly IpNetwork[]) {}

  get cacheSize(): number {
    return this.#cache.size;
  }

  readonly peerOf = (remoteAddress: string): Peer => {
    const peer = this.#find(remoteAddress);
    if (peer === undefined) return { id: remoteAddress };
    return peer.isProxy
      ? { id: peer.id, clientOf: (headers) => this.#clientOf(peer, headers) }
      : { id: peer.id };
  };

  #clientOf(proxy: ClientAddress, headers: Pick<HeaderFields, "get">): string {
    let client = proxy;
    const hops = headers.get("x-forwarded-for")?.slice(-MAX_FORWARDED).split(",") ?? [];
    while (client.isProxy) {
      const next = this.#find((hops.pop() ?? "").trim());
      if (next === undefined) break;
      client = next;
    }
    return client.id;
  }

  #find(text: string): ClientAddress | undefined {
    return this.#cache.get(text) ?? this.#parse(text);
  }

  #parse(text: string): ClientAddress | undefined {
    const address = parseIpAddress(withoutPortAndZone(text));
    if (address === undefined) return undefined;
    const client: ClientAddress = {
      id: countedAddress(address),
      isProxy: this.trustedProxies.some((proxy) => contains(proxy, address)),
    };
    if (this.#cache.size >= MAX_CACHED) this.#cache.clear();
    if (text.length <= MAX_CACHED_LENGTH) this.#cache.set(detachedCopy(text), client);
    return client;
  }
}

const IPV4_WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d+$/;
const IN_BRACKETS = /^\[(.*)\](?::\d+)?$/;

/** Proxies also write `192.0.2.1:443`, `[2001:db8::1]:443` and `fe80::1%eth0`. */
function withoutPortAndZone(text: string): string {
  return text.replace(IPV4_WITH_PORT, "$1").replace(IN_BRACKETS, "$1").replace(/%.*$/, "");
}
