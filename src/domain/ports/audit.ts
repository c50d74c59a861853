import type { Awaitable } from "../../runtime/awaitable.ts";
import type { AuditEntry, AuditQuery, NewAuditEntry } from "../audit.ts";
import type { Page } from "../pages.ts";

/** Who changed what. A change of a key, a pet or an order writes its entry in its own transaction. */
export interface AuditStore {
  /** Records what changes nothing else in the database, such as a sign-in. */
  recordAudit(entry: NewAuditEntry): Promise<void>;
  /**
   * Lists entries, newest first, or with `after` oldest first: a reader that continues after the last identifier that
   * it has read misses none.
   */
  listAudit(query: AuditQuery): Awaitable<Page<AuditEntry>>;
  /** Deletes some of the entries before a time, the oldest first; returns whether there may be more. */
  deleteAudit(before: number): Promise<boolean>;
}
