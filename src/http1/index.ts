export { HttpServer, type HttpServerOptions } from "./server.ts";
export { type Awaitable, type Request, RequestAborted, type RequestHandler } from "./request.ts";
export { headerLine, type ProtocolErrorStatus, type Response, type Status } from "./response.ts";
export type { HeaderFields } from "./header-fields.ts";
