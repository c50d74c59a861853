import { cpuSeconds } from "./proc.ts";
import { templateOf } from "./requests.ts";
import { checkAnswers, checkRound, checkRows, highestId } from "./sanity.ts";
import type { Server } from "./servers.ts";
import { spend } from "./spend.ts";
import type { Stage } from "./stage.ts";
import { type Values, writeValues } from "./values.ts";
import { type Ask, asksOf, type Work, type WorkId } from "./work.ts";
import { type LoadTool, runWrk } from "./wrk.ts";

/** One server doing one work for one round. */
export interface Sample {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Of the server, user and system. */
  readonly cpuMicros: number;
  /** Share of a core that the load generator used; near 1 it was the bottleneck, and the server could do more. */
  readonly loadCpu: number;
}

export interface Round {
  readonly seconds: number;
  readonly connections?: number;
  readonly delayMs?: number;
}

/** Values and plans go into the folder. */
export function openMeter(folder: string, { processes, cores }: Stage, values: Values): Meter {
  return new Meter({ processes, core: cores?.load, folder, files: writeValues(folder, values) }, values);
}

/** Measures rounds; keeps in mind how far the lists of values have been used by each server. */
export class Meter {
  readonly #offsets = new Map<string, number>();

  constructor(
    private readonly tool: LoadTool,
    private readonly values: Values,
  ) {}

  async round(server: Server, work: Work, { seconds, connections, delayMs = 0 }: Round): Promise<Sample> {
    if (work.credential === "spent") await spend(server, this.values);
    const expectedBytes = await checkAnswers(server, work, this.values);
    const place = `${server.id} ${work.id}`;
    const offset = this.#offsets.get(place) ?? 0;
    const parts = asksOf(work).map((ask) => ({
      template: templateOf(ask, work, server.dialect, this.values),
      share: work.asks[ask] ?? 0,
    }));

    const rowsBefore = this.#rowsOf(server, work);
    const cpuBefore = cpuSeconds(server.pid);
    const load = {
      origin: server.originFor(work.id as WorkId),
      connections: connections ?? work.connections,
      seconds,
      parts,
      offset,
      delayMs,
    };
    const figures = await runWrk(this.tool, load);
    const cpu = cpuSeconds(server.pid) - cpuBefore;

    checkRound(server, work, figures, expectedBytes);
    const rows = this.#rowsOf(server, work) - rowsBefore;
    if (server.database !== undefined) {
      checkRows(server, { ...work, connections: load.connections }, { rows, requests: figures.requests });
    }
    this.#offsets.set(place, offset + figures.requests + load.connections);
    return {
      perSecond: figures.requests / (figures.micros / 1e6),
      p50Ms: figures.p50 / 1_000,
      p99Ms: figures.p99 / 1_000,
      cpuMicros: (cpu * 1e6) / figures.requests,
      loadCpu: figures.loadCpu,
    };
  }

  #rowsOf(server: Server, work: Work): number {
    const creates: Ask = "create";
    return server.database === undefined || work.asks[creates] === undefined ? 0 : highestId(server.database);
  }
}
