import { type Bar, formatCount, formatFigure, type Table, tableOf } from "../../trials/harness/table.ts";
import type { DatabaseName, Scale } from "./rows.ts";

/** What a request or a command costs. */
export interface Cost {
  /** The processor time of the server and the database, or of the command, in ms: the least of the calls. */
  readonly cpuMs: number;
  /** Pages that SQLite reads from files in the first call, or blocks that PostgreSQL reads; NaN for a command. */
  readonly blocks: number;
  readonly bytes: number;
  /** The longest that the second client waited, in ms: the median of the calls. */
  readonly waitMs: number;
  /** How long it waited while another command ran for as long, which needs no data. */
  readonly controlMs?: number;
  /** The memory of a command, in MB. */
  readonly memoryMb?: number;
  /** Why it has no figures. */
  readonly failure?: string;
}

/** The figures of one request or command, by scale. */
export interface GrowthRow {
  readonly side: "client" | "operator" | "command";
  readonly operation: string;
  readonly name: string;
  readonly costs: ReadonlyMap<Scale, Cost>;
}

export interface GrowthResults {
  readonly database: DatabaseName;
  readonly scales: readonly Scale[];
  readonly rows: readonly GrowthRow[];
  readonly controls: ReadonlyMap<Scale, number>;
}

/** What the second client waits during a command that needs no data, as often, or without anything else to do. */
const controlOf = ({ controls }: GrowthResults, { controlMs }: Cost, scale: Scale) =>
  controlMs ?? controls.get(scale) ?? NaN;

/** How many times the processor time of a client's request may grow, whatever the data. */
const MOST_GROWTH = 2;
/** What a measurement of processor time is uncertain by, in ms: the server polls and collects garbage meanwhile. */
const UNCERTAIN_MS = { client: 0.5, operator: 2, command: 300 } as const;
/** How much longer the second client may wait, in ms. */
const MOST_WAIT_MS = 10;
/** The most memory of a command, in MB. */
const MOST_MEMORY_MB = 250;
/** What lists of everything may take, however many keys there are: up to 100,000, of which 10,000 were used. */
const MOST_OF: Readonly<Record<string, { readonly cpuMs: number; readonly memoryMb: number }>> = {
  "keys list": { cpuMs: 8_000, memoryMb: 200 },
  usage: { cpuMs: 5_000, memoryMb: 200 },
};
/** An operator's request or a command may take as many times longer as there are more rows, and a little more. */
const PROPORTIONAL = 1.5;

/** The bounds of a row: what it may cost with more data, and how long others may wait meanwhile. */
export function growthBars(results: GrowthResults): readonly Bar[] {
  const { scales, rows } = results;
  return rows.flatMap(({ side, operation, name, costs }) =>
    scales.flatMap((scale): readonly Bar[] => {
      const [first = scale] = scales;
      const [cost, base] = [costs.get(scale), costs.get(first)];
      if (cost === undefined || base === undefined) return [];
      const what = `${scale}×, ${side}, ${operation}${name === "" ? "" : ` (${name})`}`;
      if (cost.failure !== undefined) return [{ name: `${what}: ${cost.failure}`, value: NaN, most: 0 }];
      const growth = side === "client" ? MOST_GROWTH : PROPORTIONAL * (scale / first);
      const most = side === "command" ? MOST_OF[operation] : undefined;
      const grown = growth * base.cpuMs + UNCERTAIN_MS[side];
      return [
        { name: `${what}, CPU ms`, value: cost.cpuMs, most: Math.min(grown, most?.cpuMs ?? Infinity) },
        {
          name: `${what}, wait of another client, ms`,
          value: cost.waitMs,
          most: controlOf(results, cost, scale) + MOST_WAIT_MS,
        },
        { name: `${what}, memory MB`, value: cost.memoryMb ?? 0, most: most?.memoryMb ?? MOST_MEMORY_MB },
      ];
    }),
  );
}

const TITLES = {
  client: "Requests of clients",
  operator: "Requests of operators",
  command: "Commands",
} as const;

/** A table of the clients', the operators' requests or of the commands: a row for the worst of each operation. */
export function growthTable(results: GrowthResults, side: GrowthRow["side"], about = ""): Table {
  const { database, scales } = results;
  const groups = Map.groupBy(
    results.rows.filter((row) => row.side === side),
    ({ operation }) => operation,
  );
  const last = scales.at(-1) ?? 1;
  const costAt = (row: GrowthRow | undefined, scale: Scale) => row?.costs.get(scale);
  const worstOf = (rows: readonly GrowthRow[]) =>
    rows.toSorted((a, b) => (costAt(b, last)?.cpuMs ?? 0) - (costAt(a, last)?.cpuMs ?? 0))[0];
  const figure = (value: number | undefined, format = formatFigure) =>
    value === undefined || Number.isNaN(value) ? "–" : format(value);
  type Group = [string, readonly GrowthRow[]];
  const perScale = (title: string, cell: (group: Group, scale: Scale) => string) =>
    Object.fromEntries(
      scales.map((scale) => [`${title} ${scale}×`, (group: Group) => cell(group, scale)] as const),
    );
  const columns = {
    operation: ([operation]: Group) => operation,
    "most CPU with": ([, rows]: Group) => worstOf(rows)?.name || "–",
    ...perScale("CPU ms", ([, rows], scale) => figure(costAt(worstOf(rows), scale)?.cpuMs)),
    ...(side === "command"
      ? { MB: ([, rows]: Group) => figure(costAt(worstOf(rows), last)?.memoryMb, formatCount) }
      : {
          ...perScale(database === "sqlite" ? "pages" : "blocks", ([, rows], scale) =>
            figure(costAt(worstOf(rows), scale)?.blocks, formatCount),
          ),
          bytes: ([, rows]: Group) => figure(costAt(worstOf(rows), last)?.bytes, formatCount),
        }),
    ...perScale("wait ms", ([, rows], scale) =>
      figure(Math.max(...rows.map((row) => costAt(row, scale)?.waitMs ?? NaN))),
    ),
    ...(side === "command" &&
      perScale("control ms", ([, rows], scale) => figure(costAt(rows[0], scale)?.controlMs))),
  };
  const name = database === "sqlite" ? "SQLite" : "PostgreSQL";
  const control = scales.map((scale) => formatFigure(results.controls.get(scale) ?? NaN)).join(", ");
  const note =
    side === "command"
      ? `${about} The wait is the longest of another client; the control is that during a command that needs no data, run for as long.`
      : `${about} The longest wait of another client is that of all requests of the operation; without them it waits ${control} ms.`;
  return { ...tableOf(`${TITLES[side]}, ${name}`, [...groups], columns), note: note.trim() };
}
