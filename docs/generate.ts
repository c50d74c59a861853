/*
 * Writes the generated blocks of README.md and docs/*.md, each between `<!-- name -->` and `<!-- /name -->`:
 * `bun docs/generate.ts`. The tests fail while a block differs from the code.
 */

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { longDuration } from "../src/text/durations.ts";
import { grouped, kibibytes, longDate, plural } from "../src/text/formatting.ts";
import { HANDLING_TIMEOUT_MS } from "../src/api/dispatch.ts";
import type { Schema } from "../src/api/schema.ts";
import { DEFAULT_URL } from "../src/config/listen-urls.ts";
import { SETTINGS } from "../src/config/options.ts";
import { describeDefault, flagText, type Option, type Options } from "../src/config/parse-options.ts";
import { constraintOf, schemaFields } from "../src/docs-site/fields.ts";
import { replaceBlocks, settingBlocks } from "../src/docs-site/guide-pages.ts";
import { DOCUMENTED_DEFAULTS } from "../src/cli/documented-defaults.ts";
import { markdownTable } from "../src/docs-site/markdown.ts";
import { IDEMPOTENCY_KEY_MAX_LENGTH, IDEMPOTENCY_LIFETIME_MS } from "../src/domain/idempotency.ts";
import { MAX_BODY_BYTES, NAME_MAX_LENGTH, PAGE_LIMIT } from "../src/domain/size-limits.ts";
import { AUDIT_ACTIONS } from "../src/domain/audit.ts";
import { Order, Pet } from "../src/domain/pets-and-orders.ts";
import { IDLE_TIMEOUT_SECONDS, SILENT_TIMEOUT_SECONDS } from "../src/http1/connection.ts";
import { MAX_FIELDS } from "../src/http1/header-fields.ts";
import { MAX_HEAD_BYTES, MAX_REQUEST_LINE_BYTES } from "../src/http1/request-head.ts";
import { RECEIVE_TIMEOUT_SECONDS } from "../src/http1/index.ts";
import { LOG_EVENTS, type LogEvent } from "../src/observe/log-events.ts";
import { METRICS } from "../src/observe/metrics.ts";
import { DEFAULT_OVERLAP_SECONDS } from "../src/operator/operations/keys.ts";
import { leastRoleOf, ROLE_MEANINGS, ROLES } from "../src/domain/operators.ts";
import { ADMIN_OPERATIONS, type AdminOperation } from "../src/operator/operations.ts";
import { ERRORS } from "../src/petstore/errors.ts";
import { OPERATIONS, type PetstoreOperation } from "../src/petstore/operations.ts";
import { POSTGRES_MIGRATIONS, RELEASES, SQLITE_MIGRATIONS } from "../src/store/sql/migration-steps.ts";
import { exactJson, generatorSections } from "./generated-clients.ts";

const ROOT = resolve(import.meta.dir, "..");

/** Values that texts beside the generated blocks state, as they write them. */
export const VALUES = {
  maxBody: kibibytes(MAX_BODY_BYTES),
  idempotencyLifetime: longDuration(IDEMPOTENCY_LIFETIME_MS),
  responseTimeout: plural(HANDLING_TIMEOUT_MS / 1000, "second"),
  idleTimeout: plural(IDLE_TIMEOUT_SECONDS, "second"),
  removalDate: longDate(OPERATIONS.getPet.deprecated.sunset),
  rotationOverlap: longDuration(DEFAULT_OVERLAP_SECONDS * 1_000),
} as const;

/** A longer list of values is left out; --help has it. */
const MAX_RANGE_LENGTH = 120;

const BLOCKS: Readonly<Record<string, string>> = {
  generators: generatorSections(),
  "exact-json": exactJson(),
  ...settingBlocks({ ...DOCUMENTED_DEFAULTS, otherEnvironmentUrl: DEFAULT_URL.staging }),
  "plans-note": "The operator can set other limits; a server shows its own at `/docs`.",
  operations: markdownTable(
    ["Operation", "Request", "Purpose"],
    Object.entries(OPERATIONS).map(operationRow),
  ),
  "pet-fields": fieldTable(Pet),
  "order-fields": fieldTable(Order),
  limits: markdownTable(["Limit", "Value", "Otherwise"], limitRows()),
  "error-codes": markdownTable(["Status", "Code", "Meaning", "What to do"], errorRows()),
  settings: optionTable(SETTINGS),
  "log-errors": markdownTable(["Error", "Meaning"], logEvents("error")),
  "log-warnings": markdownTable(["Warning", "Meaning"], logEvents("warn")),
  roles: markdownTable(["Role", "An operator with it", "Operations, with those above"], roleRows()),
  metrics: markdownTable(["Metric", "Type", "Meaning", "Labels"], metricRows()),
  "metric-labels": markdownTable(["Label", "Values"], metricLabelRows()),
  migrations: migrationList(),
};

function operationRow([id, operation]: [string, PetstoreOperation]): string[] {
  const { method, path, summary, deprecated } = operation;
  return [
    code(id),
    code(`${method} ${path}`),
    deprecated ? `${summary} ([deprecated](deprecation.md))` : summary,
  ];
}

