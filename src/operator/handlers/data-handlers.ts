import { auditHandlers } from "./audit.ts";
import { keyHandlers } from "./keys.ts";
import { operatorHandlers } from "./operators.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";
import { policyHandlers } from "./policy.ts";
import { serverListHandlers } from "./servers.ts";
import { usageHandlers } from "./usage.ts";
import { ADMIN_OPERATIONS, type RunningServerOperationId } from "../operations.ts";
import type { AdminHandlers } from "./context.ts";
import { withOperatorReads } from "../services.ts";

type DataServices = Parameters<typeof keyHandlers>[0] &
  Parameters<typeof usageHandlers>[0] &
  Parameters<typeof auditHandlers>[0] &
  Parameters<typeof petAndOrderHandlers>[0] &
  Parameters<typeof operatorHandlers>[0] &
  Parameters<typeof policyHandlers>[0] &
  Parameters<typeof serverListHandlers>[0];

/**
 * The handlers of operations on data, which a server and the command line share. An operation whose method is GET has
 * the stores for reads. One that changes something depends on fewer parts, and reads what it changes, by its key.
 */
export function dataHandlers(services: DataServices): DataHandlers {
  const changing = handlersOn(services);
  const reading = handlersOn(withOperatorReads(services));
  const chosen = Object.keys(changing).map((id) => {
    // The handlers are named by their operations.
    const dataId = id as DataOperationId;
    return [id, ADMIN_OPERATIONS[dataId].method === "GET" ? reading[dataId] : changing[dataId]];
  });
  return Object.fromEntries(chosen);
}

function handlersOn(services: DataServices) {
  return {
    ...keyHandlers(services),
    ...usageHandlers(services),
    ...auditHandlers(services),
    ...petAndOrderHandlers(services),
    ...operatorHandlers(services),
    ...policyHandlers(services),
    ...serverListHandlers(services),
  } satisfies Partial<AdminHandlers>;
}

type DataHandlers = ReturnType<typeof handlersOn>;

/** The operations on data, which the command line executes itself. */
export type DataOperationId = keyof DataHandlers;
export type CommandOperationId = DataOperationId | RunningServerOperationId;
