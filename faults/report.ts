import { markdownTable, plainTable, type Table } from "../bench/table.ts";
import type { Figures, Result } from "./scenario.ts";

export function verdictOf({ unfit, problems }: Result): string {
  if (unfit !== undefined) return `not played: ${unfit}`;
  return problems.length === 0 ? "as promised" : problems.join("; ");
}

export function printed(results: readonly Result[], ground: readonly string[]): string {
  const lists = sectionsOf(results).map(([title, lines]) => `\n${title}\n${bullets(lines)}\n`);
  return `\n${ground.join("\n")}\n${plainTable(figuresOf(results))}${lists.join("")}`;
}

export function inMarkdown(results: readonly Result[], ground: readonly string[]): string {
  const lists = sectionsOf(results).map(([title, lines]) => `### ${title}\n\n${bullets(lines)}\n`);
  return `${bullets(ground)}\n\n${markdownTable(figuresOf(results))}\n${lists.join("\n")}`;
}

const bullets = (lines: readonly string[]) => lines.map((line) => `- ${line}`).join("\n");

function sectionsOf(results: readonly Result[]): (readonly [string, readonly string[]])[] {
  const sections = [
    ["What the servers wrote to their logs", logOf(results)],
    ["Seen besides", notesOf(results)],
  ] as const;
  return sections.filter(([, lines]) => lines.length > 0);
}

const HEADER = [
  "what goes wrong",
  "requests",
  "errors on the wire",
  "failed for good",
  "median wait",
  "longest",
  "bare server's longest",
  "longest once known",
  "back after",
  "creates",
  "lost",
  "doubled",
  "verdict",
];

function figuresOf(results: readonly Result[]): Table {
  return {
    title: "What clients noticed",
    header: HEADER,
    rows: results.map((result) => {
      const { title, figures } = result;
      const cells = figures ? cellsOf(figures) : HEADER.slice(2).map(() => "–");
      return [title, ...cells, verdictOf(result)];
    }),
  };
}

function cellsOf(figures: Figures): string[] {
  const { requests, errors, failed, medianMs, longestMs, longestOfControlMs } = figures;
  const { longestKnownMs, backAfterMs, creates } = figures;
  return [
    String(requests),
    listOf(errors) || "none",
    String(failed.length),
    inMs(medianMs),
    inMs(longestMs),
    inMs(longestOfControlMs),
    inMs(longestKnownMs),
    inMs(backAfterMs),
    String(creates.acknowledged),
    String(creates.lost),
    String(creates.doubled),
  ];
}

function listOf(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${count} × ${name}`)
    .join(", ");
}

function inMs(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function logOf(results: readonly Result[]): string[] {
  return results.flatMap(({ title, figures }) => {
    if (figures === undefined || Object.keys(figures.log).length === 0) return [];
    const lines = Object.entries(figures.log).map(([line, count]) => `${count} × “${line}”`);
    const servers = figures.servers === 1 ? "one server" : `${figures.servers} servers`;
    return `${title}; ${servers}: ${lines.join(", ")}`;
  });
}

function notesOf(results: readonly Result[]): string[] {
  return results.flatMap(({ title, figures }) => {
    if (figures === undefined) return [];
    const { notes, turns } = figures;
    const alarms = Object.entries(turns).flatMap(([engine, { elsewhere }]) =>
      elsewhere === 0 ? [] : [`${engine} was taken for away ${elsewhere} × when it was not`],
    );
    return [...notes, ...alarms].map((note) => `${title}: ${note}`);
  });
}
