import type { Awaitable } from "../domain/awaitable.ts";
import type { Request } from "./request.ts";
import type { Response } from "./response.ts";

/** What is served. */
export interface RequestHandler {
  handle(request: Request): Awaitable<Response>;
  /** What is answered when `answer` fails, which it should not. */
  handleError(error: unknown): Response;
}
