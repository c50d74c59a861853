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
import { HttpServer, type LimitEvent } from "./http1/index.ts";
import { followTlsFiles, readTlsFiles, type TlsFiles } from "./tls-files.ts";

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
  const addresses = new Addresses(config.trustedProxies);
  const server = new HttpServer({
    host,
    port,
    handler: STARTING,
    tls: config.tls && readTlsFiles(config.tls),
    maxConnections: config.maxConnections,
    maxConnectionsPerPeer: config.maxConnectionsPerAddress,
    peerOf: (address) => addresses.peerOf(address),
    onLimit: (event) => logConnectionLimit(log, event),
    onError: (error) => log.error("a connection failed", { error }),
  });
  if (config.maxConnections !== undefined && server.maxConnections < config.maxConnections) {
    log.warn("--max-connections is lowered to what the limit of open files allows", {
      maxConnections: server.maxConnections,
    });
  }
  const baseUrl = config.publicUrl ?? listenUrl(host, server.port, { isTls: config.tls !== undefined });

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
  const pipeline = createPipeline({ authenticator, rateLimiter, plans, addresses, clock, faults }, operate);
  const pages = createPages({
    openApi: () => openApiJson({ servers: serversOf(config, baseUrl), current: environment }),
    docs: apiDocs,
    isLeaving: () => server.isShuttingDown,
  });
  server.handler = createSite({ pipeline, pages, log });
  const stopFollowing = followKeys({ authenticator, rateLimiter, clock, log });
  const stopFollowingTls = config.tls && followCertificate(config.tls, server, log);

  return {
    url: baseUrl,
    keys,
    async close() {
      await server.close(drainDelayMs);
      stopFollowing();
      stopFollowingTls?.();
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

function followCertificate(files: TlsFiles, server: HttpServer, log: Log): () => void {
  return followTlsFiles(files, {
    onChange(contents) {
      server.setTlsCredentials(contents);
      log.info("new connections get the new TLS certificate", { file: files.certFile });
    },
    onError: (error) => log.error("the new TLS certificate cannot be used; the one before stays", { error }),
  });
}

function logConnectionLimit(log: Log, { limit, peer, isOver, evicted, rejected }: LimitEvent): void {
  if (limit === "all") {
    if (isOver) log.info("connections are below --max-connections again", { evicted, rejected });
    else log.warn("--max-connections is reached; new connections replace idle ones or are closed");
  } else if (isOver) {
    log.info("no address has more connections than --max-connections-per-address any more", { rejected });
  } else {
    log.warn("an address has reached --max-connections-per-address; its new connections are closed", {
      address: peer,
    });
  }
}

function systemClock(log: Log): Clock {
  return steadyClock({
    onStep: (byMs) =>
      log.warn("the machine's clock was set; it is followed from the next start on", { byMs }),
  });
}
