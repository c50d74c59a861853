import { grouped } from "../../api/formatting.ts";
import type { Fleet } from "../admin-api.ts";
import { figure, latency, percent } from "../format.ts";
import { PageSection } from "./page.tsx";
import { type Column, DataTable } from "./tables.tsx";
import { Badge, NO_VALUE, Stat, TimeAgo } from "./values.tsx";

type FleetServer = Fleet["items"][number];

/** A server that has missed two heartbeats. */
const LATE_MS = 12_000;

/** The large numbers, of all servers together. */
export function FleetStats({ fleet: { items, total } }: { readonly fleet: Fleet }) {
  return (
    <>
      <Stat name="requests now" note={`on ${items.length} servers`}>
        {figure(total.requestsPerSecond)}
        <span class="unit">/s</span>
      </Stat>
      <Stat
        name="limited or banned"
        note={`${grouped(total.rejections)} of ${grouped(total.requests)} since the start`}
      >
        {percent(total.rejections, total.requests)}
      </Stat>
      <Stat name="p99 of 15 minutes" note={total.p50 === null ? "no requests" : `p50 ${latency(total.p50)}`}>
        {total.p99 === null ? "–" : latency(total.p99)}
      </Stat>
      <Stat name="server errors" note="since the start">
        {total.serverErrors > 0 ? <span class="tone-error">■ {grouped(total.serverErrors)}</span> : "0"}
      </Stat>
      <Stat name="connections now">{grouped(total.connections)}</Stat>
    </>
  );
}

/** A row for each server. */
export function FleetServers({ fleet: { items } }: { readonly fleet: Fleet }) {
  return (
    <PageSection title="Servers">
      <DataTable caption="Servers" columns={COLUMNS} rows={items} keyOf={({ id }) => id} />
    </PageSection>
  );
}

function ServerName({ name, adminUrl }: FleetServer) {
  if (adminUrl === null) return <bdi class="name">{name}</bdi>;
  return (
    <>
      <bdi class="name">{name}</bdi> <span class="muted small">{new URL(adminUrl).host}</span>
    </>
  );
}

function State({ seenAt }: FleetServer) {
  const isLate = Date.now() - Date.parse(seenAt) > LATE_MS;
  return isLate ? <Badge meaning="limited" text="not heard of" /> : <Badge meaning="ok" text="up" />;
}

const COLUMNS: readonly Column<FleetServer>[] = [
  { heading: "Server", isLead: true, cell: ServerName },
  { heading: "State", isAtEnd: true, cell: State },
  { heading: "Version", isWide: true, cell: ({ version }) => version },
  { heading: "Started", cell: ({ startedAt }) => <TimeAgo at={startedAt} /> },
  { heading: "Requests/s", isNumber: true, cell: ({ requestsPerSecond }) => figure(requestsPerSecond) },
  { heading: "Requests", isNumber: true, isWide: true, cell: ({ requests }) => grouped(requests) },
  { heading: "Rejected", isNumber: true, cell: ({ rejections }) => grouped(rejections) },
  {
    heading: "p50",
    isNumber: true,
    isWide: true,
    cell: ({ p50 }) => (p50 === null ? NO_VALUE : latency(p50)),
  },
  { heading: "p99", isNumber: true, cell: ({ p99 }) => (p99 === null ? NO_VALUE : latency(p99)) },
];
