import { Authenticator, type AuthenticatorOptions, type Client } from "../../src/auth/authenticator.ts";
import { ChangeReader } from "../../src/changes/change-reader.ts";
import { followChanges, type ChangeFollower } from "../../src/changes/follow-changes.ts";
import type { KeyStore } from "../../src/domain/ports/keys.ts";
import { DEFAULT_POLICY } from "../../src/domain/policy.ts";
import type { RateLimiter } from "../../src/domain/ports/rate-limiter.ts";
import { newQuota, peek } from "../../src/domain/rate-limit.ts";

export const CLIENT: Client = { clientAddress: "192.0.2.1" };

/** No address is at its limit. */
const noQuota: Pick<RateLimiter, "peek"> = { peek: (_, limits) => peek(newQuota(), limits, 0) };

type OpenOptions = Pick<AuthenticatorOptions, "clock"> &
  Partial<AuthenticatorOptions> & { readonly keys: Pick<KeyStore, "findCredential" | "changesSince"> };

/** An Authenticator whose clients have no limit, unless a rate limiter is given, and the reader of changes for it. */
export async function openAuthenticator(options: OpenOptions) {
  const authenticator = new Authenticator({
    environment: "production",
    policy: { current: DEFAULT_POLICY },
    rateLimiter: noQuota,
    ...options,
  });
  return { authenticator, reader: await ChangeReader.open({ ...options, authenticator }) };
}

type FollowOptions = Parameters<typeof followChanges>[0];

/** Follows changes and reports nothing, unless a callback is given. */
export function followSilently(
  options: Pick<FollowOptions, "authenticator" | "reader" | "clock"> & Partial<FollowOptions>,
): ChangeFollower {
  return followChanges({
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
