import { expect, test } from "bun:test";
import { PORTS, STORE_PORTS } from "../conformance/port-calls.ts";

/** Why a port has no suite that expects each of its methods to be called. */
const WITHOUT_SUITE = {
  Clock: "test/clock.test.ts; everything else has a clock that it moves",
  ServerRegister: "test/background/server-register.test.ts; of the database, ServerReportStore is the port",
  QuotaStore: "one adapter, which test/store/quota-store.test.ts covers",
};

test("every port has a conformance suite, which calls each of its methods, or a reason says why not", () => {
  const withSuite = new Set([...STORE_PORTS.values(), "RateLimiter"]);
  const without = [...PORTS.keys()].filter((port) => !withSuite.has(port));
  expect(without.toSorted()).toEqual(Object.keys(WITHOUT_SUITE).toSorted());
});
