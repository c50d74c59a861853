import { openQuotas } from "../../adapters/open-quotas.ts";
import { handlerOf, readBody, readQuery, type ValidInput } from "../../api/dispatch.ts";
import { Rejection } from "../../api/errors.ts";
import { parseIdentifier } from "../../api/json.ts";
import { dataLocationOf } from "../../config/storage.ts";
import { openRegister } from "../../background/server-register.ts";
import { PUBLIC_URL } from "../../domain/stored-values.ts";
import { type CallInput, queryText } from "../../operator/calls.ts";
import type { CommandOperationId, DataOperationId } from "../../operator/handlers/data-handlers.ts";
import type { AdminContext } from "../../operator/handlers/context.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  needsRunningServer,
  type ResponseOf,
} from "../../operator/operations.ts";
import { attributionOf, type Context, Failure } from "../command.ts";
import { errorMessage } from "../error-message.ts";
import { type CallCommandLine, type OnUnreadable, type OpenedOperations, RejectedCall } from "./call.ts";
import { callRunningServer } from "./running-server.ts";

/** Opens the operations on the data here. An operation that needs a server asks one that runs on it. */
export async function openDataHere(
  commandLine: CallCommandLine,
  context: Context,
  onUnreadable: OnUnreadable,
): Promise<OpenedOperations> {
  const location = dataLocationOf(commandLine.values);
  const { clock } = context;
  const { openStores } = await import("../../adapters/open-stores.ts");
  const { dataHandlers } = await import("../../operator/handlers/data-handlers.ts");
  await using opening = new AsyncDisposableStack();
  const stores = await openStores(location, { use: "existing" });
  opening.defer(() => stores.close());
  const onProblem = (error: unknown) => {
    context.warn(`${errorMessage(error)} (used quotas, strikes and bans are unknown)`);
    return new Failure(errorMessage(error));
  };
  const quotas = await openQuotas(location.directory, stores, { clock, onProblem });
  opening.defer(() => quotas.rateLimiter.close());
  const policy = { current: await stores.policies.readPolicy() };
  const servers = openRegister(stores.serverReports, clock);
  const asked = { location, questions: stores.questions, servers, onUnreadable };
  const handlers = dataHandlers({
    ...stores,
    environment: location.environment,
    ...quotas,
    servers,
    clock,
    policy,
    // Running servers see the change within a second.
    applyChanges: async () => {},
    applyOperatorChanges: () => {},
  });
  const opened = opening.move();
  return {
    async call(id, input = {}) {
      const validInput = validated(id, input);
      const by = attributionOf(context);
      const result = needsRunningServer(id)
        ? await callRunningServer(id, input, asked)
        : await handlerOf<DataOperationId, [AdminContext], unknown>(handlers, id)(validInput, { by });
      if (result instanceof Rejection) throw new RejectedCall(result);
      // The types of the handlers and of the table say so.
      return result as ResponseOf<typeof id>;
    },
    savedUrl: async () => (await stores.storedValues.readValues())[PUBLIC_URL],
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Validates as the server would, so that a command says the same with --server and without. */
function validated(operationId: CommandOperationId, input: CallInput): ValidInput {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  const query = readQuery(queryText(input.query), operation.query ?? {});
  if (query instanceof Rejection) throw new RejectedCall(query);
  const body = operation.body && readBody(input.body ?? {}, operation.body);
  if (body instanceof Rejection) throw new RejectedCall(body);
  const id = input.id === undefined ? undefined : parseIdentifier(String(input.id));
  if (id === undefined && input.id !== undefined) throw new TypeError("the id of a call is an integer");
  return { id, query, body, bytes: undefined };
}
