/*
 * Measures what docs/dependencies.md says about libraries that we do not use: `npx bun bench/libraries.ts`. It installs
 * them from npm into a temporary directory, which takes a few minutes.
 */

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { parseJson } from "../src/api/json.ts";
import { toYaml } from "../src/api/yaml.ts";
import { RowReader } from "../src/archive/row-reader.ts";
import { DOCUMENTED_DEFAULTS } from "../src/cli/documented-defaults.ts";
import { NewPet } from "../src/domain/pets-and-orders.ts";
import { createLog } from "../src/observe/log.ts";
import { openApiJson } from "../src/petstore/openapi/document.ts";
import { PETSTORE_API } from "../src/petstore/operations.ts";
import { temporaryDirectory } from "../trials/harness/cleanup.ts";
import { run } from "../trials/compatibility/tools.ts";
import { compare } from "./cpu-time.ts";

const LIBRARIES = {
  csv: ["csv-parse@7.0.3", "papaparse@5.7.1", "udsv@0.7.3"],
  schemas: ["zod@4.6.7", "valibot@1.5.0"],
  "documentation site": ["@scalar/api-reference@1.72.1", "swagger-ui-dist@5.29.5"],
  search: ["minisearch@7.2.0", "lunr@2.3.9", "flexsearch@0.8.212"],
  highlighter: ["highlight.js@11.12.0", "prismjs@1.30.0", "shiki@4.6.0"],
  tar: ["tar-stream@3.2.2", "tar@7.5.23"],
  log: ["pino@10.4.0"],
  "command line": ["commander@15.1.0", "yargs@18.2.0"],
  router: ["find-my-way@9.10.0"],
  sql: ["kysely@0.29.9", "drizzle-orm@0.45.4", "knex@3.3.0"],
} as const;

const directory = temporaryDirectory("libraries");

/** Installs a package in a directory of its own, and returns that directory. */
async function install(name: string): Promise<string> {
  const cwd = join(directory, name.replaceAll(/[^\w.-]/g, "_"));
  await Bun.write(join(cwd, "package.json"), '{"private":true,"type":"module"}');
  const flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
  await run(["npm", "install", ...flags, name], { cwd });
  return cwd;
}

function sizeOf(path: string): number {
  const status = statSync(path, { throwIfNoEntry: false });
  if (!status?.isDirectory()) return status?.size ?? 0;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

const modules = new Map<string, string>();
for (const [job, names] of Object.entries(LIBRARIES))
  for (const name of names) {
    const cwd = await install(name);
    const lock: { packages: object } = JSON.parse(readFileSync(join(cwd, "package-lock.json"), "utf8"));
    const packages = Object.keys(lock.packages).length - 1;
    const megabytes = (sizeOf(join(cwd, "node_modules")) / 1e6).toFixed(1);
    console.log(`${job}: ${name}, ${packages} ${packages === 1 ? "package" : "packages"}, ${megabytes} MB`);
    modules.set(name.replace(/(?<=.)@.*/, ""), cwd);
  }

/** Imports an installed package. */
async function load(name: string, path = name): Promise<Record<string, never>> {
  return import(Bun.resolveSync(path, modules.get(name) ?? ""));
}

interface Validator {
  safeParse?: (value: unknown) => unknown;
}

/** The parts of the libraries' interfaces that are measured. */
type Parse = (text: string) => unknown;

const rows = Array.from({ length: 1_000 }, (_, index) => `Pet number ${index},${index % 7},available`);
const csv = `name,categoryId,status\n${rows.join("\n")}\n`;
const { parse: csvParse } = (await load("csv-parse", "csv-parse/sync")) as unknown as { parse: Parse };
const { default: papa } = (await load("papaparse")) as unknown as { default: { parse: Parse } };
const udsv = (await load("udsv")) as unknown as {
  inferSchema: Parse;
  initParser: (schema: unknown) => { stringArrs: Parse };
};
const dsv = udsv.initParser(udsv.inferSchema(csv));
compare(
  "1,000 rows of CSV",
  {
    ours: () => new RowReader(",").push(csv),
    "csv-parse": () => csvParse(csv),
    papaparse: () => papa.parse(csv),
    udsv: () => dsv.stringArrs(csv),
  },
  200,
);

const zod = (await load("zod")) as unknown as Record<string, (...args: unknown[]) => never>;
const valibot = (await load("valibot")) as unknown as Record<string, (...args: unknown[]) => never>;
const pet = { name: "Rex", categoryId: 7n, status: "available" };
const [zodPet, valibotPet] = [zodSchema(), valibotSchema()];
compare("a valid pet", {
  ours: () => NewPet.read(pet),
  zod: () => zodPet.safeParse?.(pet),
  valibot: () => valibot["safeParse"]?.(valibotPet, pet),
});

function zodSchema(): Validator {
  const z = zod as never as {
    object(fields: object): Validator;
    string(): { min(n: number): { max(n: number): object } };
    int64(): object;
    enum(values: readonly string[]): { optional(): object };
  };
  const status = z.enum(["available", "pending", "sold"]).optional();
  return z.object({ name: z.string().min(1).max(1_024), categoryId: z.int64(), status });
}

function valibotSchema(): unknown {
  const v = valibot as never as {
    object(fields: object): unknown;
    pipe(...parts: unknown[]): unknown;
    string(): unknown;
    minLength(n: number): unknown;
    maxLength(n: number): unknown;
    bigint(): unknown;
    minValue(n: bigint): unknown;
    maxValue(n: bigint): unknown;
    optional(schema: unknown): unknown;
    picklist(values: readonly string[]): unknown;
  };
  return v.object({
    name: v.pipe(v.string(), v.minLength(1), v.maxLength(1_024)),
    categoryId: v.pipe(v.bigint(), v.minValue(-(2n ** 63n)), v.maxValue(2n ** 63n - 1n)),
    status: v.optional(v.picklist(["available", "pending", "sold"])),
  });
}

const { default: findMyWay } = (await load("find-my-way")) as unknown as {
  default: () => {
    on(method: string, path: string, handler: () => void): void;
    find: (...args: string[]) => unknown;
  };
};
const router = findMyWay();
for (const [, { method, path }] of PETSTORE_API.rows)
  router.on(method, `/v1${path}`.replace(/\{(\w+)\}/, ":$1"), () => {});
compare("a route", {
  ours: () => PETSTORE_API.find("/v1/pets/123")?.route.operations.get("GET"),
  "find-my-way": () => router.find("GET", "/v1/pets/123"),
});

const openApi: unknown = parseJson(openApiJson(DOCUMENTED_DEFAULTS));
compare("OpenAPI as YAML", { ours: () => toYaml(openApi), yaml: () => stringify(openApi) }, 20);

const { default: pino } = (await load("pino")) as unknown as {
  default: (
    options: object,
    stream: { write(line: string): void },
  ) => { warn(details: object, message: string): void };
};
const pinoLog = pino({ base: undefined }, { write() {} });
const log = createLog({ format: "json", write() {} });
compare("a line of the log", {
  ours: () => log.event("clock.changed", { byMs: 7 }),
  pino: () => pinoLog.warn({ byMs: 7, event: "clock.changed" }, "the system clock was changed"),
});
