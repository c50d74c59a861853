/* Rows that are loaded again and again, and stay where they are while the pointer or the focus is on them. */

import { useRef, useState } from "preact/hooks";

export interface Identified {
  readonly id: number | bigint;
}

export interface StillRowsOptions<Row> {
  readonly rows: readonly Row[];
  /** What the rows were loaded with: other parameters show other rows at once. */
  readonly loadedWith: string;
  /** Whether rows are only added, the newest first, and leave the list only because others come. */
  readonly isFeed: boolean;
}

export function useStillRows<Row extends Identified>({ rows, loadedWith, isFeed }: StillRowsOptions<Row>) {
  const [hold, setHold] = useState({ pointer: false, focus: false });
  const shown = useRef({ rows, loadedWith });
  const isHeld = (hold.pointer || hold.focus) && shown.current.loadedWith === loadedWith;
  const still = isHeld ? inPlace(shown.current.rows, rows, isFeed) : { rows, arrived: 0 };
  shown.current = { rows: still.rows, loadedWith };
  const set = (change: Partial<typeof hold>) => () => setHold((last) => ({ ...last, ...change }));
  return {
    ...still,
    release: set({ pointer: false, focus: false }),
    handlers: {
      onPointerEnter: set({ pointer: true }),
      onPointerLeave: set({ pointer: false }),
      onFocusIn: set({ focus: true }),
      onFocusOut: set({ focus: false }),
    },
  };
}

/** The rows in the order in which they are shown, with their latest values. What has `arrived` is not shown yet. */
export function inPlace<Row extends Identified>(
  shown: readonly Row[],
  latest: readonly Row[],
  isFeed: boolean,
): { readonly rows: readonly Row[]; readonly arrived: number } {
  const byId = new Map(latest.map((row) => [row.id, row]));
  const kept = shown.flatMap((row) => byId.get(row.id) ?? (isFeed ? row : []));
  const keptIds = new Set(kept.map(({ id }) => id));
  const others = latest.filter(({ id }) => !keptIds.has(id));
  return isFeed ? { rows: kept, arrived: others.length } : { rows: [...kept, ...others], arrived: 0 };
}
