import { median, ratioOf, type Spread } from "../trials/harness/statistics.ts";
import { formatCount, formatFigure, type Table, tableOf } from "../trials/harness/table.ts";

export interface DiskSample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export type DiskLoad = "list" | "health" | "create" | "mix";

/** A load on a server whose syncs take `delayMs` longer, beside connections that write. */
export interface DiskCell {
  /** `other` is the release of `--against`. */
  readonly release: "this" | "other";
  readonly delayMs: number;
  readonly load: DiskLoad;
  readonly connections: number;
  readonly writers: number;
  readonly samples: readonly DiskSample[];
}

export interface DiskResults {
  /** The reason why nothing was measured. */
  readonly skipped?: string;
  readonly cells: readonly DiskCell[];
}

/** How much longer a sync takes. */
export const DELAYS_MS = [0, 2, 5, 10];
const WRITE_TIME_SHARE = 1.5;

const figures = ({ samples }: DiskCell, figure: keyof DiskSample) => samples.map((each) => each[figure]);
const ofThis = ({ cells }: DiskResults, load: DiskLoad, connections?: number) =>
  cells.filter(
    (cell) =>
      cell.release === "this" && cell.load === load && (connections ?? cell.connections) === cell.connections,
  );

/** The worst ratio of a figure of lists beside writers to the one without. */
export function besideWriters(figure: keyof DiskSample, connections: number) {
  return (results: DiskResults): Spread | undefined => {
    const lists = ofThis(results, "list", connections);
    const ratios = lists.flatMap((cell) => {
      const alone = lists.find(({ delayMs, writers }) => delayMs === cell.delayMs && writers === 0);
      return cell.writers > 0 && alone ? [ratioOf(figures(cell, figure), figures(alone, figure))] : [];
    });
    const ascending = ratios.toSorted((a, b) => a.median - b.median);
    return figure === "perSecond" ? ascending[0] : ascending.at(-1);
  };
}

/** The least ratio of creates to one of each connection in 1.5 times the time of a sync and a millisecond. */
export function createsPerSync(results: DiskResults): Spread | undefined {
  const slow = ofThis(results, "create").filter(({ delayMs }) => delayMs > 0);
  const ratios = slow.map((cell) => {
    const expected = (cell.connections * 1_000) / (WRITE_TIME_SHARE * (cell.delayMs + 1));
    return ratioOf(
      figures(cell, "perSecond"),
      cell.samples.map(() => expected),
    );
  });
  return ratios.toSorted((a, b) => a.median - b.median)[0];
}

const TITLES: Readonly<Record<DiskLoad, string>> = {
  list: "list",
  health: "/healthz",
  create: "create",
  mix: "90 list, 10 create",
};

/** A table for each release, with a column for each time of a sync. */
export function diskTables({ skipped, cells }: DiskResults = { cells: [] }): Table[] {
  const title = "Slow disks: by how much longer each sync takes";
  if (skipped !== undefined) {
    const skippedTable = tableOf(title, [skipped], { figures: () => "skipped", reason: (reason) => reason });
    return [skippedTable];
  }
  return (["this", "other"] as const).map((release) => {
    const own = cells.filter((cell) => cell.release === release);
    const rows = own.filter(({ delayMs }) => delayMs === DELAYS_MS[0]);
    const columns = DELAYS_MS.map((delayMs) => {
      const at = ({ load, connections, writers }: DiskCell) => {
        const cell = own.find(
          (each) =>
            each.delayMs === delayMs &&
            each.load === load &&
            each.connections === connections &&
            each.writers === writers,
        );
        if (cell === undefined) return "–";
        const of = (figure: keyof DiskSample) => median(figures(cell, figure));
        return connections === 1 && load !== "create"
          ? `${formatFigure(of("p50Ms"))} / ${formatFigure(of("p99Ms"))} ms`
          : `${formatCount(of("perSecond"))}/s`;
      };
      return [`+ ${delayMs} ms`, at] as const;
    });
    const name = release === "this" ? title : `${title} (the other release)`;
    const { header, rows: lines } = tableOf(name, rows, {
      load: ({ load, connections }) =>
        `${TITLES[load]}, ${connections} ${connections === 1 ? "connection" : "connections"}`,
      "beside writers": ({ writers }) => String(writers),
      ...Object.fromEntries(columns),
    });
    const note = "p50 / p99 of a lone client, requests a second of several and of writes.";
    return { title: name, header, rows: lines, note };
  });
}
