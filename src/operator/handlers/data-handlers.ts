import { historyHandlers } from "./history.ts";
import { KeyDirectory, keyHandlers } from "./keys.ts";
import { operatorHandlers } from "./operators.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";
import { fleetHandlers } from "./server.ts";
import type { OperatorServices } from "./services.ts";

/** The operations on data: a server and the command line have them alike. */
export function dataHandlers(services: OperatorServices) {
  const directory = new KeyDirectory(services);
  const handlers = {
    ...keyHandlers(services, directory),
    ...fleetHandlers(services),
    ...historyHandlers(services),
    ...petAndOrderHandlers(services),
    ...operatorHandlers(services),
    listRequests: services.listRequests,
  };
  return { directory, handlers };
}

export type DataOperationId = keyof ReturnType<typeof dataHandlers>["handlers"];
