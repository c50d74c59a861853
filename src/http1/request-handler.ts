import type { Awaitable } from "../domain/ports.ts";
import type { Incoming } from "./request.ts";
import type { Reply } from "./response.ts";

/** What is served. */
export interface Site {
  answer(incoming: Incoming): Awaitable<Reply>;
  /** What is answered when `answer` fails, which it should not. */
  fault(error: unknown): Reply;
}