/** Each with the operations that those before it may not call. The last role may call all that are left. */
function roleRows(): string[][] {
  const rows = Object.entries<AdminOperation>(ADMIN_OPERATIONS).filter(([, row]) => !row.needsNoToken);
  return ROLES.map((role) => {
    if (role === ROLES.at(-1)) return [code(role), ROLE_MEANINGS[role], "all others"];
    const own = rows.filter(([, row]) => leastRoleOf(row) === role);
    const writes = own.filter(([, { method }]) => method !== "GET").map(([id]) => code(id));
    const reads = own.length > writes.length ? ["every `GET`"] : [];
    return [code(role), ROLE_MEANINGS[role], [...reads, ...writes].join(", ")];
  });
}

function fieldTable({ json }: Schema<unknown>): string {
  const fields = schemaFields(json).map(({ name, required, description, schema }) => {
    const type = constraintOf(schema).replace("one of ", "");
    return [code(name), required ? type : `${type}; optional`, description];
  });
  return markdownTable(["Field", "Type", "Meaning"], fields);
}

function limitRows(): string[][] {
  const head = `${kibibytes(MAX_HEAD_BYTES)}, ${MAX_FIELDS} headers`;
  const pageLimit = `${PAGE_LIMIT.min} to ${PAGE_LIMIT.max}, default ${PAGE_LIMIT.default}`;
  const silent = plural(SILENT_TIMEOUT_SECONDS, "second");
  return [
    ["Request body", VALUES.maxBody, "413 `body_too_large`"],
    ["Request line", kibibytes(MAX_REQUEST_LINE_BYTES), "414 `uri_too_long`"],
    ["Request line and headers", head, "431 `headers_too_large`"],
    ["`name`", `1 to ${grouped(NAME_MAX_LENGTH)} characters`, "400 `invalid_body`"],
    ["`limit`", pageLimit, "400 `invalid_parameter`"],
    ["`Idempotency-Key`", `1 to ${IDEMPOTENCY_KEY_MAX_LENGTH} characters`, "400 `invalid_parameter`"],
    ["Time to send a request", plural(RECEIVE_TIMEOUT_SECONDS, "second"), "408 `request_timeout`"],
    ["Time to execute a request", VALUES.responseTimeout, "503 `unavailable`"],
    ["Idle connection", VALUES.idleTimeout, "The server closes it"],
    ["Wait for the first request", silent, "The server closes the connection"],
  ];
}

function errorRows(): string[][] {
  return Object.entries(ERRORS).map(([name, { status, meaning, action }]) => [
    String(status),
    code(name),
    meaning,
    action,
  ]);
}

function optionTable(options: Options): string {
  return markdownTable(["Option", "Default", "Meaning"], Object.entries(options).map(optionRow));
}

function optionRow([flag, option]: [string, Option]): string[] {
  const { range = "" } = option.type;
  const isShown = range !== "" && range.length <= MAX_RANGE_LENGTH;
  return [
    code(flagText(flag, option)),
    describeDefault(option) ?? "",
    isShown ? `${option.help} (${range})` : option.help,
  ];
}

/** The events of one level, without those of the audit trail, each with its meaning. */
function logEvents(level: LogEvent["level"]): string[][] {
  const actions = new Set<string>(AUDIT_ACTIONS.map((action) => `audit.${action}`));
  return Object.entries<LogEvent>(LOG_EVENTS)
    .filter(([name, event]) => event.level === level && !actions.has(name))
    .map(([name, { message }]) => [code(name), message]);
}

/** Those of Petstore; every exporter has those of the process. */
function metricRows(): string[][] {
  return Object.entries(METRICS)
    .filter(([name]) => !name.startsWith("process_"))
    .map(([name, { type, help, labels }]) => [
      code(name),
      type,
      help,
      Object.keys(labels).map(code).join(", "),
    ]);
}

/** Each label once. */
function metricLabelRows(): string[][] {
  const labels = Object.values(METRICS).flatMap(({ labels }) => Object.entries(labels));
  return [...new Map(labels)].map(([label, values]) => [code(label), values]);
}

/** The tables of the last two releases. */
function migrationList(): string {
  const items = RELEASES.slice(0, 2).map(({ release, sqlite, postgres }, index) => {
    const before = RELEASES[index + 1] ?? { sqlite: 0, postgres: 0 };
    const steps = [
      ...SQLITE_MIGRATIONS.filter(({ version }) => version > before.sqlite && version <= sqlite),
      ...POSTGRES_MIGRATIONS.filter(({ version }) => version > before.postgres && version <= postgres),
    ];
    const needed = steps
      .map(({ worksWith }) => worksWith)
      .toSorted(Bun.semver.order)
      .at(-1);
    return `- The tables of ${release}: schema ${sqlite} on SQLite, ${postgres} on PostgreSQL; ${needed} and newer can run on them`;
  });
  return items.join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

/** The text with every block generated anew. */
export function generate(text: string): string {
  return replaceBlocks(text, BLOCKS);
}

export const BLOCK_NAMES = Object.keys(BLOCKS);

/** Path from the root → text. */
export function pages(): ReadonlyMap<string, string> {
  const docs = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  const paths = ["README.md", ...docs.map((name) => `docs/${name}`)];
  return new Map(paths.map((path) => [path, readFileSync(join(ROOT, path), "utf8")]));
}

if (import.meta.main) {
  for (const [path, text] of pages()) {
    const generated = generate(text);
    if (generated !== text) writeFileSync(join(ROOT, path), generated);
  }
}
