import type { AuditEntry } from "../admin-api.ts";
import { capitalized } from "../format.ts";
import { type Column, Table } from "./table.tsx";
import { LocalTime } from "./time.tsx";

type Values = NonNullable<AuditEntry["before"]>;

interface AuditListProps {
  readonly entries: readonly AuditEntry[];
  /** Without the column of the target, on the page of the target. */
  readonly isOfOneTarget?: boolean;
}

export function AuditList({ entries, isOfOneTarget = false }: AuditListProps) {
  const columns = isOfOneTarget ? COLUMNS.filter(({ heading }) => heading !== "Target") : COLUMNS;
  return <Table caption="Audit trail" columns={columns} rows={entries} keyOf={({ id }) => `${id}`} />;
}

const COLUMNS: readonly Column<AuditEntry>[] = [
  { heading: "When", cell: ({ at }) => <LocalTime at={at} /> },
  { heading: "Action", isLead: false, cell: ({ action }) => <code>{action}</code> },
  { heading: "Target", cell: ({ target }) => <Target target={target} /> },
  { heading: "Changes", cell: (entry) => <Changes {...entry} /> },
  { heading: "Who", cell: ({ actor }) => <Actor actor={actor} /> },
];

const PATHS = { key: "/keys", pet: "/pets", order: "/orders" } as const;

function Target({ target }: Pick<AuditEntry, "target">) {
  if (target === null) return <span class="muted none">–</span>;
  return (
    <a href={`${PATHS[target.kind]}/${target.id}`}>
      {target.kind} {String(target.id)}
    </a>
  );
}

function Actor({ actor: { kind, name } }: Pick<AuditEntry, "actor">) {
  return (
    <>
      {capitalized(kind)}{" "}
      {name !== null && (
        <span class="muted">
          <bdi>{name}</bdi>
        </span>
      )}
    </>
  );
}

function Changes({ before, after }: Pick<AuditEntry, "before" | "after">) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])];
  if (names.length === 0) return <span class="muted none">–</span>;
  return (
    <span class="changes">
      {names.map((name) => (
        <span key={name}>
          <span class="muted">{name}:</span> <Change name={name} before={before} after={after} />
        </span>
      ))}
    </span>
  );
}

interface ChangeProps {
  readonly name: string;
  readonly before: Values | null;
  readonly after: Values | null;
}

function Change({ name, before, after }: ChangeProps) {
  const old = before?.[name];
  const current = after?.[name];
  return (
    <>
      {old !== undefined && (
        <>
          <del class="before">
            <Value value={old} />
          </del>{" "}
        </>
      )}
      {current !== undefined && <Value value={current} />}
    </>
  );
}

const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/;

function Value({ value }: { readonly value: Values[string] }) {
  if (typeof value === "string" && TIME.test(value)) return <LocalTime at={value} />;
  return <bdi>{textOf(value)}</bdi>;
}

function textOf(value: Values[string] | undefined): string {
  if (value === null || value === undefined) return "none";
  if (typeof value === "object") return value.length === 0 ? "none" : value.join(", ");
  return typeof value === "number" ? value.toLocaleString("en") : String(value);
}
