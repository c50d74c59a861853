import { heapSize } from "bun:jsc";
import { expect, test } from "bun:test";
import { Addresses } from "../../src/auth/client-address.ts";

const MIB = 1_048_576;

function heapGrowth(work: () => void): number {
  Bun.gc(true);
  const before = heapSize();
  work();
  Bun.gc(true);
  return heapSize() - before;
}

/** 10,000 cached addresses take about 1.4 MiB; 300,000 would take about 40. */
test("300,000 client addresses leave at most 10,000 of them in memory", () => {
  const addresses = new Addresses(["127.0.0.1"]);
  const resolve = (i: number) =>
    addresses.subjectOf("127.0.0.1", () => `10.${i >>> 16}.${(i >>> 8) & 255}.${i & 255}`);
  resolve(0);
  const growth = heapGrowth(() => {
    for (let i = 1; i < 300_000; i++) resolve(i);
  });
  expect(growth).toBeLessThan(3 * MIB);
  expect(resolve(299_999)).toEqual({ kind: "address", id: "10.4.147.223" });
});
