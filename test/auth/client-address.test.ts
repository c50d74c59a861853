import { describe, expect, test } from "bun:test";
import { Addresses } from "../../src/auth/client-address.ts";
import { parseIpNetwork } from "../../src/runtime/ip-network.ts";

const trusting = (...cidrs: string[]) => new Addresses(cidrs.flatMap((cidr) => parseIpNetwork(cidr) ?? []));

function clientOf(
  addresses: Addresses,
  remoteAddress: string,
  get: () => string | null = () => null,
): string {
  const peer = addresses.peerOf(remoteAddress);
  return peer.clientOf?.({ get }) ?? peer.id;
}

describe("client address", () => {
  const addresses = trusting("10.0.0.0/8", "192.0.2.1", "2001:db8::/32");

  for (const [name, peer, forwarded, client] of [
    ["a peer that is not a proxy is the client", "203.0.113.9", "1.2.3.4", "203.0.113.9"],
    ["a proxy that sends no header is the client", "10.0.0.1", null, "10.0.0.1"],
    ["the address that the proxy appended", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["what the client sent itself is ignored", "10.0.0.1", "6.6.6.6, 203.0.113.9", "203.0.113.9"],
    ["through two proxies", "10.0.0.1", "6.6.6.6, 203.0.113.9, 192.0.2.1", "203.0.113.9"],
    ["only proxies: the leftmost", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["proxies in the last 1,000 characters", "10.0.0.1", `1.2.3.4${", 10.0.0.3".repeat(100)}`, "10.0.0.3"],
    ["a client in the last 1,000 characters", "10.0.0.1", `1.2.3.4${", 10.0.0.3".repeat(99)}`, "1.2.3.4"],
    ["not an address: the proxy that sent it", "10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"],
    ["a lenient form of an address: the proxy that sent it", "10.0.0.1", "203.0.9", "10.0.0.1"],
    ["an empty header", "10.0.0.1", "", "10.0.0.1"],
    ["IPv4 as IPv6", "::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["IPv4 as IPv6 in the header", "10.0.0.1", "::ffff:203.0.113.9", "203.0.113.9"],
    ["IPv4 with a port", "10.0.0.1", "203.0.113.9:5555", "203.0.113.9"],
    ["IPv6 with a port", "10.0.0.1", "[2001:470::5]:443", "2001:470:0:0::/64"],
    ["IPv6 in brackets", "2001:db8::1", "[2001:470::5]", "2001:470:0:0::/64"],
    ["IPv6 with a zone", "fe80::1%br-lan", null, "fe80:0:0:0::/64"],
    ["the /64 network of IPv6", "2001:470:1:2:3:4:5:6", null, "2001:470:1:2::/64"],
    ["loopback of IPv6", "::1", null, "::1"],
    ["IPv6 with zeros in the network", "1::2:3:4:5:6:7", null, "1:0:2:3::/64"],
    ["a peer without an IP address", "unix", null, "unix"],
  ] as const) {
    test(name, () => expect(clientOf(addresses, peer, () => forwarded)).toBe(client));
  }
});

test("the header of a peer that is not a proxy is not read", () => {
  const read = () => {
    throw new Error("the header was read");
  };
  expect(clientOf(trusting("10.0.0.0/8"), "203.0.113.9", read)).toBe("203.0.113.9");
});

describe("cache of parsed addresses", () => {
  test("a repeated address is parsed once", () => {
    const addresses = trusting();
    for (let i = 0; i < 3; i++) clientOf(addresses, "203.0.113.9");
    expect(addresses.cacheSize).toBe(1);
  });

  test("it never has more than 10,000 entries, and later addresses are still right", () => {
    const addresses = trusting();
    const texts = Array.from({ length: 25_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    let largest = 0;
    const ids = texts.map((text) => {
      const id = clientOf(addresses, text);
      largest = Math.max(largest, addresses.cacheSize);
      return id;
    });
    expect(ids).toEqual(texts);
    expect(largest).toBe(10_000);
  });

  test("it has no entry for a text that is not an address, nor for one longer than 64 characters", () => {
    const addresses = trusting();
    clientOf(addresses, "nonsense");
    expect(clientOf(addresses, `fe80::1%${"z".repeat(57)}`)).toBe("fe80:0:0:0::/64");
    expect(addresses.cacheSize).toBe(0);
    clientOf(addresses, `fe80::1%${"z".repeat(56)}`);
    expect(addresses.cacheSize).toBe(1);
  });
});
