/*
 * Draws docs/rate-limits.svg: `bun docs/rate-limit-figure.ts`. It shows the responses of a real server over HTTP to two
 * clients on Free keys. Only the server's clock is simulated, so that eight minutes take a second.
 */

import { writeFileSync } from "node:fs";
import { startApp } from "../src/app.ts";
import { configOf } from "../src/config/config.ts";
import { SETTINGS } from "../src/config/options.ts";
import { parseOptions } from "../src/config/parse-options.ts";
import { DEFAULT_PLANS } from "../src/domain/plans.ts";
import { generateSecret, toNewSecret } from "../src/domain/secrets.ts";
import { silentLog } from "../src/observe/log.ts";
import { shortDuration } from "../src/text/durations.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { withFigureColours } from "../trials/harness/figure-colours.ts";

interface Observation {
  readonly second: number;
  readonly outcome: "200" | "rate_limited" | "key_banned";
  readonly remaining: number;
  readonly retryAfter: number;
}

const LENGTH_S = 480;
const EVERY_S = 0.5;

async function observe(): Promise<{ waiting: Observation[]; persistent: Observation[] }> {
  const started = Date.parse("2026-11-15T12:00:00Z");
  let now = started;
  const clock = { now: () => now, steadyNow: () => now, stepMs: 0 };
  const flags = {
    data: [temporaryDirectory("figure")],
    port: ["0"],
    "admin-address": ["off"],
    "max-connections-per-address": ["0"],
  };
  const app = await startApp(configOf(parseOptions(SETTINGS, flags, {})), { clock, log: silentLog });

  async function newClient(): Promise<() => Promise<Observation>> {
    const secret = generateSecret("production");
    const newKey = { name: "client", plan: "free", createdAt: now } as const;
    await app.keys.createKey(newKey, toNewSecret(secret), { actor: { kind: "server" }, at: now });
    return async () => {
      const headers = { Authorization: `Bearer ${secret}` };
      // Each on a new connection: one that gets rejections only is slowed.
      const response = await fetch(`${app.url}/pets`, { headers, keepalive: false });
      const body: unknown = await response.json();
      const code = response.ok ? "200" : (body as { code: Observation["outcome"] }).code;
      return {
        second: (now - started) / 1000,
        outcome: code,
        remaining: Number(response.headers.get("x-ratelimit-remaining")),
        retryAfter: Number(response.headers.get("retry-after")),
      };
    };
  }

  const sendWaiting = await newClient();
  const sendPersistent = await newClient();
  const waiting: Observation[] = [];
  const persistent: Observation[] = [];
  let resumeAt = 0;
  for (let second = 0; second < LENGTH_S; second += EVERY_S) {
    now = started + second * 1000;
    persistent.push(await sendPersistent());
    if (second < resumeAt) continue;
    const observation = await sendWaiting();
    waiting.push(observation);
    resumeAt = second + observation.retryAfter;
  }
  await app.close();
  return { waiting, persistent };
}

/** Positions across are shares of the width, so that a page can stretch the figure while its text keeps its size. */
const WIDTH = 480;
const PLOT = { top: 92, height: 96 };
const CHART_HEIGHT = 252;
const across = (second: number) => `${Number(((second / LENGTH_S) * 100).toFixed(2))}%`;
const MINUTES = Array.from({ length: LENGTH_S / 60 + 1 }, (_, minute) => minute);

/** Each outcome has a shape of its own, as in the console. */
const OUTCOMES = {
  "200": { colour: "var(--series)", symbol: "●", words: "served" },
  rate_limited: { colour: "var(--limited)", symbol: "▲", words: "rate limited" },
  key_banned: { colour: "var(--error)", symbol: "■", words: "banned" },
} as const;

function chart(title: string, observations: readonly Observation[], top: number): string {
  const runs = runsOf(observations);
  const servedRuns = runs.filter(([first]) => first?.outcome === "200");
  const bans = runs.filter(([first]) => first?.outcome === "key_banned");
  const rateLimits = observations.filter(({ outcome }) => outcome === "rate_limited");
  const { perMinute } = DEFAULT_PLANS.free;
  return `<text x="4%" y="${top + 32}" font-size="15" font-weight="600">${title}</text>
<text x="4%" y="${top + 54}">${legend(observations)}</text>
<g fill="var(--text-muted)" font-size="12">
<text x="10%" y="${top + PLOT.top - 10}">requests left</text>
<text x="10%" y="${top + PLOT.top + 4}" dx="-8" text-anchor="end">${perMinute}</text>
<text x="10%" y="${top + PLOT.top + PLOT.height + 4}" dx="-8" text-anchor="end">0</text>
</g>
<svg x="10%" y="${top + PLOT.top}" width="86%" height="${PLOT.height}" overflow="visible">
${axes()}
${bans.map(ban).join("\n")}
<line x2="100%" y1="${PLOT.height}" y2="${PLOT.height}" stroke="var(--control-line)"/>
<svg width="100%" height="100%" viewBox="0 0 ${LENGTH_S} ${perMinute}" preserveAspectRatio="none" overflow="visible">
${servedRuns.map((run) => served(run, perMinute)).join("\n")}
</svg>
${rateLimits.map(rateLimited).join("\n")}
</svg>`;
}

