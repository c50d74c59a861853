export type * from "./types.ts";
export type { RateLimit, ResponseMetadata } from "./response.ts";
export { Petstore } from "./petstore.ts";
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  type ErrorCode,
  type ErrorDetails,
  InvalidRequestError,
  InvalidResponseError,
  NotFoundError,
  PermissionError,
  PetstoreError,
  RateLimitError,
  ServerError,
  TimeoutError,
} from "./errors.ts";
