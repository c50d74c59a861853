import type { ServerOperationId } from "../operations.ts";
import { requestHandlers } from "./requests.ts";
import { serverHandlers } from "./server.ts";
import type { AdminHandlers } from "./context.ts";
import { forReads, type Services } from "../services.ts";
import { webhookHandlers } from "./webhook.ts";

/** What every server has, with a listener for operators or without. */
export type AskedServices = Parameters<typeof serverHandlers>[0] &
  Parameters<typeof requestHandlers>[0] &
  Parameters<typeof webhookHandlers>[0] &
  Pick<Services, "log" | "storesForReads">;

/** The handlers of operations that only a running server can execute. They need no context. */
export function askedHandlers(services: AskedServices) {
  return {
    ...serverHandlers(services),
    ...requestHandlers(forReads(services)),
    ...webhookHandlers(services),
  } satisfies Pick<AdminHandlers, ServerOperationId>;
}