/** Splits observations wherever the outcome changes. */
function runsOf(observations: readonly Observation[]): Observation[][] {
  const runs: Observation[][] = [];
  for (const each of observations) {
    const run = runs.at(-1);
    if (run?.[0]?.outcome === each.outcome) run.push(each);
    else runs.push([each]);
  }
  return runs;
}

function legend(observations: readonly Observation[]): string {
  const entries = Object.entries(OUTCOMES).map(([name, { colour, symbol, words }]) => {
    const count = observations.filter(({ outcome }) => outcome === name).length;
    return count === 0 ? [] : `<tspan fill="${colour}">${symbol}</tspan> ${count} ${words}`;
  });
  return entries.flat().join("&#8195;");
}

/** The lines of the minutes, of which every second one is named, and of the plan's limit. */
function axes(): string {
  const { height } = PLOT;
  const minutes = MINUTES.map((minute) => {
    const at = across(minute * 60);
    return `<line x1="${at}" x2="${at}" y1="0" y2="${height + 24}" stroke="var(--hairline)"/>`;
  });
  const names = MINUTES.filter((minute) => minute % 2 === 0).map((minute) => {
    const anchor = minute * 60 === LENGTH_S ? "end" : "middle";
    const text = minute === 0 ? "0" : `${minute} min`;
    return `<text x="${across(minute * 60)}" y="${height + 42}" text-anchor="${anchor}">${text}</text>`;
  });
  return `${minutes.join("\n")}
<line x2="100%" stroke="var(--hairline)"/>
<g fill="var(--text-muted)" font-size="12">
${names.join("\n")}
</g>`;
}

/** The number of requests left: a line, and the area below it. */
function served(run: readonly Observation[], perMinute: number): string {
  const points = run.map(({ second, remaining }) => `${second},${perMinute - remaining}`).join(" ");
  const { colour } = OUTCOMES["200"];
  return `<polygon points="${run[0]?.second},${perMinute} ${points}" fill="${colour}" fill-opacity="0.15"/>
<polyline points="${points}" fill="none" stroke="${colour}" stroke-width="2.5" vector-effect="non-scaling-stroke"/>`;
}

function rateLimited({ second }: Observation): string {
  return `<svg x="${across(second)}" y="${PLOT.height + 8}" overflow="visible"><path d="M-4.5 4L0-4L4.5 4z" fill="${OUTCOMES.rate_limited.colour}"/></svg>`;
}

/** The time of a ban, with its length. The label of a later one has less room. */
function ban(run: readonly Observation[], index: number): string {
  const { second: start = 0, retryAfter = 0 } = run[0] ?? {};
  const end = (run.at(-1)?.second ?? 0) + EVERY_S;
  const box = `x="${across(start)}" width="${across(end - start)}"`;
  const label = `${index === 0 ? "banned for " : ""}${shortDuration(1_000 * retryAfter)}`;
  const { colour } = OUTCOMES.key_banned;
  return `<rect ${box} height="${PLOT.height}" fill="var(--error-tint)"/>
<rect ${box} y="${PLOT.height + 14}" height="6" fill="${colour}"/>
<text x="${across((start + end) / 2)}" y="${PLOT.height / 2 + 4}" text-anchor="middle" font-size="12" fill="${colour}">${label}</text>`;
}

/** The figure as SVG text. */
export async function rateLimitFigure(): Promise<string> {
  const { waiting, persistent } = await observe();
  return withFigureColours(`<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${2 * CHART_HEIGHT}" font-family="system-ui, sans-serif" font-size="13" fill="var(--text)">
<rect width="100%" height="100%" rx="8" fill="var(--background)"/>
${chart("A client that waits for Retry-After", waiting, 0)}
${chart("A client that keeps sending", persistent, CHART_HEIGHT)}
</svg>
`);
}

if (import.meta.main) writeFileSync(new URL("rate-limits.svg", import.meta.url), await rateLimitFigure());
