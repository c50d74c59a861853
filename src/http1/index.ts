export { HttpServer, type HttpServerOptions, type ServerStatistics } from "./server.ts";
export { type Awaitable, type Request, RequestAborted, type RequestHandler } from "./request.ts";
export { headerLine, type ProtocolErrorStatus, type Response, type Status } from "./response.ts";
export { type HeaderFields, MAX_FIELDS } from "./header-fields.ts";
export { MAX_HEAD_BYTES, MAX_REQUEST_LINE_BYTES } from "./request-head.ts";
export { REQUEST_TIMEOUT_SECONDS } from "./timeouts.ts";
export type { LimitEvent, Peer } from "./connection-limits.ts";
export type { TlsCredentials } from "./tls-upgrade.ts";
