import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApp } from "../src/app.ts";
import { DEFAULT_PLANS, generateSecret, toNewSecret } from "../src/domain/api-keys.ts";
import { silentLog } from "../src/observe/log.ts";
import { parseConfig } from "../test/config/parsing.ts";

/**
 * Draws docs/rate-limits.svg: `bun docs/rate-limit-figure.ts`. The dots are responses of a real server over HTTP to two
 * clients on Free keys. Only the server's clock is simulated, so that eight minutes take a second.
 */
interface Observation {
  readonly second: number;
  readonly outcome: "200" | "rate_limited" | "key_banned";
  readonly remaining: number;
  readonly retryAfter: number;
}

const LENGTH_S = 480;
const EVERY_S = 0.5;

async function observe(): Promise<{ waiting: Observation[]; persistent: Observation[] }> {
  const dataDir = mkdtempSync(join(tmpdir(), "petstore-"));
  const started = Date.parse("2026-11-15T12:00:00Z");
  let now = started;
  const clock = { now: () => now, steadyNow: () => now, stepMs: 0 };
  const config = parseConfig({
    data: [dataDir],
    port: ["0"],
    "admin-address": ["off"],
    "max-connections-per-address": ["0"],
  });
  const app = await startApp(config, { clock, log: silentLog });

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
  rmSync(dataDir, { recursive: true });
  return { waiting, persistent };
}

/** At 390 px, the text of a figure of this width can be read. */
const WIDTH = 400;
const LEFT = 36;
const RIGHT = WIDTH - 12;
const CHART_HEIGHT = 176;
const x = (second: number) => LEFT + (second / LENGTH_S) * (RIGHT - LEFT);
const MINUTES = Array.from({ length: LENGTH_S / 60 + 1 }, (_, minute) => ({
  minute,
  at: x(minute * 60).toFixed(1),
}));
/** Each can be seen on white and on the dark page. */
const COLOUR = { "200": "#2e9e6b", rate_limited: "#b87a0c", key_banned: "#cc3d3d" } as const;

/** A mark of an outcome: each has a shape of its own, as in the console. */
function markOf(outcome: Observation["outcome"], x: number, y: number, size: number): string {
  const fill = `fill="${COLOUR[outcome]}"`;
  const [left, right, top, bottom] = [x - size, x + size, y - size, y + size].map((each) => each.toFixed(1));
  if (outcome === "200") return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${size}" ${fill}/>`;
  const corners =
    outcome === "rate_limited"
      ? `${left},${bottom} ${x.toFixed(1)},${top} ${right},${bottom}`
      : `${left},${top} ${right},${top} ${right},${bottom} ${left},${bottom}`;
  return `<polygon points="${corners}" ${fill}/>`;
}

function chart(title: string, observations: readonly Observation[], top: number): string {
  const bottom = top + CHART_HEIGHT - 52;
  const { perMinute } = DEFAULT_PLANS.free;
  const y = (remaining: number) => bottom - (remaining / perMinute) * (CHART_HEIGHT - 100);
  const dots = observations.map(({ second, outcome, remaining }) => {
    const height = outcome === "200" ? y(remaining) : bottom + (outcome === "rate_limited" ? 8 : 16);
    return markOf(outcome, x(second), height, outcome === "rate_limited" ? 3 : 1.4);
  });
  const counts = Object.entries(Object.groupBy(observations, ({ outcome }) => outcome))
    .map(([outcome, some]) => `${outcome} (${some?.length})`)
    .join(", ");
  return `<text x="${LEFT}" y="${top}" font-weight="600" font-size="15">${title}</text>
<text x="${LEFT}" y="${top + 20}">${counts}</text>
${MINUTES.map((minute) => `<line x1="${minute.at}" x2="${minute.at}" y1="${y(perMinute)}" y2="${bottom + 20}" stroke="currentColor" stroke-opacity="0.15"/>`).join("")}
<line x1="${LEFT}" x2="${RIGHT}" y1="${bottom}" y2="${bottom}" stroke="currentColor" stroke-opacity="0.5"/>
<text x="${LEFT - 6}" y="${y(perMinute) + 4}" text-anchor="end">${perMinute}</text>
<text x="${LEFT - 6}" y="${bottom + 4}" text-anchor="end">0</text>
<text x="${LEFT}" y="${y(perMinute) - 6}" font-size="11">requests left</text>
${dots.join("")}`;
}

const OUTCOMES = ["200", "rate_limited", "key_banned"] as const;
const LEGEND = {
  "200": "200: the height is X-RateLimit-Remaining",
  rate_limited: "429 rate_limited",
  key_banned: "429 key_banned",
} as const;

/** The figure as SVG text. */
export async function rateLimitFigure(): Promise<string> {
  const { waiting, persistent } = await observe();
  const axis = 12 + 2 * CHART_HEIGHT;
  const ticks = MINUTES.map(
    ({ minute, at }) => `<text x="${at}" y="${axis}" text-anchor="middle">${minute}</text>`,
  );
  const legend = OUTCOMES.map((outcome, i) => {
    const at = axis + 44 + i * 20;
    return `${markOf(outcome, LEFT + 4, at - 4, 4)}<text x="${LEFT + 14}" y="${at}">${LEGEND[outcome]}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${axis + 100}" font-family="system-ui, sans-serif" font-size="13" fill="currentColor">
<rect width="100%" height="100%" fill="#fff"/>
${ticks.join("\n")}
<text x="${RIGHT}" y="${axis + 18}" text-anchor="end">minutes</text>
${chart("A client that waits for Retry-After", waiting, 28)}
${chart("A client that keeps sending", persistent, 28 + CHART_HEIGHT)}
${legend.join("\n")}
</svg>
`;
}

if (import.meta.main) writeFileSync(new URL("rate-limits.svg", import.meta.url), await rateLimitFigure());
