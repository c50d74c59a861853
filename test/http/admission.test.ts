import { expect, test } from "bun:test";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import type { Request } from "../../src/http1/index.ts";
import { ErrorLog } from "../../src/observe/error-log.ts";
import { RequestRecord } from "../../src/observe/request-record.ts";
import { Admission } from "../../src/public/admission.ts";
import { runCoroutine } from "../../src/runtime/awaitable.ts";
import { silentLog } from "../../src/observe/log.ts";

const limits = { perMinute: 2, perDay: 2 };
const principal = { keyId: 1, plan: "free", access: "write", limits } as const;
const window = { limit: 2, remaining: 1, resetAt: 0, strikes: 0 };
const decision = {
  ...window,
  outcome: "allowed",
  minute: window,
  day: window,
  retryAfterSeconds: 0,
} as const;

const REQUEST: Request = {
  method: "GET",
  path: "/v1/pets",
  query: "",
  headers: { get: () => null } as never,
  remoteAddress: "",
  clientAddress: "",
  body: () => undefined,
  markAuthenticated() {},
};

test.each([
  [false, false],
  [true, false],
  [false, true],
  [true, true],
])("a request has waited if authentication (%p) or the rate limiter (%p) has", async (first, second) => {
  const admission = new Admission(
    {
      authenticator: { authenticate: () => (first ? Promise.resolve(principal) : principal) },
      rateLimiter: { decide: () => (second ? Promise.resolve(decision) : decision), peek: () => decision },
      policy: { current: DEFAULT_POLICY },
      whenCurrent: () => undefined,
    },
    new ErrorLog(silentLog),
  );
  const admitted = await runCoroutine(admission.admit(new RequestRecord(REQUEST, "1"), 0, "api"));
  expect(admitted).toEqual({ principal, decision, hasWaited: first || second });
});
