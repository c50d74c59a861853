import { ACTOR_KINDS, AUDIT_ACTIONS } from "../../domain/audit.ts";
import { call } from "../admin-api.ts";
import { AuditList } from "../components/audit-list.tsx";
import { Filters, SelectFilter, TextFilter } from "../components/filters.tsx";
import { Empty, Loaded } from "../components/loading.tsx";
import { Pager } from "../components/table.tsx";
import { usePolled } from "../polling.ts";
import { usePlace } from "../router.ts";

/** Midnight of the given day in the time zone of the browser, some days later. */
function dayOf(text: string | undefined, daysLater: number): string | undefined {
  const [year, month, day] = (text ?? "").split("-").map(Number);
  if (year === undefined || month === undefined || day === undefined) return undefined;
  return new Date(year, month - 1, day + daysLater).toISOString();
}

export function Audit() {
  const { query } = usePlace();
  const audit = usePolled(`audit ${query}`, () => {
    const { action, actor, target, since, until, cursor } = Object.fromEntries(query);
    return call("listAudit", {
      query: { action, actor, target, since: dayOf(since, 0), until: dayOf(until, 1), cursor, limit: 50 },
    });
  });
  return (
    <section>
      <h1 tabIndex={-1}>Audit</h1>
      <Filters>
        <SelectFilter
          label="Action"
          name="action"
          options={AUDIT_ACTIONS.map((action) => [action, action] as const)}
        />
        <SelectFilter
          label="Who"
          name="actor"
          options={ACTOR_KINDS.map((actor) => [actor, actor] as const)}
        />
        <TextFilter label="Target" name="target" placeholder="key:7, pet:12, order:3" maxLength={30} />
        <TextFilter label="From" name="since" type="date" />
        <TextFilter label="To" name="until" type="date" />
      </Filters>
      <Loaded of={audit}>
        {({ items, nextCursor }) => (
          <>
            {items.length === 0 ? <NoEntries isFiltered={query.size > 0} /> : <AuditList entries={items} />}
            <Pager nextCursor={nextCursor} />
          </>
        )}
      </Loaded>
    </section>
  );
}

function NoEntries({ isFiltered }: { readonly isFiltered: boolean }) {
  return isFiltered ? (
    <Empty title="No change matches">
      <p>
        <a href="/audit">Clear the filters</a> to see all changes.
      </p>
    </Empty>
  ) : (
    <Empty title="Nothing was changed yet">
      <p>
        Every change of a key, pet or order, every ban and every sign-in appears here: who, when, and what.
      </p>
    </Empty>
  );
}
