import { serverOrigin } from "../../config/address-types.ts";
import { dataLocationOf } from "../../config/storage.ts";
import { ADMIN_TOKEN_OPTIONS, DATABASE_OPTIONS, JSON_OPTION } from "../../config/options.ts";
import type { Options, ValuesOf } from "../../config/parse-options.ts";
import { file, switchOption } from "../../config/value-types.ts";
import type { Rejection } from "../../api/errors.ts";
import type { CallInput, CallInputOf } from "../../operator/calls.ts";
import type { CommandOperationId } from "../../operator/handlers/data-handlers.ts";
import type { ResponseOf } from "../../operator/operations.ts";
import { printable } from "../../text/formatting.ts";
import { type CommandLine, Failure } from "../command.ts";

export const PLAIN_HTTP_OPTION = {
  "plain-http": switchOption("Send the token to an http:// URL, which everybody on the way can read"),
} as const satisfies Options;

/** The options of every command that calls an operation of operators, on this data or on a remote server. */
export const CALL_OPTIONS = {
  ...DATABASE_OPTIONS,
  server: {
    type: serverOrigin,
    defaultText: "that of petstore login, or the data here",
    help: "URL of the listener for operators of a running server, such as https://admin.example.com",
  },
  ...PLAIN_HTTP_OPTION,
  ...ADMIN_TOKEN_OPTIONS,
  "admin-token-file": { type: file, help: "File with a token for --server" },
  ...JSON_OPTION,
} as const satisfies Options;

type CallValues = ValuesOf<typeof CALL_OPTIONS>;

/** The command line of a command with CALL_OPTIONS; `O` are its other options. */
export type CallCommandLine<O extends Options = Record<never, never>> = CommandLine<
  Record<never, never>,
  O & typeof CALL_OPTIONS
>;

/** Calls an operation. Throws RejectedCall if it is rejected. */
export type CallOperation = <Id extends CommandOperationId>(
  id: Id,
  input?: CallInputOf<Id>,
) => Promise<ResponseOf<Id>>;

/** A CallOperation whose input only the call itself checks. */
export type CallUnchecked = <Id extends CommandOperationId>(
  id: Id,
  input?: CallInput,
) => Promise<ResponseOf<Id>>;

/** The call was understood and rejected. The message is that of the operation. */
export class RejectedCall extends Failure {
  constructor(readonly rejection: Rejection) {
    super(printable(rejection.message));
  }
}

/** The call may have been executed, although there is no response that says so. */
export class UnansweredCall extends RejectedCall {}

/** The operations of a remote server, or those on the data here. */
export interface OpenedOperations extends AsyncDisposable {
  readonly call: CallUnchecked;
  /** The URL of the API that a server has stored; undefined if there is none. */
  savedUrl(): Promise<string | undefined>;
}

/** Called with the number of rows of a response that this release cannot read. */
export type OnUnreadable = (rows: number) => void;

/** Names the environment, or the remote server. */
export function locationOf(values: CallValues): string {
  return values.server ?? dataLocationOf(values).name;
}

/** Adds to the message which command lists what exists, and where. */
export function doesNotExist(message: string, list: string, values: CallValues): Failure {
  return new Failure(`${message} See petstore ${list}; this is ${locationOf(values)}.`);
}
