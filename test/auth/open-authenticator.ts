import { Authenticator, type AuthenticatorOptions, type Client } from "../../src/auth/authenticator.ts";
import { followKeyChanges, type KeyChangeFollower } from "../../src/auth/key-changes.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { newQuota, peek } from "../../src/domain/rate-limit.ts";

export const CLIENT: Client = { clientAddress: "192.0.2.1" };

/** No address is at its limit. */
const noQuota: Pick<RateLimiter, "peek"> = { peek: (_, limits) => peek(newQuota(), limits, 0) };

/** An Authenticator whose clients have no limit, unless a rate limiter is given. */
export function openAuthenticator(
  options: Pick<AuthenticatorOptions, "keys" | "clock"> & Partial<AuthenticatorOptions>,
): Promise<Authenticator> {
  return Authenticator.open({
    environment: "production",
    policy: { current: DEFAULT_POLICY },
    rateLimiter: noQuota,
    ...options,
  });
}

type FollowOptions = Parameters<typeof followKeyChanges>[0];

/** Follows changes and reports nothing, unless a callback is given. */
export function followSilently(
  options: Pick<FollowOptions, "authenticator" | "clock"> & Partial<FollowOptions>,
): KeyChangeFollower {
  return followKeyChanges({
    rateLimiter: { unban() {} },
    readPolicy: () => DEFAULT_POLICY,
    applyPolicy() {},
    onChanges() {},
    onUnreadable() {},
    onReadable() {},
    onUnbanError() {},
    ...options,
  });
}
