import type { Awaitable } from "../runtime/awaitable.ts";
import { expectedUrl } from "../config/listen-urls.ts";
import { ADDRESS_OPTIONS } from "../config/options.ts";
import type { Options, ValuesOf } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import { alternatives } from "../text/formatting.ts";
import { integerWithin, switchOption, type ValueType } from "../config/value-types.ts";
import type { CallInput } from "../operator/calls.ts";
import type { CommandOperationId } from "../operator/handlers/data-handlers.ts";
import { ADMIN_OPERATIONS, type AdminOperation, type ResponseOf } from "../operator/operations.ts";
import { changesData } from "../operator/operations/rows.ts";
import { type Command, type Context, defineCommand, Failure } from "./command.ts";
import { isFollowed } from "./follow.ts";
import { type FieldFlags, ID_TYPES, OperationFlags } from "./operation-flags.ts";
import {
  type CallOperation,
  type CallUnchecked,
  CALL_OPTIONS,
  type CallCommandLine,
  locationOf,
} from "./calls/call.ts";
import { firstItems, pagesOf } from "./calls/pages.ts";
import { openOperations } from "./calls/open-operations.ts";
import { json, JsonItems, type TableColumn, TableRows } from "./output.ts";

/** The option of a command that asks before it does what cannot be undone. */
export const YES_OPTION = {
  yes: switchOption("Do not ask at a terminal, for scripts"),
} as const;

/** One execution of a command. */
interface Execution<O extends Options> {
  readonly values: ValuesOf<O> & CallCommandLine["values"];
  readonly context: Context;
  readonly startedAt: number;
  /** URL of the API; undefined if it is not known. */
  readonly url: string | undefined;
}

/** A command that is a view of an operation: its flags, their help and their checks come from the table. */
interface OperationView<Id extends CommandOperationId, O extends Options, R> {
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
  const { json: jsonOf, text } = view;
  return commandOf<Id, O, R>({
    ...view,
    texts: (result, execution) => [
      execution.values.json ? json(jsonOf ? jsonOf(result) : result) : text(result, execution),
    ],
  });
}

/** An OperationView whose operation the type check does not know. */
type GenericView<Id extends CommandOperationId, O extends Options, R> = Omit<
  OperationView<Id, O, R>,
  "request" | "json" | "text"
> & {
  readonly request?: (call: CallUnchecked, input: CallInput, execution: Execution<O>) => Promise<R>;
  /** What is printed, part by part. */
  readonly texts: (result: R, execution: Execution<O>) => Iterable<string>;
};

function commandOf<Id extends CommandOperationId, O extends Options, R>(
  view: GenericView<Id, O, R>,
): Command {
  const { name, operation, positionals: moved = [], showsUrl } = view;
  const row: AdminOperation = ADMIN_OPERATIONS[operation];
  const { method, identifier, summary, description } = row;
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
  // A new database is empty, so a command with an identifier creates none.
  const data = !changesData(row) ? "reads" : identifier === undefined ? "creates" : "changes";
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
      const { positionals: given } = commandLine;
      const execution = { values, context, startedAt: context.clock.now(), url: undefined };
      const typed = Object.fromEntries(moved.map((flag) => [flag, given[flag.toUpperCase()]]));
      const input = {
        // The ID of an operator may be a name, which the command looks up.
        id: given[idName] as bigint | undefined,
        ...flags.inputOf({ ...values, ...typed }, execution.startedAt),
      };
      const prepared = (await view.prepare?.(input, execution)) ?? input;
      const changes = Object.keys(row.body?.optional ?? {});
      if (method === "PATCH" && changes.length > 0 && !changes.some((name) => name in (prepared.body ?? {})))
        throw new UsageError(
          `${name} needs ${alternatives(Object.keys(ownOptions).map((flag) => `--${flag}`))}`,
        );
      await using operations = await openOperations(commandLine, context, { data, flags });
      const { call } = operations;
      const url = showsUrl && clientUrl(commandLine, await operations.savedUrl());
      const running = { ...execution, url };
      const result = view.request
        ? await view.request(call, prepared, running)
        : // R is the response unless the view has a request of its own.
          ((await call(operation, prepared)) as R);
      for (const text of view.texts(result, running))
        await context.print(values.json ? text : context.screen.printable(text));
      const warning = view.warning?.(result, running);
      if (warning !== undefined) context.warn(warning);
      return undefined;
    },
  });
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

