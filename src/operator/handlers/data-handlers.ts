import { historyHandlers } from "./history.ts";
import { keyHandlers } from "./keys.ts";
import { operatorHandlers } from "./operators.ts";
import { petAndOrderHandlers } from "./pets-and-orders.ts";
import { fleetOf } from "./server.ts";
import { newServerSecret } from "../server-secret.ts";
import type { AdminContext, OperatorServices } from "./services.ts";

/** The operations on data: a server and the command line have them alike. */
export function dataHandlers(services: OperatorServices) {
  return {
    ...keyHandlers(services),
    ...historyHandlers(services),
    ...petAndOrderHandlers(services),
    ...operatorHandlers(services),
    listServers: async () => fleetOf(await services.servers.list()),
    async rotateServerSecret(_input: unknown, { by }: AdminContext) {
      await services.settings.replaceSecret(newServerSecret(), { ...by, action: "server-secret.rotated" });
      return undefined;
    },
  };
}

/** Those of the command line. For requests, which a server keeps in memory, it asks a server. */
export type DataOperationId = keyof ReturnType<typeof dataHandlers> | "listRequests";
