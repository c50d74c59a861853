import { bulletList, markdownTable, plainTable, type Table } from "../harness/table.ts";
import type { Figures } from "./figures.ts";
import type { Result } from "./scenario.ts";

export function resultText({ skipped, problems }: Result): string {
  if (skipped !== undefined) return `not run: ${skipped}`;
  return problems.length === 0 ? "as promised" : problems.join("; ");
}

export function plainReport(results: readonly Result[], environment: readonly string[]): string {
  const lists = listsOf(results).map(([title, lines]) => `\n${title}\n${bulletList(lines)}\n`);
  return `\n${environment.join("\n")}\n${plainTable(figuresTable(results))}${lists.join("")}`;
}

export function markdownReport(results: readonly Result[], environment: readonly string[]): string {
  const lists = listsOf(results).map(([title, lines]) => `### ${title}\n\n${bulletList(lines)}\n`);
  return `${bulletList(environment)}\n\n${markdownTable(figuresTable(results))}\n${lists.join("\n")}`;
}

function listsOf(results: readonly Result[]): (readonly [title: string, lines: readonly string[]])[] {
  const lists = [
    ["Log messages", results.flatMap(logOf)],
    ["Further checks", results.flatMap(notesOf)],
  ] as const;
  return lists.filter(([, lines]) => lines.length > 0);
}

const COLUMNS: Readonly<Record<string, (figures: Figures) => string>> = {
  requests: ({ requests }) => String(requests),
  errors: ({ errors }) => listOf(errors) || "none",
  "failed after retries": ({ failed }) => String(failed.length),
  median: ({ medianMs }) => inMs(medianMs),
  longest: ({ longestMs }) => inMs(longestMs),
  "control server's longest": ({ longestControlMs }) => inMs(longestControlMs),
  "longest fail-fast 503": ({ longestFailFastMs }) => inMs(longestFailFastMs),
  "recovery time": ({ recoveryMs }) => inMs(recoveryMs),
  creates: ({ creates }) => String(creates.acknowledged),
  lost: ({ creates }) => String(creates.lost),
  duplicated: ({ creates }) => String(creates.duplicated),
};

function figuresTable(results: readonly Result[]): Table {
  return {
    title: "What clients noticed",
    header: ["fault", ...Object.keys(COLUMNS), "result"],
    rows: results.map((result) => {
      const { title, figures } = result;
      const cells = Object.values(COLUMNS).map((format) => (figures ? format(figures) : "–"));
      return [title, ...cells, resultText(result)];
    }),
  };
}

function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count} × ${name}`)
    .join(", ");
}

function inMs(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function logOf({ title, figures }: Result): string[] {
  const lines = Object.entries(figures?.log ?? {}).map(([line, count]) => `${count} × “${line}”`);
  const servers = figures?.servers === 1 ? "1 server" : `${figures?.servers} servers`;
  return lines.length === 0 ? [] : [`${title}; ${servers}: ${lines.join(", ")}`];
}

function notesOf({ title, figures }: Result): string[] {
  if (figures === undefined) return [];
  const unexpected = Object.entries(figures.outages).flatMap(([database, outages]) =>
    outages.unexpected === 0
      ? []
      : [`${database} was logged as unavailable ${outages.unexpected} × without a fault`],
  );
  return [...figures.notes, ...unexpected].map((note) => `${title}: ${note}`);
}
