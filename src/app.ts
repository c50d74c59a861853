import { steadyClock } from "./clock.ts";
import { type Config, listenUrl, serversOf } from "./config/config.ts";
import { openApiJson } from "./contract/openapi/document.ts";
import type { Clock, KeyStore, RateLimiter } from "./domain/ports.ts";
import { type Adapters, openAdapters } from "./adapters.ts";
import { Addresses } from "./auth/client-address.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { createLog, type Log } from "./log.ts";
import { createHttpApp, startupHandler } from "./http/app.ts";
import { headerLine, HttpServer } from "./http1/index.ts";

export interface App {
  /** The base URL that clients use, such as http://127.0.0.1:8080/v1. */
  readonly url: string;
  readonly keys: KeyStore;
  /** Finishes the requests in progress, saves usage and closes the databases. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  readonly requestTimeoutMs?: number;
}

/** On every response. */
const SECURITY_HEADER_LINES = headerLine("X-Content-Type-Options", "nosniff");

/** Every server knows of a changed key within a second. */
const POLL_KEYS_MS = 250;
/** The clock of the machine that unbanned a key may be behind by this much. */
const CLOCK_DIFFERENCE_MS = 60_000;

/** The composition root: Config → adapters → services → server. */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLog();
  const clock = options.clock ?? systemClock(log);
  const adapters = await openAdapters(config, clock, log);
  try {
    return await serveOn(adapters, config, { ...options, clock, log });
  } catch (error) {
    await adapters.close().catch((closeError: unknown) => log.error("cannot close", { error: closeError }));
    throw error;
  }
}

/** Closing the app closes the adapters. */
export async function serveOn(
  adapters: Adapters,
  config: Config,
  { clock, log, requestTimeoutMs }: AppOptions & { clock: Clock; log: Log },
): Promise<App> {
  const { store, keys, petJson, rateLimiter } = adapters;
  const { environment, plans } = config;
  const authenticator = await Authenticator.open({ keys, environment, plans, clock });
  const { host, port, drainDelayMs } = config;
  const server = new HttpServer({
    host,
    port,
    handler: startupHandler,
    headerLines: SECURITY_HEADER_LINES,
    onError: (error) => log.error("a connection failed", { error }),
  });
  const baseUrl = config.publicUrl ?? listenUrl(host, server.port);
  const servers = serversOf(config, baseUrl);
  server.handler = createHttpApp({
    authenticator,
    rateLimiter,
    addresses: new Addresses(config.trustedProxies),
    plans,
    store,
    petJson,
    clock,
    log,
    baseUrl,
    requestTimeoutMs,
    openApi: () => openApiJson({ servers, current: environment, plans, ban: config.ban }),
    isShuttingDown: () => server.isShuttingDown,
  });
  const stopPolling = pollKeyChanges({ authenticator, rateLimiter, clock, log });

  return {
    url: baseUrl,
    keys,
    async close() {
      await server.close(drainDelayMs);
      stopPolling();
      await adapters.close();
    },
  };
}

/**
 * Polls for keys that other processes changed: plans, secrets, revocations, unbans. Polls never overlap: a slow one
 * would undo what a quicker one has applied.
 */
function pollKeyChanges(options: {
  authenticator: Authenticator;
  rateLimiter: RateLimiter;
  clock: Clock;
  log: Log;
}): () => void {
  const { authenticator, rateLimiter, clock, log } = options;
  let failing = false;
  let timer = setTimeout(poll, POLL_KEYS_MS);
  let stopped = false;

  async function poll(): Promise<void> {
    try {
      for (const key of await authenticator.followChanges()) {
        if (key.unbannedAt !== undefined) {
          await rateLimiter.unban(
            { kind: "key", id: key.id },
            Math.min(clock.now(), key.unbannedAt + CLOCK_DIFFERENCE_MS),
          );
        }
      }
      if (failing) log.info("key changes can be read again");
      failing = false;
    } catch (error) {
      if (!failing) log.warn("key changes cannot be read; trying again", { error });
      failing = true;
    }
    if (!stopped) timer = setTimeout(poll, POLL_KEYS_MS);
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

function systemClock(log: Log): Clock {
  return steadyClock({
    onStep: (byMs) =>
      log.warn("the system clock was changed; this server keeps its own time until it restarts", { byMs }),
  });
}
