import type { OperatorServices } from "./services.ts";
import { fleetHandlers } from "./fleet.ts";
import { historyHandlers } from "./history.ts";
import { KeyDirectory, keyHandlers } from "./keys.ts";
import { operatorHandlers } from "./operators.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";

/** The operations on data: a server and the command line have them alike. */
export function dataHandlers(options: OperatorServices) {
  const directory = new KeyDirectory(options);
  const handlers = {
    ...keyHandlers(options, directory),
    ...fleetHandlers(options),
    ...historyHandlers(options),
    ...petAndOrderHandlers(options),
    ...operatorHandlers(options),
    listRequests: options.listRequests,
  };
  return { directory, handlers };
}

export type DataOperationId = keyof ReturnType<typeof dataHandlers>["handlers"];
