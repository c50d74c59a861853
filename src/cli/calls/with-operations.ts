import { describeProblems, OutcomeUnknown, pathText } from "../../api/errors.ts";
import type { InputProblem } from "../../api/schema.ts";
import { UsageError } from "../../config/usage-error.ts";
import { shownAction } from "../../domain/audit.ts";
import { unreadableText } from "../../operator/calls.ts";
import type { CommandOperationId } from "../../operator/handlers/data-handlers.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../operator/operations.ts";
import { printable } from "../../text/formatting.ts";
import { errorMessage } from "../error-message.ts";
import { type Context, Failure, type FinalText } from "../command.ts";
import {
  locationOf,
  type CallCommandLine,
  RejectedCall,
  UnansweredCall,
  type Work,
  type WorkOptions,
} from "./call.ts";
import { withDataHere } from "./data-here.ts";
import { withRemoteServer } from "./remote-server.ts";

/** Passes to `work` the operations of a remote server, or those on the data here, which servers may use too. */
export async function withOperations(
  commandLine: CallCommandLine,
  context: Context,
  work: Work,
  options: WorkOptions = { data: "reads" },
): Promise<FinalText> {
  const { values } = commandLine;
  let unreadableRows = 0;
  const onUnreadable = (rows: number) => {
    // --follow reads the same rows again.
    if (rows !== unreadableRows) context.warn(unreadableText(rows));
    unreadableRows = rows;
  };
  if (context.loginServer !== undefined && options.data !== "reads" && context.errorStream.isTerminal)
    context.warn(`this is on ${context.loginServer}, where you are logged in`);
  const saysWhetherDone: Work = (call, saved) =>
    work(
      async (id, calledWith) => call(id, calledWith).catch((error: unknown) => throwOutcome(id, error)),
      saved,
    );
  const operationWork = { ...options, work: saysWhetherDone, onUnreadable };
  try {
    return values.server === undefined
      ? await withDataHere(commandLine, context, operationWork)
      : await withRemoteServer(values.server, commandLine, operationWork);
  } catch (error) {
    if (!(error instanceof RejectedCall)) throw error;
    const { message } = error;
    const { code, problems } = error.rejection;
    const nameOf = (path: InputProblem["path"]) => options.flags?.nameOf(path) ?? pathText(path);
    if (problems.length > 0) throw new UsageError(printable(describeProblems(problems, nameOf)));
    if (code === "invalid_body" || code === "invalid_parameter") throw new UsageError(message);
    if (code === "invalid_token" && context.loginServer !== undefined)
      throw new Failure(`${message} Run petstore login ${context.loginServer} again.`);
    const list = LISTS[code];
    throw list ? new Failure(`${message} See petstore ${list}; this is ${locationOf(values)}.`) : error;
  }
}

/** The command that lists what exists, by the code of the error that something does not. */
const LISTS: Readonly<Record<string, string>> = {
  key_not_found: "keys list",
  pet_not_found: "pets list",
  order_not_found: "orders list",
  operator_not_found: "operators list",
};

/** The commands that show what operations change, by the first word of their audit entries. */
const SHOWN_BY: Readonly<Record<string, string>> = {
  key: "keys list",
  pet: "pets list",
  order: "orders list",
  operator: "operators list",
  plan: "plans list",
  "ban-rules": "ban-rules show",
};

/** Throws the error of a call, and says so if the change may have been made. */
function throwOutcome(id: CommandOperationId, error: unknown): never {
  const { audited = "nothing" }: AdminOperation = ADMIN_OPERATIONS[id];
  const isUnknown = error instanceof OutcomeUnknown || error instanceof UnansweredCall;
  if (audited === "nothing" || !isUnknown) throw error;
  const [noun = "", verb = ""] = shownAction(audited).split(".");
  const done = `the ${noun.replaceAll("-", " ")} ${noun.endsWith("s") ? "were" : "was"} ${verb}`;
  const reason = errorMessage(error).replace(/\.$/, "");
  throw new Failure(`${reason}; it is not known whether ${done}; see petstore ${SHOWN_BY[noun] ?? "audit"}`);
}
