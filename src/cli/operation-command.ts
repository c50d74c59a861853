import type { Awaitable } from "../runtime/awaitable.ts";
import { expectedUrl } from "../config/listen-urls.ts";
import { ADDRESS_OPTIONS } from "../config/options.ts";
import type { Options, ValuesOf } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import { alternatives } from "../text/formatting.ts";
import { switchOption, type ValueType } from "../config/value-types.ts";
import type { CallInput } from "../operator/calls.ts";
import type { CommandOperationId } from "../operator/handlers/data-handlers.ts";
import { ADMIN_OPERATIONS, type AdminOperation, type ResponseOf } from "../operator/operations.ts";
import { changesData } from "../operator/operations/rows.ts";
import { type Command, type Context, defineCommand, Failure } from "./command.ts";
import { type FieldFlags, ID_TYPES, OperationFlags } from "./operation-flags.ts";
import { type CallOperation, type CallUnchecked, CALL_OPTIONS, type CallCommandLine } from "./calls/call.ts";
import { openOperations } from "./calls/open-operations.ts";
import { json } from "./output.ts";

/** The option of a command that asks before it does what cannot be undone. */
export const YES_OPTION = {
  yes: switchOption("Do not ask at a terminal, for scripts"),
} as const;

/** One execution of a command. */
export interface Execution<O extends Options> {
  readonly values: ValuesOf<O> & CallCommandLine["values"];
  readonly context: Context;
  readonly startedAt: number;
  /** URL of the API; undefined if it is not known. */
  readonly url: string | undefined;
}

/** A command that is a view of an operation: its flags, their help and their checks come from the table. */
export interface OperationView<Id extends CommandOperationId, O extends Options, R> {
  readonly name: string;
  readonly operation: Id;
  /** By default the summary and the description are those of the operation. */
  readonly summary?: string;
  readonly description?: string;
  /** The default examples are the command with an ID, and with --json. */
  readonly examples?: readonly string[];
  /** Fields whose flag is not simply the field. */
  readonly fields?: FieldFlags;
  /** Fields that follow the ID without a flag. */
  readonly positionals?: readonly string[];
  /** Flags that are no fields. */
  readonly options?: O;
  /** Whether the text has the URL of the API. */
  readonly showsUrl?: true;
  /** Changes the input of the operation. */
  readonly prepare?: (input: CallInput, execution: Execution<O>) => Awaitable<CallInput>;
  /** The calls of a command that needs more than one. */
  readonly request?: (call: CallOperation, input: CallInput, execution: Execution<O>) => Promise<R>;
  /** What --json prints; the result itself if missing. */
  readonly json?: (result: R) => unknown;
  readonly text: (result: R, execution: Execution<O>) => string;
  readonly warning?: (result: R, execution: Execution<O>) => string | undefined;
}

export function operationCommand<
  Id extends CommandOperationId,
  O extends Options = Record<never, never>,
  R = ResponseOf<Id>,
>(view: OperationView<Id, O, R>): Command {
  const { operation, request, json: jsonOf, text, warning } = view;
  return commandOf<Id, O>({
    ...view,
    async *output(call, input, execution) {
      const result = request
        ? await request(call, input, execution)
        : // R is the response unless the view has a request of its own.
          ((await call(operation, input)) as R);
      yield execution.values.json ? json(jsonOf ? jsonOf(result) : result) : text(result, execution);
      const line = warning?.(result, execution);
      if (line !== undefined) execution.context.warn(line);
    },
  });
}

/** What an operation and the output of its calls make a command of. */
interface CommandView<Id extends CommandOperationId, O extends Options> extends Omit<
  OperationView<Id, O, never>,
  "request" | "json" | "text" | "warning"
> {
  /** Calls the operation. Returns what is printed, part by part. */
  readonly output: (call: CallUnchecked, input: CallInput, execution: Execution<O>) => AsyncIterable<string>;
}

