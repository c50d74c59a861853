import { grouped } from "../../api/formatting.ts";
import type { Fleet } from "../admin-api.ts";
import { figure, latency, percent } from "../format.ts";
import { PageSection } from "./page.tsx";
import { type Column, DataTable } from "./tables.tsx";
import { Badge, type Figure, NO_VALUE, TimeAgo } from "./values.tsx";

type FleetServer = Fleet["items"][number];

/** A server that has missed two heartbeats. */
const LATE_MS = 12_000;

/** The large numbers, of all servers together. */
export function fleetFigures({ items, total }: Fleet): Readonly<Record<string, Figure>> {
  const rejections = `${grouped(total.rejections)} of ${grouped(total.requests)}`;
  return {
    "requests now": [perSecond(total.requestsPerSecond), `on ${items.length} servers`],
    "limited or banned": [percent(total.rejections, total.requests), `${rejections} since the start`],
    "p99 of 15 minutes": percentiles(total),
    "server errors": [errorCount(total.serverErrors), "since the start"],
    "connections now": [grouped(total.connections)],
  };
}

export function perSecond(rate: number | undefined) {
  return (
    <>
      {rate === undefined ? "–" : figure(rate)}
      <span class="unit">/s</span>
    </>
  );
}

export function percentiles({ p50, p99 }: Pick<Fleet["total"], "p50" | "p99">): Figure {
  return [p99 === null ? "–" : latency(p99), p50 === null ? "no requests" : `p50 ${latency(p50)}`];
}

export function errorCount(count: number) {
  return count > 0 ? <span class="tone-error">■ {grouped(count)}</span> : "0";
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
