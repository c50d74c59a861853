import { describe, expect, test } from "bun:test";
import { Addresses } from "../../src/auth/client-address.ts";

describe("client address", () => {
  const addresses = new Addresses(["10.0.0.0/8", "192.0.2.1", "2001:db8::/32"]);

  for (const [what, peer, forwarded, client] of [
    ["a peer that is no proxy is the client, whatever it writes", "203.0.113.9", "1.2.3.4", "203.0.113.9"],
    ["a proxy without the header is the client", "10.0.0.1", null, "10.0.0.1"],
    ["the address that the proxy saw", "10.0.0.1", "203.0.113.9", "203.0.113.9"],
    [
      "what the client wrote itself is left of what the proxy saw",
      "10.0.0.1",
      "6.6.6.6, 203.0.113.9",
      "203.0.113.9",
    ],
    ["through two proxies", "10.0.0.1", "6.6.6.6, 203.0.113.9, 192.0.2.1", "203.0.113.9"],
    ["only proxies: the leftmost", "10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"],
    ["rubbish stops the walk at the proxy that wrote it", "10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"],
    ["an empty header", "10.0.0.1", "", "10.0.0.1"],
    ["IPv4 dressed as IPv6", "::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["IPv4 with a port", "10.0.0.1", "203.0.113.9:5555", "203.0.113.9"],
    ["IPv6 with a port", "10.0.0.1", "[2001:470::5]:443", "2001:470:0:0::/64"],
    ["IPv6 in brackets", "2001:db8::1", "[2001:470::5]", "2001:470:0:0::/64"],
  ] as const) {
    test(what, () => expect(addresses.subjectOf(peer, () => forwarded)).toBe(`address:${client}`));
  }
});

describe("counted address", () => {
  for (const [address, counted] of [
    ["203.0.113.9", "203.0.113.9"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:0DB8:0001:0002::9", "2001:db8:1:2::/64"],
    ["::1", "0:0:0:0::/64"],
    ["2001:db8::", "2001:db8:0:0::/64"],
    ["1::2:3:4:5:6:7", "1:0:2:3::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
  ] as const) {
    test(`${address} counts as ${counted}`, () =>
      expect(new Addresses([]).subjectOf(address, () => null)).toBe(`address:${counted}`));
  }
});