export function commandOf<Id extends CommandOperationId, O extends Options>(
  view: CommandView<Id, O>,
): Command {
  const { name, operation, positionals: moved = [], showsUrl, prepare, output } = view;
  const row: AdminOperation = ADMIN_OPERATIONS[operation];
  const { identifier, summary, description } = row;
  const flags = new OperationFlags(operation, view.fields);
  const isMoved = ([flag]: [string, unknown]) => moved.includes(flag);
  const { true: movedOptions = [], false: fieldOptions = [] } = Object.groupBy(
    Object.entries(flags.options),
    (each) => `${isMoved(each)}`,
  );
  const ownOptions = { ...Object.fromEntries(fieldOptions), ...view.options };
  const options: Options = {
    ...ownOptions,
    ...CALL_OPTIONS,
    ...(showsUrl && ADDRESS_OPTIONS),
  };
  const idType: ValueType<unknown> | undefined = identifier && ID_TYPES[identifier.name];
  /** The name of the identifier in the help. */
  const idName = idType?.placeholder ?? "ID";
  const positionals: Record<string, ValueType<unknown>> = idType ? { [idName]: idType } : {};
  for (const [flag, { type }] of movedOptions) positionals[flag.toUpperCase()] = type;
  const example = `petstore ${name}${idType ? " 3" : ""}`;
  const data = changesData(row) ? "changes" : "reads";
  const inputOf = (given: Given, values: Given, now: number): CallInput => {
    const typed = Object.fromEntries(moved.map((flag) => [flag, given[flag.toUpperCase()]]));
    // The ID of an operator may be a name, which the command looks up.
    return { id: given[idName] as CallInput["id"], ...flags.inputOf({ ...values, ...typed }, now) };
  };
  return defineCommand({
    data,
    examples: [example, `${example} --json`],
    summary,
    description: description.replaceAll("`", ""),
    ...view,
    positionals,
    options,
    async run(untyped, context) {
      // The options include those of the view, CALL_OPTIONS and, for its URL, those of the address.
      const values = untyped.values as AddressCommandLine["values"] & ValuesOf<O>;
      const commandLine = { ...untyped, values };
      const execution = { values, context, startedAt: context.clock.now(), url: undefined };
      const given = inputOf(untyped.positionals, values, execution.startedAt);
      const input = (await prepare?.(given, execution)) ?? given;
      if (!hasChange(row, input))
        throw new UsageError(
          `${name} needs ${alternatives(Object.keys(ownOptions).map((flag) => `--${flag}`))}`,
        );
      await using operations = await openOperations(commandLine, context, { data, flags });
      const url = showsUrl && clientUrl(commandLine, await operations.savedUrl());
      for await (const text of output(operations.call, input, { ...execution, url }))
        await context.print(values.json ? text : context.screen.printable(text));
      return undefined;
    },
  });
}

/** Values of a command line by their names. */
type Given = Readonly<Record<string, unknown>>;

/** Whether the input has one of the fields of which a change needs at least one. */
function hasChange({ method, body }: AdminOperation, input: CallInput): boolean {
  const fields = method === "PATCH" ? Object.keys(body?.optional ?? {}) : [];
  return fields.length === 0 || fields.some((name) => name in (input.body ?? {}));
}

/** Asks before what cannot be undone, unless --yes is given. */
export async function confirmed(
  question: string,
  { values, context }: { readonly values: { readonly yes: boolean }; readonly context: Context },
): Promise<void> {
  if (!values.yes && !(await context.confirm(question)))
    throw new Failure("not confirmed; nothing was changed");
}

type AddressCommandLine = CallCommandLine<typeof ADDRESS_OPTIONS>;

/**
 * The URL of the API for a new secret; undefined if it is not known. The variables of host and port do not override the
 * URL that the server saved: PETSTORE_PORT=0 does not say where it listens.
 */
function clientUrl(
  { values, source, flags }: AddressCommandLine,
  savedUrl: string | undefined,
): string | undefined {
  const isGiven = source("public-url") ?? flags["host"] ?? flags["port"];
  return (isGiven ? undefined : savedUrl) ?? expectedUrl(values);
}
