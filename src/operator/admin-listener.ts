import { systemErrorField } from "../runtime/system-error.ts";
import type { AdminConfig } from "../config/config.ts";
import {
  HttpServer,
  type HttpServerOptions,
  type RequestHandler,
  slowRejectedClients,
} from "../http1/index.ts";

/** The configured address cannot be listened on. The cause is the error of the runtime. */
export class AdminListenError extends Error {
  override readonly name = "AdminListenError";

  constructor(
    readonly host: string,
    readonly port: number,
    cause: unknown,
  ) {
    super(`cannot listen for operators on ${host} port ${port}`, { cause });
  }
}

/** The number of connections. Operators and their programs need few. */
const MAX_CONNECTIONS = 200;
/** The timeout of a body without a valid token: such a body is a token or a code to sign in with. */
export const UNAUTHENTICATED_BODY_SECONDS = 5;
const CLOSE_TIMEOUT_MS = 1_000;
/**
 * The number of ports that are tried, beginning with the default one. If all of them are taken, any free port is used.
 */
const PORTS_TO_TRY = 20;

/** Opens the listener for operators, on the configured address or on a free port after the default one. */
export function listenForOperators<Handler extends RequestHandler>(
  { host, port, isDefault }: Pick<AdminConfig, "host" | "port" | "isDefault">,
  options: Pick<HttpServerOptions<Handler>, "createHandler" | "tls" | "headerLines" | "onError" | "peerOf">,
): HttpServer<Handler> {
  const ports = isDefault ? [...Array.from({ length: PORTS_TO_TRY }, (_, i) => port + i), 0] : [port];
  let lastError: unknown;
  for (const candidate of ports) {
    try {
      return new HttpServer({
        ...options,
        host,
        port: candidate,
        createPacer: slowRejectedClients,
        maxConnections: MAX_CONNECTIONS,
        unauthenticatedBodySeconds: UNAUTHENTICATED_BODY_SECONDS,
        closeTimeoutMs: CLOSE_TIMEOUT_MS,
      });
    } catch (error) {
      lastError = error;
      if (!isPortTaken(error)) break;
    }
  }
  throw new AdminListenError(host, port, lastError);
}

function isPortTaken(error: unknown): boolean {
  return systemErrorField(error, "code") === "EADDRINUSE";
}
