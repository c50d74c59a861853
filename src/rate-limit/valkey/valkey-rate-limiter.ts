import type { Clock } from "../../domain/ports.ts";
import { loggableError, parseServers, ValkeyConnection } from "./connection.ts";
import {
  type OnStateChange,
  SharedRateLimiter,
  type SharedRateLimiterOptions,
} from "./shared-rate-limiter.ts";

export interface ValkeyRateLimiterOptions extends SharedRateLimiterOptions {
  /** `redis://` or `rediss://`; a list means a cluster, of which some hosts are enough. */
  readonly url: string | readonly string[];
  /** Certificates (PEM) of the authorities that sign the server's, for `rediss://`; by default the well-known ones. */
  readonly ca?: string;
  /** How long Valkey may take for what no request waits for: connecting, and what operators do. */
  readonly backgroundTimeoutMs?: number;
  /** Starts the name of every key: environments that share a Valkey need one each. */
  readonly prefix?: string;
  /** Valkey counts by this clock instead of its own. */
  readonly testClock?: Clock;
}

/** Throws on an invalid address. A Valkey that is unavailable delays the start a little and does not prevent it. */
export async function createValkeyRateLimiter(options: ValkeyRateLimiterOptions): Promise<SharedRateLimiter> {
  const { url, ca, prefix = "petstore:", ban, testClock, backgroundTimeoutMs } = options;
  const servers = parseServers(url, ca);
  const settings = { servers, prefix, ban, testClock, backgroundTimeoutMs };
  const report: OnStateChange = (state, cause) =>
    options.onStateChange?.(state, cause === undefined ? undefined : loggableError(cause));
  const rateLimiter = new SharedRateLimiter(
    { ...options, onStateChange: report },
    {
      ...(servers.isCluster ? CLUSTER : SINGLE_SERVER),
      open: (subject) => ValkeyConnection.open(settings, subject),
    },
  );
  await rateLimiter.start();
  return rateLimiter;
}

/**
 * Valkey runs a batch as one step while every other client waits, so a batch takes about a millisecond at most.
 * Dozens of busy instances can wait for each other within the timeout.
 */
const SINGLE_SERVER = { maxBatchSize: 64, maxConcurrentBatches: 1 };
/** In a cluster a script may touch one slot only; the client pipelines the commands to each node. */
const CLUSTER = { maxBatchSize: 1, maxConcurrentBatches: 1_024 };
