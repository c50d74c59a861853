import { CONTESTANTS, type Contestant } from "./contestants.ts";
import { digits } from "./format.ts";
import { type Results, throughputOf } from "./results.ts";
import { ratioOf, type Spread } from "./statistics.ts";
import { workOf, type WorkId } from "./work.ts";

const SHOWN: readonly WorkId[] = ["list", "deep", "get", "mix", "create-32", "401", "429"];
const COLOURS: Partial<Record<Contestant["id"], string>> = {
  ours: "#0f766e",
  elysia: "#a78bfa",
  hono: "#f59e0b",
  fastify: "#64748b",
  express: "#94a3b8",
  prism: "#cbd5e1",
};
const BAR = 13;
const GAP = 18;
const LEFT = 190;
const RIGHT = 130;
const WIDTH = 900;
const TOP = 92;

interface Line {
  readonly contestant: Contestant;
  readonly ratio: Spread;
}

/** Throughput as a share of the bare route's, work by work. Readable on light and dark pages alike. */
export function chartOf(results: Results): string {
  const groups = SHOWN.map((work) => ({ work, lines: linesOf(results, work) })).filter(
    ({ lines }) => lines.length > 0,
  );
  const longest = Math.max(1, ...groups.flatMap(({ lines }) => lines.map(({ ratio }) => ratio.median)));
  const scale = (WIDTH - LEFT - RIGHT) / longest;
  let y = TOP;
  const drawn = groups.map(({ work, lines }) => {
    const group = drawGroup({ work, lines, y, scale });
    y += lines.length * BAR + GAP;
    return group;
  });
  const height = y + 34;
  const limit = LEFT + scale;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title">
<title id="title">Throughput of Petstore and its peers as a share of the bare route's</title>
<style>
  text { font: 12px system-ui, sans-serif; fill: #334155 }
  .head { font-size: 17px; font-weight: 600 }
  .work { font-weight: 600 }
  .faint { fill: #64748b; font-size: 11px }
  .limit { stroke: #334155; stroke-dasharray: 4 3 }
  @media (prefers-color-scheme: dark) { text { fill: #e2e8f0 } .faint { fill: #94a3b8 } .limit { stroke: #e2e8f0 } }
</style>
<text class="head" x="16" y="30">Throughput, as a share of a bare Bun.serve route that answers the same bytes</text>
${legend(groups.flatMap(({ lines }) => lines.map(({ contestant }) => contestant)))}
<line class="limit" x1="${limit.toFixed(1)}" x2="${limit.toFixed(1)}" y1="${TOP - 10}" y2="${y - GAP + 6}"/>
<text class="faint" x="${(limit + 5).toFixed(1)}" y="${TOP - 4}">bare route</text>
${drawn.join("\n")}
<text class="faint" x="16" y="${height - 12}">${caption(results)}</text>
</svg>
`;
}

function linesOf({ cells }: Results, work: WorkId): Line[] {
  const bare = throughputOf(cells, work, "bare");
  if (bare === undefined) return [];
  return CONTESTANTS.flatMap((contestant) => {
    const theirs =
      COLOURS[contestant.id] === undefined ? undefined : throughputOf(cells, work, contestant.id);
    return theirs === undefined ? [] : [{ contestant, ratio: ratioOf(theirs, bare) }];
  }).toSorted((a, b) => b.ratio.median - a.ratio.median);
}

function drawGroup({
  work,
  lines,
  y,
  scale,
}: {
  work: WorkId;
  lines: readonly Line[];
  y: number;
  scale: number;
}) {
  const bars = lines.map(({ contestant, ratio }, i) => {
    const top = y + i * BAR;
    const length = Math.max(1, ratio.median * scale);
    const [from, to] = [LEFT + ratio.min * scale, LEFT + ratio.max * scale].map((x) => x.toFixed(1));
    return `<rect x="${LEFT}" y="${top}" width="${length.toFixed(1)}" height="${BAR - 2}" rx="2" fill="${COLOURS[contestant.id]}"><title>${contestant.title}: ${digits(ratio.median)}</title></rect>
<path d="M${from} ${top + BAR / 2 - 1}H${to}" stroke="#0008" stroke-width="1"/>
<text class="faint" x="${(Math.max(LEFT + length, Number(to)) + 5).toFixed(1)}" y="${top + BAR - 3}">${digits(ratio.median)}</text>`;
  });
  return `<text class="work" x="16" y="${y + (lines.length * BAR) / 2 + 3}">${workOf(work).title}</text>\n${bars.join("\n")}`;
}

function legend(contestants: readonly Contestant[]): string {
  let x = 16;
  return CONTESTANTS.filter((candidate) => contestants.includes(candidate))
    .map(({ id }) => {
      const name = id === "ours" ? "Petstore" : id.charAt(0).toUpperCase() + id.slice(1);
      const entry = `<rect x="${x}" y="48" width="11" height="11" rx="2" fill="${COLOURS[id]}"/><text x="${x + 16}" y="58">${name}</text>`;
      x += 34 + name.length * 7;
      return entry;
    })
    .join("\n");
}

function caption({ machine, versions, rounds, seconds, pinned, takenAt }: Results): string {
  const cores = pinned ? "one core each for server and load; " : "";
  return `Medians of ${rounds} rounds of ${seconds} s, lines from the lowest to the highest; ${cores}${machine.cpu}, Bun ${versions.Bun}; ${takenAt.slice(0, 10)}`;
}
