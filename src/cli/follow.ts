/* What `--follow` does: a list is printed, and then what comes, until the process is stopped. */

import { switchOption } from "../config/value-types.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { printable } from "../text/formatting.ts";
import type { Context } from "./command.ts";
import { json } from "./output.ts";

const FOLLOW_EVERY_MS = 1_000;

export function followOption(noun: string) {
  return { follow: switchOption(`Go on with new ${noun} until Ctrl-C`) } as const;
}

export const isFollowed = (values: object) => "follow" in values && values.follow === true;

export interface Followed<Item> {
  /** The items that are printed at first, the oldest first. */
  readonly first: readonly Item[];
  /** Called once a second. Reads what has come since. */
  readonly next: () => Promise<readonly Item[]>;
  /** An item in a line. Items come one after the other, so a table would have other widths each time. */
  readonly line: (item: Item) => string;
  /** Returns what to warn of after the items were printed. */
  readonly warnings?: () => readonly string[];
}

/** Prints items until the process is stopped. */
export async function follow<Item>(
  { first, next, line, warnings = () => [] }: Followed<Item>,
  { values, context }: { readonly values: { readonly json: boolean }; readonly context: Context },
): Promise<never> {
  const lineOf = (item: Item) => (values.json ? json(item, 0) : `${printable(line(item))}\n`);
  for (let fresh = first; ; fresh = await next()) {
    if (fresh.length > 0) await context.print(fresh.map(lineOf).join(""));
    for (const warning of warnings()) context.warn(warning);
    await scheduler.sleep(FOLLOW_EVERY_MS);
  }
}
