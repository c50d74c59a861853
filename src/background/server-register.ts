import { HOUR_MS } from "../text/time-units.ts";
import { parseJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import type { ServerRegister, ServerReportStore } from "../domain/ports/servers.ts";
import type { Clock } from "../domain/ports/clock.ts";
import {
  GONE_AFTER_MS,
  nameOfServer,
  type ServerActivity,
  type ServerIdentity,
  ServerReport,
  type ServerState,
  type StoredReport,
} from "../domain/servers.ts";
import { repeat, type RepeatedWork } from "../runtime/repeat.ts";

/** How often a server reports what it does, and reads what the others do. */
const REPORT_EVERY_MS = 1_000;
/** How long the last report of a server that was killed is kept, and of how many such servers. */
const LOST_FOR_MS = HOUR_MS;
const MAX_LOST = 50;

interface RegisterOptions {
  readonly reports: ServerReportStore;
  readonly clock: Pick<Clock, "now">;
  /** Returns what this server does now. */
  readonly activity: () => ServerActivity;
}

/** The servers on the database. Each reports there once a second what it does; one that stops removes itself. */
export class ReportingRegister implements ServerRegister {
  readonly #options: RegisterOptions;
  readonly #reporting: RepeatedWork;
  #others: Registered = { servers: [], lost: [], outdated: [] };

  private constructor(
    readonly self: ServerIdentity,
    options: RegisterOptions,
  ) {
    this.#options = options;
    this.#reporting = repeat(REPORT_EVERY_MS, async () => {
      await this.report();
      return REPORT_EVERY_MS;
    });
  }

  static async open(self: ServerIdentity, options: RegisterOptions): Promise<ReportingRegister> {
    const register = new ReportingRegister(self, options);
    await register.report();
    return register;
  }

  list(): readonly ServerState[] {
    const { activity, clock } = this.#options;
    const self = { ...this.self, ...activity(), seenAt: clock.now() };
    return [self, ...this.#others.servers].toSorted(oldestFirst);
  }

  lost(): readonly ServerState[] {
    return withoutRestarted(this.#others.lost, this.list());
  }

  /** Reports what this server does, and reads what the others do. */
  async report(): Promise<void> {
    const { reports, activity, clock } = this.#options;
    const own = { ...this.self, ...activity() };
    try {
      this.#others = parseReports(await reports.report(own.id, JSON.stringify(own)), clock.now());
      // This server has taken the place of one that was killed.
      const replaced = this.#others.lost.filter((each) => nameOfServer(each) === nameOfServer(own));
      const outdated = [...this.#others.outdated, ...replaced.map(({ id }) => id)];
      if (outdated.length > 0) await reports.deleteReports(outdated);
    } catch {
      // The outage of the database is in the log.
    }
  }

  /** Removes this server, so that the others know within a second that it has stopped. */
  async close(): Promise<void> {
    await this.#reporting.close();
    await this.#options.reports.deleteReports([this.self.id]).catch(() => {});
  }
}

/** The register as a command reads it. */
export function openRegister(reports: ServerReportStore, clock: Pick<Clock, "now">): ServerRegister {
  const read = async () => parseReports(await reports.listReports(), clock.now());
  return {
    list: async () => (await read()).servers.toSorted(oldestFirst),
    async lost() {
      const { lost, servers } = await read();
      return withoutRestarted(lost, servers);
    },
  };
}

interface Registered {
  readonly servers: readonly ServerState[];
  /** The servers that were killed, the last ones first. */
  readonly lost: readonly ServerState[];
  /** The identifiers of servers that are not listed any more. */
  readonly outdated: readonly string[];
}

function parseReports(reports: readonly StoredReport[], now: number): Registered {
  const present = reports.filter(({ ageMs }) => Math.abs(ageMs) <= GONE_AFTER_MS);
  const gone = reports
    .filter((each) => !present.includes(each))
    .toSorted((one, other) => Math.abs(one.ageMs) - Math.abs(other.ageMs));
  const lost = gone.slice(0, MAX_LOST).filter(({ ageMs }) => Math.abs(ageMs) <= LOST_FOR_MS);
  return {
    servers: present.flatMap((each) => parseReport(each, now)),
    lost: lost.flatMap((each) => parseReport(each, now - each.ageMs)),
    outdated: gone.slice(lost.length).map(({ id }) => id),
  };
}

/** Returns the state of a server whose report this release understands. */
function parseReport({ id, report }: StoredReport, seenAt: number): readonly ServerState[] {
  const read = ServerReport.read(parseJson(report));
  return read instanceof Invalid ? [] : [{ ...read, id, adminUrl: originOf(read.adminUrl), seenAt }];
}

/** A server that has started again on the same machine and port is not lost. */
function withoutRestarted(
  lost: readonly ServerState[],
  present: readonly ServerState[],
): readonly ServerState[] {
  const names = new Set(present.map(nameOfServer));
  return lost.filter((each) => !names.has(nameOfServer(each)));
}

function oldestFirst(one: ServerState, other: ServerState): number {
  return one.startedAt - other.startedAt;
}

/** Whoever can write to the database can write any URL, and pages link to it. Only its host and port are used. */
function originOf(url: string | null | undefined): string | null | undefined {
  if (url === null) return null;
  const { protocol = "", origin } = URL.parse(url ?? "") ?? {};
  return /^https?:$/.test(protocol) ? origin : undefined;
}
