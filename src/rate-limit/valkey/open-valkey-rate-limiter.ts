import type { Clock } from "../../domain/ports/clock.ts";
import type { RateLimiter } from "../../domain/ports/rate-limiter.ts";
import { KeyAndAddressLimiter } from "../key-and-address-limiter.ts";
import { parseServers, ValkeyConnection, type ValkeyOptions } from "./connection.ts";
import { ValkeyKeyLimiter, type ValkeyKeyLimiterOptions } from "./valkey-key-limiter.ts";

export interface ValkeyRateLimiterOptions extends ValkeyOptions, ValkeyKeyLimiterOptions {
  /** Decides for addresses. The rate limiter closes it. */
  readonly addresses: RateLimiter;
  /** How to connect now: when Valkey cannot be used, its password, host or certificate may have been changed. */
  readonly readServers?: () => Pick<ValkeyOptions, "urls" | "ca">;
  /** How long Valkey may take for what no request waits for: connecting, and what operators do. */
  readonly backgroundTimeoutMs?: number;
  /** Valkey counts by this clock instead of its own. */
  readonly testClock?: Clock;
}

/** Throws on an invalid address. A Valkey that is unavailable delays the start a little and does not prevent it. */
export async function openValkeyRateLimiter(
  options: ValkeyRateLimiterOptions,
): Promise<KeyAndAddressLimiter> {
  const { urls, ca, readServers = () => options, ...others } = options;
  const servers = parseServers(urls, ca);
  const serversNow = () => {
    const { urls: urlsNow, ca: caNow } = readServers();
    const now = parseServers(urlsNow, caNow);
    return now.isCluster === servers.isCluster ? now : servers;
  };
  const keys = new ValkeyKeyLimiter(
    options,
    async (subject) => ValkeyConnection.open({ servers: serversNow(), ...others }, subject),
    servers.isCluster ? CLUSTER : SINGLE_SERVER,
  );
  await keys.start();
  return new KeyAndAddressLimiter(keys, options.addresses);
}

/**
 * Valkey runs a batch as one step while every other client waits, so a batch takes about a millisecond at most.
 * Dozens of busy servers can wait for each other within the timeout.
 */
const SINGLE_SERVER = { isCluster: false, maxBatchSize: 64, maxConcurrentBatches: 1 };
/** In a cluster a script may touch one slot only; the client pipelines the commands to each node. */
const CLUSTER = { isCluster: true, maxBatchSize: 64, maxConcurrentBatches: 1_024 };
