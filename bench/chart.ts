import { ratioOf } from "../trials/harness/statistics.ts";
import { formatFigure } from "../trials/harness/table.ts";
import { withFigureColours } from "../trials/harness/figure-colours.ts";
import { figuresOf, type Results } from "./targets.ts";
import { type CandidateId, type WorkloadId, workloadOf } from "./workloads.ts";

const SHOWN: readonly WorkloadId[] = ["list", "deep", "get", "mix", "create-32", "401", "429"];
const NAMES = { ours: "Petstore", fastify: "Fastify", hono: "Hono" } as const satisfies Partial<
  Record<CandidateId, string>
>;
const SERVERS = ["ours", "fastify", "hono"] as const satisfies readonly (keyof typeof NAMES)[];

/** On a phone, the text of a figure of this width can be read. */
const WIDTH = 440;
const MARGIN = 16;
/** The room for the name of a server after the longest bar. */
const NAME_WIDTH = 100;
const TOP = 92;
const TITLE = 22;
const BAR = 16;
const GAP = 14;
const CAPTION_LINE = 18;

type Line = ReturnType<typeof linesOf>[number];

export function chartOf(results: Results): string {
  const groups = SHOWN.map((workload) => ({ workload, lines: linesOf(results, workload) })).filter(
    ({ lines }) => lines.length > 0,
  );
  const longest = Math.max(1, ...groups.flatMap(({ lines }) => lines.map(({ ratio }) => ratio.max)));
  const scale = (WIDTH - 2 * MARGIN - NAME_WIDTH) / longest;
  let y = TOP;
  const drawn = groups.map(({ workload, lines }) => {
    const bars = drawBars(lines, y + TITLE, scale);
    const title = `<text x="${MARGIN}" y="${y + 14}" font-weight="600">${workloadOf(workload).title}</text>`;
    y += TITLE + lines.length * BAR + GAP;
    return `${title}\n${bars}`;
  });
  const captions = captionOf(results).map(
    (line, i) => `<text x="${MARGIN}" y="${y + 16 + i * CAPTION_LINE}">${line}</text>`,
  );
  const height = y + 16 + captions.length * CAPTION_LINE;
  return withFigureColours(`<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13" fill="var(--text)">
<title id="title">Throughput of Petstore and its peers as a share of the bare route's</title>
<rect width="100%" height="100%" rx="8" fill="var(--background)"/>
<text x="${MARGIN}" y="32" font-size="15" font-weight="600">Throughput as a share of the bare route’s</text>
${axis(longest, scale, y - GAP)}
<g paint-order="stroke" stroke="var(--background)" stroke-width="4">
${drawn.join("\n")}
</g>
<g font-size="12" fill="var(--text-muted)">
${captions.join("\n")}
</g>
</svg>
`);
}

function linesOf({ cells }: Results, workload: WorkloadId) {
  const bare = figuresOf(cells, workload, "bare");
  if (bare === undefined) return [];
  const lines = SERVERS.flatMap((id) => {
    const own = figuresOf(cells, workload, id);
    return own === undefined ? [] : [{ id, ratio: ratioOf(own, bare) }];
  });
  return lines.toSorted((a, b) => b.ratio.median - a.ratio.median);
}

/** A line at every half, and a dashed one at the bare route. */
function axis(longest: number, scale: number, bottom: number): string {
  const step = longest > 3 ? 1 : 0.5;
  const lines = Array.from({ length: Math.floor(longest / step) + 1 }, (_, i) => {
    const x = (MARGIN + i * step * scale).toFixed(1);
    const isBare = i * step === 1;
    const stroke = isBare
      ? 'stroke="var(--control-line)" stroke-dasharray="4 3"'
      : 'stroke="var(--hairline)"';
    const anchor = i === 0 ? "start" : "middle";
    const text = isBare ? "1 = bare route" : String(i * step);
    return `<line x1="${x}" x2="${x}" y1="${TOP - 20}" y2="${bottom}" ${stroke}/>
<text x="${x}" y="${TOP - 28}" text-anchor="${anchor}" font-size="12" fill="var(--text-muted)">${text}</text>`;
  });
  return lines.join("\n");
}

/** A bar is the median, the line on it goes from the lowest to the highest figure. */
function drawBars(lines: readonly Line[], y: number, scale: number): string {
  const bars = lines.map(({ id, ratio }, i) => {
    const top = y + i * BAR;
    const length = Math.max(1, ratio.median * scale);
    const [from, to] = [ratio.min, ratio.max].map((value) => (MARGIN + value * scale).toFixed(1));
    const range = `d="M${from} ${top + 6}H${to}"`;
    const label = (Math.max(MARGIN + length, Number(to)) + 6).toFixed(1);
    return `<rect x="${MARGIN}" y="${top}" width="${length.toFixed(1)}" height="12" rx="2" stroke="none" fill="var(${id === "ours" ? "--accent" : "--control-line"})"/>
<path ${range} stroke-width="3"/><path ${range} stroke="var(--text)" stroke-width="1"/>
<text x="${label}" y="${top + 11}"><tspan font-weight="600">${formatFigure(ratio.median)}</tspan> ${NAMES[id]}</text>`;
  });
  return bars.join("\n");
}

function captionOf({ machine, versions, rounds, seconds, pinned, takenAt }: Results): string[] {
  const cores = pinned ? "Server and load on a core each; " : "";
  return [
    `Medians of ${rounds} rounds of ${seconds} s; lines from lowest to highest`,
    `${cores}${takenAt.slice(0, 10)}`,
    `${machine.cpu}, Bun ${versions.Bun}`,
  ];
}
