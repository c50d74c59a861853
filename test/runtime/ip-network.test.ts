import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { isIP } from "node:net";
import {
  contains,
  formatIpAddress,
  formatIpNetwork,
  type IpNetwork,
  ipVersionOf,
  isLoopback,
  parseIpAddress,
  parseIpNetwork,
  withoutHostBits,
} from "../../src/runtime/ip-network.ts";

const format = (text: string) => {
  const address = parseIpAddress(text);
  return address && formatIpAddress(address);
};

function network(text: string): IpNetwork {
  const parsed = parseIpNetwork(text);
  if (parsed === undefined) throw new Error(`${text} is not a network`);
  return parsed;
}

describe("an IP address", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["2001:0DB8:0:0:0:0:0:1", "2001:db8::1"],
    ["::", "::"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::FFFF:c000:201", "192.0.2.1"],
    ["::192.0.2.1", "::c000:201"],
    ["64:ff9b::192.0.2.1", "64:ff9b::c000:201"],
    ["1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"],
    ["::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"],
    ["1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"],
  ])("%s is %s", (text, formatted) => {
    expect(format(text)).toBe(formatted);
  });

  test("has a version, also with a zone", () => {
    const versions = ["192.0.2.1", "::ffff:192.0.2.1", "fe80::1%eth0", "192.0.2", "localhost"].map(
      ipVersionOf,
    );
    expect(versions).toEqual([4, 6, 6, undefined, undefined]);
  });

  const MALFORMED = [
    " 1.2 1.2.3 1234567 01.2.3.4 0x1.2.3.4 1.2.3.256 1.2.3.4.5 1.2.3.4/32 ::ffff:01.2.3.4 1::2::3 :1",
    "1:2:3:4:5:6:7 1:2:3:4:5:6:7:8:9 12345:: g::1 [::1] fe80::1%eth0 localhost",
  ];
  test.each(MALFORMED.flatMap((texts) => texts.split(" ")))("%p is not one", (text) => {
    expect(parseIpAddress(text)).toBeUndefined();
  });

  test("any other text is rejected without an exception", () => {
    const characters = fc.constantFrom(..."0123456789abcdef:.%/x[] ");
    fc.assert(
      fc.property(fc.string({ unit: characters, maxLength: 50 }), (text) => {
        expect(parseIpAddress(text) !== undefined).toBe(isIP(text) > 0 && !text.includes("%"));
      }),
    );
  });
});

describe("a network", () => {
  test.each([
    ["10.0.0.0/8", "10.255.255.255", true],
    ["10.0.0.0/8", "11.0.0.0", false],
    ["10.0.0.0/8", "::ffff:10.0.0.1", true],
    ["10.0.0.0/8", "::10.0.0.1", false],
    ["192.0.2.1", "192.0.2.1", true],
    ["192.0.2.1", "192.0.2.2", false],
    ["2001:db8::/32", "2001:db8:ffff::1", true],
    ["2001:db8::/32", "2001:db9::", false],
    ["2001:db8::/33", "2001:db8:8000::", false],
    ["0.0.0.0/0", "203.0.113.9", true],
    ["0.0.0.0/0", "2001:db8::1", false],
    ["::/0", "2001:db8::1", true],
    ["::/0", "203.0.113.9", true],
  ])("%s contains %s: %p", (cidr, text, expected) => {
    const address = parseIpAddress(text);
    expect(address && contains(network(cidr), address)).toBe(expected);
  });

  test.each([
    ["10.1.2.3/8", "10.0.0.0/8"],
    ["10.1.2.3", "10.1.2.3/32"],
    ["10.1.2.3/0", "0.0.0.0/0"],
    ["::ffff:10.0.0.1/95", "::fffe:0:0/95"],
    ["2001:db8::1/32", "2001:db8::/32"],
    ["::1", "::1/128"],
    ["1::2/128", "1::2/128"],
    ["::/0", "::/0"],
  ])("%s is shown as %s", (cidr, shown) => {
    expect(formatIpNetwork(withoutHostBits(network(cidr)))).toBe(shown);
  });

  test.each(["10.0.0.0/33", "::/129", "10.0.0.0/08", "10.0.0.0/", "10.0.0.0/8/8", "10.0.0.0/-1", "x/8"])(
    "%s is none",
    (text) => expect(parseIpNetwork(text)).toBeUndefined(),
  );
});

test.each([
  ["localhost", true],
  ["127.0.0.1", true],
  ["127.255.255.255", true],
  ["128.0.0.1", false],
  ["126.255.255.255", false],
  ["::1", true],
  ["[::1]", true],
  ["::2", false],
  ["::ffff:127.0.0.1", true],
  ["0.0.0.0", false],
  ["localhost.example", false],
])("%s is an address of this machine alone: %p", (host, expected) => expect(isLoopback(host)).toBe(expected));
