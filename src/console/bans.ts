import { formatTime } from "../text/formatting.ts";
import { type AuditItem, call } from "./admin-api.ts";
import type { Mark } from "./components/plot-data.ts";
import { usePolled } from "./polling.ts";

const NONE: readonly AuditItem[] = [];

/**
 * The latest 500 bans since a time in milliseconds, which is read whenever they are loaded, of all keys or of one.
 * Another `name` loads them at once.
 */
export function useBans(name: string, sinceOf: () => number, keyId?: number): readonly AuditItem[] {
  const target = keyId === undefined ? undefined : `key:${keyId}`;
  const { data } = usePolled(`bans ${name} ${target}`, () => {
    const query = { action: "key.banned", since: formatTime(sinceOf()), limit: 500, target } as const;
    return call("listAudit", { query });
  });
  return data?.items ?? NONE;
}

/** The time is in Unix seconds. */
export function banMark(time: number, text: string): Mark {
  return { time, label: "bans", tone: "error", symbol: "▼", text };
}