/** The option of a command that lists the newest or the first of many. */
export function limitOption(max: number, noun: string) {
  const type = integerWithin({ min: 1, max });
  return { limit: { type, default: 50, help: `Maximum number of ${noun}` } } as const;
}

type ListOperationId = "listKeys" | "listPlans" | "listOperators" | "listAudit" | "listPets" | "listOrders";
type ItemOf<Id extends ListOperationId> = ResponseOf<Id>["items"][number];

interface ItemsView<Id extends ListOperationId, O extends Options> extends Omit<
  OperationView<Id, O, never>,
  "request" | "json" | "text" | "warning" | "showsUrl"
> {
  /** What is listed, such as `pets`. */
  readonly noun: string;
  readonly columns: readonly TableColumn<ItemOf<Id>>[];
  /** What to do if there are none at all. */
  readonly ifNone?: string;
  readonly includes?: (item: ItemOf<Id>, execution: Execution<O>) => boolean;
  readonly itemJson?: (item: ItemOf<Id>) => unknown;
  /** The values of parameters that the flags do not set. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** What the text says below the table about items that are left out. */
  readonly hiddenText?: (page: ResponseOf<Id>, execution: Execution<O>) => string | undefined;
  /** How to see what follows the last item, if there is a limit. */
  readonly next?: (last: ItemOf<Id>) => string;
  /** Prints items and then new ones until the process is stopped, if `--follow` is given. */
  readonly follow?: (
    call: CallOperation,
    items: readonly ItemOf<Id>[],
    following: { readonly query: NonNullable<CallInput["query"]>; readonly execution: Execution<O> },
  ) => Promise<never>;
}

/** A command that prints the items of all pages of a list, up to --limit if it has one. */
export function listCommand<Id extends ListOperationId, O extends Options = Record<never, never>>(
  view: ItemsView<Id, O>,
): Command {
  const { operation, noun, columns, ifNone = "", includes, itemJson, next, follow, ...rest } = view;
  const { defaults, hiddenText } = view;
  type Item = ItemOf<Id>;
  interface Result {
    /** The rows of the table, or the JSON that is not printed yet. */
    readonly output: TableRows<Item> | JsonItems;
    readonly last: Item | undefined;
    readonly hasMore: boolean;
    readonly isFiltered: boolean;
    readonly hidden: string;
  }
  const none = ({ isFiltered, hidden }: Result, { values }: Execution<O>) =>
    `There are no ${isFiltered ? "such " : ""}${noun} in ${locationOf(values)}.${isFiltered ? "" : ifNone}\n${hidden}`;
  return commandOf<Id, O, Result>({
    ...rest,
    operation,
    fields: { limit: null, cursor: null, ...view.fields },
    async request(call, { query = {} }, execution) {
      const { values, context } = execution;
      const { limit = Infinity } = values as { readonly limit?: number };
      const { cursor, ...conditions } = query;
      let hidden: string | undefined;
      const read = async (page: object) => {
        const response = await call(operation, { query: { ...defaults, ...conditions, ...page } });
        hidden = hiddenText?.(response, execution);
        return response;
      };
      const start = typeof cursor === "string" ? cursor : undefined;
      if (follow && isFollowed(values))
        await follow(call, (await firstItems(limit, read)).items, { query, execution });
      // Only what is printed of each page is kept: a list can be larger than the memory.
      const output = values.json ? new JsonItems() : new TableRows(columns, context.screen);
      let last: Item | undefined;
      let hasMore = false;
      for await (const page of pagesOf({ limit, read, start })) {
        const items: readonly Item[] = page.items;
        const included = includes ? items.filter((item) => includes(item, execution)) : items;
        if (output instanceof TableRows) output.add(included);
        else await context.print(output.textOf(itemJson ? included.map(itemJson) : included));
        last = items.at(-1) ?? last;
        ({ hasMore } = page);
      }
      const isFiltered = hidden !== undefined || Object.keys(query).length > 0;
      return { output, last, hasMore, isFiltered, hidden: hidden === undefined ? "" : `${hidden}\n` };
    },
    *texts(result, execution) {
      const { output, hidden } = result;
      if (output instanceof JsonItems) return yield output.end();
      if (output.isEmpty) return yield none(result, execution);
      yield* output.texts();
      yield hidden;
    },
    warning: ({ last, hasMore }) => {
      return hasMore && last !== undefined ? `more ${noun} follow; ${next?.(last)}` : undefined;
    },
  });
}
