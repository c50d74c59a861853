import { steadyClock } from "./clock.ts";
import { type Config, listenUrl, serversOf } from "./config/config.ts";
import { openApiJson } from "./contract/openapi/document.ts";
import type { Clock, KeyStore, RateLimiter } from "./domain/ports.ts";
import { type Adapters, openAdapters } from "./adapters.ts";
import { Addresses } from "./auth/client-address.ts";
import { Authenticator } from "./auth/authenticator.ts";
import { apiDocs } from "./http/api-docs.ts";
import { Deadlines } from "./http/request-timeout.ts";
import { ErrorLog } from "./http/error-log.ts";
import { createHandlers } from "./http/handlers.ts";
import { ResponseCache } from "./http/response-cache.ts";
import { createLog, type Log } from "./log.ts";
import { createOperate } from "./http/dispatch.ts";
import { createPages } from "./http/static-routes.ts";
import { createPipeline } from "./http/pipeline.ts";
import { createSite, STARTING } from "./http/app.ts";
import { HttpServer } from "./http1/index.ts";

export interface App {
  /** Base address of the interface as clients see it, such as http://127.0.0.1:8080/v1. */
  readonly url: string;
  readonly keys: KeyStore;
  /** Finishes what is in flight, writes down what is only in memory, and lets go of everything. */
  close(): Promise<void>;
}

export interface AppOptions {
  readonly clock?: Clock;
  readonly log?: Log;
  /** Longest that an answer may be waited for. */
  readonly deadlineMs?: number;
}

/** Shorter than the time a stop is given. */
export const DEADLINE_MS = 7_000;
/** A changed key is known everywhere within a second; four looks leave room for a slow one. */
const FOLLOW_EVERY_MS = 250;
/** A ban that began up to this much after it was lifted was lifted all the same, by a clock that is behind. */
const CLOCKS_APART_MS = 60_000;

/** The composition root: configuration → engines → services → listener. */
export async function startApp(config: Config, options: AppOptions = {}): Promise<App> {
  const log = options.log ?? createLog();
  const clock = options.clock ?? systemClock(log);
  const engines = await openAdapters(config, clock, log);
  try {
    return await serveOn(engines, config, { ...options, clock, log });
  } catch (error) {
    await engines.close();
    throw error;
  }
}

/** The service on engines that are open already; closing it closes them. */
export async function serveOn(
  engines: Adapters,
  config: Config,
  { clock, log, deadlineMs = DEADLINE_MS }: AppOptions & { clock: Clock; log: Log },
): Promise<App> {
  const { store, keys, petJson, rateLimiter } = engines;
  const { environment, plans } = config;
  const authenticator = await Authenticator.open({ keys, environment, plans, clock });
  const { host, port, drainDelayMs } = config;
  const server = new HttpServer({
    host,
    port,
    handler: STARTING,
    onError: (error) => log.error("a connection failed", { error }),
  });
  const baseUrl = config.publicUrl ?? listenUrl(host, server.port);

  const handlers = createHandlers({ store, petJson, clock, baseUrl });
  const faults = new ErrorLog(log);
  const operate = createOperate({
    handlers,
    kept: petJson.changes ? { listPets: new ResponseCache(petJson.changes) } : {},
    deadlines: new Deadlines(deadlineMs),
    clock,
    faults,
    baseUrl,
  });
  const addresses = new Addresses(config.trustedProxies);
  const pipeline = createPipeline({ authenticator, rateLimiter, plans, addresses, clock, faults }, operate);
  const pages = createPages({
    openApi: () => openApiJson({ servers: serversOf(config, baseUrl), current: environment }),
    docs: apiDocs,
    isLeaving: () => server.isShuttingDown,
  });
  server.handler = createSite({ pipeline, pages, log });
  const stopFollowing = followKeys({ authenticator, rateLimiter, clock, log });

  return {
    url: baseUrl,
    keys,
    async close() {
      await server.close(drainDelayMs);
      stopFollowing();
      await engines.close();
    },
  };
}

/**
 * Takes over what other processes change: plans, secrets, revocations, lifted bans. The next look begins after the
 * one before has ended, or a slow answer would take back what a quicker one has told since.
 */
function followKeys(options: {
  authenticator: Authenticator;
  rateLimiter: RateLimiter;
  clock: Clock;
  log: Log;
}): () => void {
  const { authenticator, rateLimiter, clock, log } = options;
  let failing = false;
  let timer = setTimeout(look, FOLLOW_EVERY_MS);
  let stopped = false;

  async function look(): Promise<void> {
    try {
      for (const key of await authenticator.followChanges()) {
        if (key.unbannedAt !== undefined) {
          await rateLimiter.unban(
            { kind: "key", id: key.id },
            Math.min(clock.now(), key.unbannedAt + CLOCKS_APART_MS),
          );
        }
      }
      if (failing) log.info("key changes can be read again");
      failing = false;
    } catch (error) {
      if (!failing) log.warn("key changes cannot be read; trying again", { error });
      failing = true;
    }
    if (!stopped) timer = setTimeout(look, FOLLOW_EVERY_MS);
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

function systemClock(log: Log): Clock {
  return steadyClock({
    onStep: (byMs) =>
      log.warn("the machine's clock was set; it is followed from the next start on", { byMs }),
  });
}
