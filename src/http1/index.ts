// `Request` and `Response` are those of this server. They are simpler than the global ones, which `fetch` uses.
export { HttpServer, type HttpServerOptions, type ServerStatistics } from "./server.ts";
export { MAX_HANDSHAKES_PER_SECOND, type TlsCertificate } from "./tls.ts";
export { headerLine, type Response, type Status } from "./response.ts";
export { type Peer, type Request, RequestAborted, type RequestHandler } from "./request.ts";
export { type HeaderFields, MAX_FIELDS } from "./header-fields.ts";
export { MAX_HEAD_BYTES, MAX_REQUEST_LINE_BYTES, type ProtocolErrorStatus } from "./request-head.ts";
export { RECEIVE_TIMEOUT_SECONDS } from "./connection.ts";
export { slowRejectedClients } from "./slow-rejected-clients.ts";
export { type LimitEvent, maxConnectionsWithin, maxDescriptors } from "./connection-limits.ts";
