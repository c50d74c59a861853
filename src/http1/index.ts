export { HttpServer, type HttpServerOptions, type ServerStatistics, type TlsCertificate } from "./server.ts";
export { MAX_HANDSHAKES_PER_SECOND } from "./server.ts";
export {
  headerLine,
  type Peer,
  type Request,
  RequestAborted,
  type RequestHandler,
  type Response,
  type Status,
} from "./message.ts";
export { type HeaderFields, MAX_FIELDS, type ProtocolErrorStatus } from "./request-head.ts";
export { MAX_HEAD_BYTES, MAX_REQUEST_LINE_BYTES } from "./request-head.ts";
export { REQUEST_TIMEOUT_SECONDS, slowRejectedClients } from "./connection.ts";
export { type LimitEvent, maxConnectionsWithin, maxDescriptors } from "./connection-limits.ts";
