import type { Awaitable } from "../../runtime/awaitable.ts";
import type { AuditEntry, AuditFilters, AuditQuery, NewAuditEntry } from "../audit.ts";
import type { Page } from "../pages.ts";

/** Who changed what. A change of a key, a pet or an order writes its entry in its own transaction. */
export interface AuditStore {
  /** Records what changes nothing else in the database, such as a sign-in. */
  recordAudit(entry: NewAuditEntry): Promise<void>;
  /**
   * Records an entry unless the filters find one, also one whose transaction is still waiting for its commit. So a call
   * without a response can be repeated. Returns whether this call has recorded the entry.
   */
  recordAuditUnless(isFound: AuditFilters, entry: NewAuditEntry): Promise<boolean>;
  /**
   * Lists entries, newest first, or with `after` oldest first: a reader that continues after the last identifier that
   * it has read misses none.
   */
  listAudit(query: AuditQuery): Awaitable<Page<AuditEntry>>;
  /** Deletes some of the entries before a time, the oldest first; returns whether there may be more. */
  deleteAudit(before: number): Promise<boolean>;
}
