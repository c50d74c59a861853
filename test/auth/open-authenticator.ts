import { Authenticator, type AuthenticatorOptions } from "../../src/auth/authenticator.ts";
import { Addresses, type Client } from "../../src/auth/client-address.ts";
import { DEFAULT_PLANS } from "../../src/domain/api-keys.ts";
import type { RateLimiter } from "../../src/domain/ports.ts";
import { newUsage, peek } from "../../src/domain/rate-limit.ts";

export const CLIENT: Client = { remoteAddress: "192.0.2.1", headers: { get: () => null } };

/** No address is at its limit. */
const noUsage: Pick<RateLimiter, "peek"> = { peek: (_, limits) => peek(newUsage(), limits, 0) };

/** An Authenticator whose clients have no limit, unless a rate limiter is given. */
export function openAuthenticator(
  options: Pick<AuthenticatorOptions, "keys" | "clock"> & Partial<AuthenticatorOptions>,
): Promise<Authenticator> {
  return Authenticator.open({
    environment: "production",
    plans: DEFAULT_PLANS,
    addresses: new Addresses([]),
    rateLimiter: noUsage,
    ...options,
  });
}
