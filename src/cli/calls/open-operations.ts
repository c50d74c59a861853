import { describeProblems, OutcomeUnknown, pathText } from "../../api/errors.ts";
import type { InputProblem } from "../../api/schema.ts";
import { UsageError } from "../../config/usage-error.ts";
import { shownAction } from "../../domain/audit.ts";
import { unreadableText } from "../../operator/calls.ts";
import type { CommandOperationId } from "../../operator/handlers/data-handlers.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../../operator/operations.ts";
import { printable } from "../../text/formatting.ts";
import { errorMessage } from "../error-message.ts";
import { type Context, type DataUse, Failure } from "../command.ts";
import type { OperationFlags } from "../operation-flags.ts";
import {
  type CallCommandLine,
  doesNotExist,
  type OpenedOperations,
  RejectedCall,
  UnansweredCall,
} from "./call.ts";
import { openDataHere } from "./data-here.ts";
import { openRemoteServer } from "./remote-server.ts";

interface OpenOptions {
  /** What the command does to the data. */
  readonly data: DataUse;
  /** The flags that set the fields of the call. */
  readonly flags?: OperationFlags;
}

/** Opens the operations of a remote server, or those on the data here, which servers may use too. */
export async function openOperations(
  commandLine: CallCommandLine,
  context: Context,
  { data, flags }: OpenOptions = { data: "reads" },
): Promise<OpenedOperations> {
  const { values } = commandLine;
  const { server } = values;
  let unreadableRows = 0;
  const onUnreadable = (rows: number) => {
    // --follow reads the same rows again.
    if (rows !== unreadableRows) context.warn(unreadableText(rows));
    unreadableRows = rows;
  };
  if (context.loginServer !== undefined && data !== "reads" && context.errorStream.isTerminal)
    context.warn(`this is on ${context.loginServer}, where you are logged in`);
  const explain = (error: unknown): never => {
    throw error instanceof RejectedCall ? explained(error, { values, context, flags }) : error;
  };
  const operations = await (
    server === undefined
      ? openDataHere(commandLine, context, onUnreadable)
      : openRemoteServer(server, commandLine, onUnreadable)
  ).catch(explain);
  return {
    ...operations,
    call: async (id, input) =>
      operations.call(id, input).catch((error: unknown) => explain(withOutcome(id, error))),
    savedUrl: async () => operations.savedUrl().catch(explain),
  };
}

interface Explanation {
  readonly values: CallCommandLine["values"];
  readonly context: Context;
  readonly flags: OperationFlags | undefined;
}

/** Returns the error that a command ends with: it names flags, and commands that help. */
function explained(error: RejectedCall, { values, context, flags }: Explanation): Error {
  const { message } = error;
  const { code, problems } = error.rejection;
  const nameOf = (path: InputProblem["path"]) => flags?.nameOf(path) ?? pathText(path);
  if (problems.length > 0) return new UsageError(printable(describeProblems(problems, nameOf)));
  if (code === "invalid_body" || code === "invalid_parameter") return new UsageError(message);
  if (code === "invalid_token" && context.loginServer !== undefined)
    return new Failure(`${message} Run petstore login ${context.loginServer} again.`);
  const list = LISTS[code];
  return list ? doesNotExist(message, list, values) : error;
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

/** Returns the error of a call. Its message says so if the change may have been made. */
function withOutcome(id: CommandOperationId, error: unknown): unknown {
  const { audited = "nothing" }: AdminOperation = ADMIN_OPERATIONS[id];
  const isUnknown = error instanceof OutcomeUnknown || error instanceof UnansweredCall;
  if (audited === "nothing" || !isUnknown) return error;
  const [noun = "", verb = ""] = shownAction(audited).split(".");
  const done = `the ${noun.replaceAll("-", " ")} ${noun.endsWith("s") ? "were" : "was"} ${verb}`;
  const reason = errorMessage(error).replace(/\.$/, "");
  return new Failure(`${reason}; it is not known whether ${done}; see petstore ${SHOWN_BY[noun] ?? "audit"}`);
}
