import { ratioOf } from "../trials/harness/statistics.ts";
import { formatFigure } from "../trials/harness/table.ts";
import { figuresOf, type Results } from "./targets.ts";
import { type CandidateId, TITLES, type WorkloadId, workloadOf } from "./workloads.ts";

const SHOWN: readonly WorkloadId[] = ["list", "deep", "get", "mix", "create-32", "401", "429"];
const COLOURS: Partial<Record<CandidateId, string>> = {
  ours: "#0f766e",
  fastify: "#64748b",
  hono: "#f59e0b",
};
const BAR = 13;
const GAP = 18;
const LEFT = 190;
const RIGHT = 130;
const WIDTH = 900;
const TOP = 92;

type Line = ReturnType<typeof linesOf>[number];

export function chartOf(results: Results): string {
  const groups = SHOWN.map((workload) => ({ workload, lines: linesOf(results, workload) })).filter(
    ({ lines }) => lines.length > 0,
  );
  const longest = Math.max(1, ...groups.flatMap(({ lines }) => lines.map(({ ratio }) => ratio.median)));
  const scale = (WIDTH - LEFT - RIGHT) / longest;
  let y = TOP;
  const drawn = groups.map(({ workload, lines }) => {
    const bars = drawBars(lines, y, scale);
    const middle = y + (lines.length * BAR) / 2 + 3;
    y += lines.length * BAR + GAP;
    return `<text class="workload" x="16" y="${middle}">${workloadOf(workload).title}</text>\n${bars}`;
  });
  const height = y + 34;
  const bare = LEFT + scale;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title">
<title id="title">Throughput of Petstore and its peers as a share of the bare route's</title>
<style>
  text { font: 12px system-ui, sans-serif; fill: #334155 }
  .head { font-size: 17px; font-weight: 600 }
  .workload { font-weight: 600 }
  .faint { fill: #64748b; font-size: 11px }
  .bare { stroke: #334155; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) { text { fill: #e2e8f0 } .faint { fill: #94a3b8 } .bare { stroke: #e2e8f0 } }
</style>
<text class="head" x="16" y="30">Throughput, as a share of a bare Bun.serve route that sends the same bytes</text>
${legend(groups.flatMap(({ lines }) => lines.map(({ id }) => id)))}
<line class="bare" x1="${bare.toFixed(1)}" x2="${bare.toFixed(1)}" y1="${TOP - 10}" y2="${y - GAP + 6}"/>
<text class="faint" x="${(bare + 5).toFixed(1)}" y="${TOP - 4}">bare route</text>
${drawn.join("\n")}
<text class="faint" x="16" y="${height - 12}">${caption(results)}</text>
</svg>
`;
}

function linesOf({ cells }: Results, workload: WorkloadId) {
  const bare = figuresOf(cells, workload, "bare");
  if (bare === undefined) return [];
  const lines = (Object.keys(COLOURS) as CandidateId[]).flatMap((id) => {
    const own = figuresOf(cells, workload, id);
    return own === undefined ? [] : [{ id, ratio: ratioOf(own, bare) }];
  });
  return lines.toSorted((a, b) => b.ratio.median - a.ratio.median);
}

function drawBars(lines: readonly Line[], y: number, scale: number): string {
  const bars = lines.map(({ id, ratio }, i) => {
    const top = y + i * BAR;
    const length = Math.max(1, ratio.median * scale);
    const [from, to] = [LEFT + ratio.min * scale, LEFT + ratio.max * scale].map((x) => x.toFixed(1));
    return `<rect x="${LEFT}" y="${top}" width="${length.toFixed(1)}" height="${BAR - 2}" rx="2" fill="${COLOURS[id]}"><title>${TITLES[id]}: ${formatFigure(ratio.median)}</title></rect>
<path d="M${from} ${top + BAR / 2 - 1}H${to}" stroke="#0008" stroke-width="1"/>
<text class="faint" x="${(Math.max(LEFT + length, Number(to)) + 5).toFixed(1)}" y="${top + BAR - 3}">${formatFigure(ratio.median)}</text>`;
  });
  return bars.join("\n");
}

function legend(shown: readonly CandidateId[]): string {
  let x = 16;
  return (Object.keys(COLOURS) as CandidateId[])
    .filter((id) => shown.includes(id))
    .map((id) => {
      const name = id === "ours" ? "Petstore" : id.charAt(0).toUpperCase() + id.slice(1);
      const entry = `<rect x="${x}" y="48" width="11" height="11" rx="2" fill="${COLOURS[id]}"/><text x="${x + 16}" y="58">${name}</text>`;
      x += 34 + name.length * 7;
      return entry;
    })
    .join("\n");
}

function caption({ machine, versions, rounds, seconds, pinned, takenAt }: Results): string {
  const cores = pinned ? "server and load on a core each; " : "";
  return `Medians of ${rounds} rounds of ${seconds} s, lines from the lowest to the highest; ${cores}${machine.cpu}, Bun ${versions.Bun}; ${takenAt.slice(0, 10)}`;
}
