import { hostname } from "node:os";
import type { Attribution } from "../domain/audit.ts";
import type { Clock } from "../domain/ports/clock.ts";

/** The author of what a server does by itself. */
export function byServer(clock: Pick<Clock, "now">): Attribution {
  return { actor: { kind: "server", name: hostname() }, at: clock.now() };
}
