/** Whether a database can be used. Times are milliseconds. */
export type StateChange =
  { readonly state: "down"; readonly cause: unknown } | { readonly state: "up"; readonly afterMs: number };
