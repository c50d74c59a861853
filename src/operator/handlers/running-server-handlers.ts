import type { RunningServerOperationId } from "../operations.ts";
import { requestHandlers } from "./requests.ts";
import { seriesHandlers } from "./series.ts";
import { serverHandlers } from "./servers.ts";
import { settingHandlers } from "./settings.ts";
import type { AdminHandlers } from "./context.ts";
import { withOperatorReads, type Services } from "../services.ts";
import { webhookHandlers } from "./webhook.ts";

/** What every server has, with a listener for operators or without. */
export type RunningServerServices = Parameters<typeof serverHandlers>[0] &
  Parameters<typeof seriesHandlers>[0] &
  Parameters<typeof settingHandlers>[0] &
  Parameters<typeof requestHandlers>[0] &
  Parameters<typeof webhookHandlers>[0] &
  Pick<Services, "log" | "operatorReads">;

/** The handlers of operations that only a running server can execute. They need no context. */
export function runningServerHandlers(services: RunningServerServices) {
  return {
    ...serverHandlers(services),
    ...seriesHandlers(services),
    ...settingHandlers(services),
    ...requestHandlers(withOperatorReads(services)),
    ...webhookHandlers(services),
  } satisfies Pick<AdminHandlers, RunningServerOperationId>;
}
