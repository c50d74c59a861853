import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { BLOCK_NAMES, generate, pages, VALUES } from "../docs/generate.ts";
import { rateLimitFigure } from "../docs/rate-limit-figure.ts";
import { KEY_PREFIX } from "../src/domain/secrets.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH } from "../src/domain/idempotency.ts";
import { PAGE_LIMIT } from "../src/domain/size-limits.ts";
import { DAY_MS, MINUTE_MS } from "../src/text/time-units.ts";
import { OPERATIONS } from "../src/petstore/operations.ts";
import { IDLE_TIMEOUT_SECONDS } from "../src/http1/connection.ts";
import { MAX_HANDSHAKES_PER_SECOND } from "../src/http1/index.ts";
import { CONNECTIONS_PER_SERVER } from "../src/store/postgres/pools.ts";

const ROOT = join(import.meta.dir, "..");
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

describe("generated blocks", () => {
  test.each([...pages()])("%s is up to date; `bun docs/generate.ts` updates it", (_path, text) => {
    expect(text).toBe(generate(text));
  });

  test("each block is used once, and each marker names a block", () => {
    const markers = [...pages().values()].join("\n").matchAll(/<!-- ([a-z-]+) -->/g);
    // The guides contain their examples, which tests run.
    const names = [...markers]
      .map(([, name]) => name)
      .filter((name) => !/^example-|^client-setup$/.test(name ?? ""));
    expect(names.toSorted()).toEqual(BLOCK_NAMES.toSorted());
  });

  test("docs/rate-limits.svg is up to date; `bun docs/rate-limit-figure.ts` updates it", async () => {
    expect(read("docs/rate-limits.svg")).toBe(await rateLimitFigure());
  });
});

/** The parameters of a list of pets, as a sentence names them. */
const PARAMETERS = Object.keys(OPERATIONS.listPets.query).map((name) => `\`${name}\``);
const sentence = (names: readonly string[]) => `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** Values that prose, examples and sample configurations repeat: every match must be the value in the code. */
const REPEATED: readonly [file: string, what: string, pattern: RegExp, value: string | number][] = [
  ["docs/deprecation.md", "the removal date", /removed on (\d+ \w+ \d+)/g, VALUES.removalDate],
  ["docs/idempotency.md", "the lifetime of a response", /for (\d+ hours)/g, VALUES.idempotencyLifetime],
  ["docs/idempotency.md", "the longest key", /up to (\d+) visible/g, IDEMPOTENCY_KEY_MAX_LENGTH],
  ["docs/authentication.md", "the overlap of secrets", /by default (\d+ hours)/g, VALUES.rotationOverlap],
  ["docs/authentication.md", "production keys", /`(pet_\w+_)` \(production\)/g, KEY_PREFIX.production],
  ["docs/authentication.md", "staging keys", /`(pet_\w+_)` \(staging\)/g, KEY_PREFIX.staging],
  ["docs/rate-limits.md", "the short window", /closes (\d+) seconds/g, MINUTE_MS / 1000],
  ["docs/rate-limits.md", "the long window", /or (\d+) hours/g, DAY_MS / 3_600_000],
  ["docs/api.md", "the parameters", /`GET \/pets` takes ([^;.]+)[;.]/g, sentence(PARAMETERS)],
  ["docs/pagination.md", "the parameters", /URL keeps your ([^.]+)\./g, sentence(PARAMETERS.slice(0, -1))],
  ["docs/pagination.md", "the default page", /\(default (\d+), at most \d+\)/g, PAGE_LIMIT.default],
  ["docs/pagination.md", "the largest page", /\(default \d+, at most (\d+)\)/g, PAGE_LIMIT.max],
  ["docs/pagination.md", "the page of the example", /\/pets\?limit=(\d+)"/g, PAGE_LIMIT.max],
  ["docs/deployment.md", "the idle timeout", /\[after (\d+ seconds)\]/g, VALUES.idleTimeout],
  ["docs/deployment.md", "handshakes", /open (\d+) connections a second/g, MAX_HANDSHAKES_PER_SECOND],
  ["docs/deployment.md", "connections", /(\d+) for each server/g, CONNECTIONS_PER_SERVER],
  ["docs/security.md", "handshakes", /TLS (\d+) new ones a second/g, MAX_HANDSHAKES_PER_SECOND],
  ["docs/logging.md", "handshakes", /more than (\d+) TLS connections/g, MAX_HANDSHAKES_PER_SECOND],
  ["deploy/haproxy/haproxy.cfg", "the idle timeout", /after (\d+) s\./g, IDLE_TIMEOUT_SECONDS],
  ["deploy/nginx/nginx.conf", "the idle timeout", /after (\d+) s,/g, IDLE_TIMEOUT_SECONDS],
  ["deploy/haproxy/haproxy.cfg", "the response timeout", /within (\d+ seconds)/g, VALUES.responseTimeout],
  ["deploy/nginx/nginx.conf", "the response timeout", /within (\d+ seconds)/g, VALUES.responseTimeout],
  [
    "deploy/nginx/nginx.conf",
    "the largest body",
    /(?:body must not exceed|More than the) (\d+ KiB)/g,
    VALUES.maxBody,
  ],
];

describe("repeated values", () => {
  test.each(REPEATED)("%s: %s", (file, _what, pattern, value) => {
    const found = [...read(file).replace(/\s+/g, " ").matchAll(pattern)].map(([, text]) => text);
    expect(found).not.toEqual([]);
    expect([...new Set(found)]).toEqual([String(value)]);
  });
});

/** Each alert with its expression and the minutes for which it holds. */
const ALERTS = read("deploy/prometheus/alerts.yml")
  .split("- alert: ")
  .slice(1)
  .map((rule) => {
    const [, name = "", expression = ""] = /^(\w+).*?expr: (.*?)\n +(?:for|labels):/s.exec(rule) ?? [];
    return { name, expression, minutes: /^ +for: (\d+)m$/m.exec(rule)?.[1] };
  });

/** A threshold, as a sentence may write it. */
function thresholdText(factors: string): RegExp {
  const value = factors.split("*").reduce((product, factor) => product * Number(factor), 1);
  const texts = [
    `${value} [a-z]`,
    `${value * 100} %`,
    `${value / 60} minutes`,
    `${(value * 1000) / DAY_MS} days`,
    `${value / 1e9} GB`,
  ];
  return new RegExp(`(?<![\\d.])(?:${texts.join("|").replaceAll(".", "\\.")})`);
}

describe("docs/monitoring.md: an alert is described as it is in alerts.yml", () => {
  const sections = read("docs/monitoring.md").split("\n### ").slice(1);

  test("each alert has a section, in the same order", () => {
    expect(sections.map((section) => section.split("\n")[0])).toEqual(ALERTS.map(({ name }) => name));
  });

  test.each(ALERTS)("$name", ({ name, expression, minutes }) => {
    const section = sections.find((each) => each.startsWith(`${name}\n`)) ?? "";
    const duration = / for (?:a minute|\d+ minutes)/.exec(section)?.[0];
    expect(duration).toBe(minutes && (minutes === "1" ? " for a minute" : ` for ${minutes} minutes`));
    for (const [, threshold = ""] of expression.matchAll(/[<>] ([\d.e* ]*[1-9][\d.e* ]*)/g))
      expect(section.replace(duration ?? "", "")).toMatch(thresholdText(threshold));
  });
});
