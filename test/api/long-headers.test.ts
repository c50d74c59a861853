import { expect, test } from "bun:test";
import { matchesEtag } from "../../src/runtime/etag.ts";
import { Addresses } from "../../src/auth/client-address.ts";
import { parseIpNetwork } from "../../src/runtime/ip-network.ts";
import { isEverFasterThan } from "../timing.ts";

const ETAG = '"0123456789abcdefghijkl"';
const list = "a,".repeat(7_000);
const addresses = new Addresses([parseIpNetwork("10.0.0.0/8")].flatMap((network) => network ?? []));
const { clientOf } = addresses.peerOf("10.0.0.1");
const headers = { get: () => `${list}192.0.2.1` };

test.each<[string, () => unknown, unknown]>([
  ["If-None-Match", () => matchesEtag(list + ETAG, ETAG), true],
  ["X-Forwarded-For", () => clientOf?.(headers), "192.0.2.1"],
])("%s of 14 kB takes less than a tenth of a millisecond", (_header, read, expected) => {
  expect(read()).toEqual(expected);
  expect(isEverFasterThan(10, () => Array.from({ length: 100 }, read))).toBe(true);
});
