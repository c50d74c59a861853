import type { Options } from "../config/parse-options.ts";
import { integerWithin } from "../config/value-types.ts";
import type { CallInput } from "../operator/calls.ts";
import type { ResponseOf } from "../operator/operations.ts";
import { type CallOperation, locationOf } from "./calls/call.ts";
import { firstItems, hasMoreAfter, pagesOf } from "./calls/pages.ts";
import type { Command } from "./command.ts";
import { isFollowed } from "./follow.ts";
import { commandOf, type Execution, type OperationView } from "./operation-command.ts";
import { JsonItems, type TableColumn, TableRows } from "./output.ts";

/** The option of a command that lists the newest or the first of many. */
export function limitOption(max: number, noun: string) {
  const type = integerWithin({ min: 1, max });
  return { limit: { type, default: 50, help: `Maximum number of ${noun}` } } as const;
}

const limitOf = (values: object) =>
  "limit" in values && typeof values.limit === "number" ? values.limit : Infinity;

type ListOperationId = "listKeys" | "listPlans" | "listOperators" | "listAudit" | "listPets" | "listOrders";
type ItemOf<Id extends ListOperationId> = ResponseOf<Id>["items"][number];

interface ListView<Id extends ListOperationId, O extends Options> extends Omit<
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
  view: ListView<Id, O>,
): Command {
  const { operation, noun, columns, ifNone = "", includes, itemJson, next, follow, ...rest } = view;
  const { defaults, hiddenText } = view;
  return commandOf<Id, O>({
    ...rest,
    operation,
    fields: { limit: null, cursor: null, ...view.fields },
    async *output(call, { query = {} }, execution) {
      const { values, context } = execution;
      const { cursor, ...conditions } = query;
      const limit = limitOf(values);
      const start = typeof cursor === "string" ? cursor : undefined;
      const read = (page: object) => call(operation, { query: { ...defaults, ...conditions, ...page } });
      if (follow && isFollowed(values))
        await follow(call, await firstItems(limit, read), { query, execution });

      // Only what is printed of each page is kept: a list can be larger than the memory.
      const array = new JsonItems();
      const table = new TableRows(columns, context.screen);
      let lastPage: ResponseOf<Id> | undefined;
      for await (const page of pagesOf({ limit, read, start })) {
        const items: readonly ItemOf<Id>[] = page.items;
        const included = includes ? items.filter((item) => includes(item, execution)) : items;
        if (values.json) yield array.textOf(itemJson ? included.map(itemJson) : included);
        else table.add(included);
        lastPage = page;
      }
      const hidden = lastPage && hiddenText?.(lastPage, execution);
      const isFiltered = hidden !== undefined || Object.keys(query).length > 0;
      const place = locationOf(values);
      if (values.json) yield array.end();
      else if (!table.isEmpty) yield* table.texts();
      else
        yield isFiltered
          ? `There are no such ${noun} in ${place}.\n`
          : `There are no ${noun} in ${place}.${ifNone}\n`;
      if (!values.json && hidden !== undefined) yield `${hidden}\n`;

      const last: ItemOf<Id> | undefined = lastPage?.items.at(-1);
      if (next && last !== undefined && lastPage && hasMoreAfter(lastPage))
        context.warn(`more ${noun} follow; ${next(last)}`);
    },
  });
}
