import type { Awaitable } from "../domain/ports.ts";
import type { Incoming } from "./incoming.ts";
import type { Reply } from "./reply.ts";

/** What is served. */
export interface Site {
  answer(incoming: Incoming): Awaitable<Reply>;
  /** What is answered when `answer` fails, which it should not. */
  fault(error: unknown): Reply;
}
