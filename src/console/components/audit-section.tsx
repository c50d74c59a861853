import { call } from "../admin-api.ts";
import { usePolled } from "../polling.ts";
import { AuditList } from "./audit-list.tsx";
import { Loaded } from "./loading.tsx";

/** The latest changes of one key, pet or order. */
export function AuditSection({ target }: { readonly target: string }) {
  const audit = usePolled(`audit ${target}`, () => call("listAudit", { query: { target, limit: 10 } }));
  return (
    <section aria-labelledby="audit">
      <h2 id="audit">Audit trail</h2>
      <Loaded of={audit}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 ? (
              <p class="muted">Nobody has changed it.</p>
            ) : (
              <AuditList entries={items} isOfOneTarget />
            )}
            {nextCursor !== null && <a href={`/audit?target=${encodeURIComponent(target)}`}>All changes</a>}
          </>
        )}
      </Loaded>
    </section>
  );
}
