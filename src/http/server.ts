import type { Awaitable } from "../domain/ports.ts";
import { nextTurn } from "../domain/turns.ts";
import type { Log } from "../log.ts";
import { Collector } from "./collector.ts";
import type { Pipeline } from "./pipeline.ts";
import { errorReply, faultReply } from "./replies.ts";
import { type Route, routesOf, VERSION_PREFIX } from "./router.ts";
import { Share } from "./share.ts";

/** What is served once it is known at which address. */
export interface Site {
  readonly pipeline: Pipeline;
  /** Paths outside the versioned interface. */
  readonly pages: Record<string, (request: Request) => Response>;
}

export interface Listening {
  readonly host: string;
  readonly port: number;
  readonly drainDelayMs: number;
  readonly log: Log;
}

export interface Listener {
  /** The one that was asked for, or the free one that was found for 0. */
  readonly port: number;
  /** The address at the other end of the connection that a request came by. */
  peerOf(request: Request): string;
  serve(site: Site): void;
  /** Takes no new connection, asks the open ones to close, and waits for what is in flight. */
  close(): Promise<void>;
}

/** Where load balancers ask. */
const HEALTH = "/healthz";
/** How long requests in flight may take after a stop was asked for. */
const DRAIN_MS = 8_000;

/**
 * Every path is a route with one function for all methods: a method that a route does not list would fall through
 * to `fetch`, where only `request.url` is left to decide on, and that is normalised.
 */
export function listen({ host, port, drainDelayMs, log }: Listening): Listener {
  let draining = false;

  const options = {
    hostname: host,
    port,
    // Without this the runtime shares an explicit port with whoever has it already, and each gets some of the requests.
    reusePort: false,
    development: false,
    // Its own 413 has no body; ours does, and unread bodies are discarded without being kept.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    idleTimeout: 30,
    error(error: Error) {
      log.error("the listener failed", { error });
      return faultReply({});
    },
  };
  const server = Bun.serve({ ...options, routes: { "/*": starting } });

  const share = new Share();
  const collector = new Collector();
  type Answer = (request: Bun.BunRequest<string>) => Awaitable<Response>;
  const inTurn =
    (answer: Answer): Answer =>
    (request) => {
      collector.count();
      return share.isSpent() ? nextTurn().then(() => answer(request)) : answer(request);
    };

  function routes({ pipeline, pages }: Site): Record<string, Answer> {
    const through = (route: Route | undefined) =>
      inTurn((request) => {
        const reply = pipeline(request, route);
        return reply instanceof Promise
          ? reply.then((response) => finish(request, response))
          : finish(request, reply);
      });
    const besides = Object.entries(pages).map(([path, page]) => [
      path,
      inTurn((request) => finish(request, draining && path === HEALTH ? leaving() : page(request))),
    ]);
    return {
      ...Object.fromEntries(besides),
      ...Object.fromEntries(routesOf().map((route) => [route.pattern, through(route)])),
      [VERSION_PREFIX]: through(undefined),
      [`${VERSION_PREFIX}/*`]: through(undefined),
    };
  }

  function finish({ method }: Request, response: Response): Response {
    if (draining) response.headers.set("Connection", "close");
    // The runtime dates every answer but those to HEAD.
    if (method === "HEAD") response.headers.set("Date", new Date().toUTCString());
    return response;
  }

  return {
    port: server.port ?? port,
    peerOf: (request) => server.requestIP(request)?.address ?? "",
    serve: (site) => void server.reload({ ...options, routes: routes(site) }),
    async close() {
      draining = true;
      const cutOff = setTimeout(() => server.stop(true), DRAIN_MS);
      // A request may be on its way on a connection that looks idle; load balancers need a moment to send no more.
      await Bun.sleep(drainDelayMs);
      await server.stop();
      clearTimeout(cutOff);
      collector.stop();
    },
  };
}

function leaving(): Response {
  return errorReply("unavailable", "This server is leaving.", { "Retry-After": "1" });
}

function starting(): Response {
  return errorReply("unavailable", "The service is starting.", { "Retry-After": "1" });
}
