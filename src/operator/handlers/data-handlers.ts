import { historyHandlers } from "./history.ts";
import { keyHandlers } from "./keys.ts";
import { operatorHandlers } from "./operators.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";
import { policyHandlers } from "./policy.ts";
import { fleetOf } from "./server.ts";
import type { ServerOperationId } from "../operations.ts";
import type { OperatorServices } from "./services.ts";

/** The handlers of operations on data, which a server and the command line share. */
export function dataHandlers(services: OperatorServices) {
  return {
    ...keyHandlers(services),
    ...historyHandlers(services),
    ...petAndOrderHandlers(services),
    ...operatorHandlers(services),
    ...policyHandlers(services),
    async listServers() {
      const { servers, clock } = services;
      return fleetOf(await servers.list(), await servers.lost(), clock.now());
    },
  };
}

/** The operations on data, which the command line executes itself. */
export type DataOperationId = keyof ReturnType<typeof dataHandlers>;
export type CommandOperationId = DataOperationId | ServerOperationId;
