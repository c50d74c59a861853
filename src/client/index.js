export { Petstore } from "./petstore.js";
export {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  InvalidRequestError,
  NotFoundError,
  PermissionError,
  PetstoreError,
  RateLimitError,
  ServerError,
  TimeoutError,
} from "./errors.js";
