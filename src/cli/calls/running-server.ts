import { hostname } from "node:os";
import type { DataLocation } from "../../data-location.ts";
import type { QuestionStore, ServerRegister } from "../../domain/ports/servers.ts";
import type { CallInput } from "../../operator/calls.ts";
import type { ResponseOf, RunningServerOperationId } from "../../operator/operations.ts";
import { printable } from "../../text/formatting.ts";
import { Failure } from "../command.ts";
import type { OnUnreadable } from "./call.ts";

interface AskOptions {
  readonly location: DataLocation;
  readonly questions: QuestionStore;
  readonly servers: ServerRegister;
  readonly onUnreadable: OnUnreadable;
}

/** Asks for what only a running server knows or does: a server of this machine, or else any other. */
export async function callRunningServer<Id extends RunningServerOperationId>(
  id: Id,
  { query }: CallInput,
  { location, questions, servers, onUnreadable }: AskOptions,
): Promise<ResponseOf<Id>> {
  const { askServers, ASK_TIMEOUT_MS } = await import("../../operator/ask-servers.ts");
  const names = new Set((await servers.list()).map(({ name }) => name));
  const machines = [hostname()].filter((name) => names.has(name));
  for (const to of names.size > machines.length ? [...machines, undefined] : machines) {
    const [response] = await askServers([to], id, { questions, query, timeoutMs: ASK_TIMEOUT_MS });
    if (response === undefined) continue;
    if (typeof response === "string") throw new Failure(printable(response));
    if (response.unreadable > 0) onUnreadable(response.unreadable);
    return response.body;
  }
  throw new Failure(`${noServer(location, names.size > 0)}, or name another one with --server`);
}

/** Why no server has answered a command. */
export function noServer({ name: where }: DataLocation, isListed: boolean): string {
  return isListed
    ? `no server of ${where} answers, since it was killed or stands still; try again in 5 seconds`
    : `no server runs in ${where}; start it with petstore serve`;
}
