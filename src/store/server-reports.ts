import type { ServerReportStore } from "../domain/ports/servers.ts";
import { GONE_AFTER_MS, ServerVersion, type StoredReport } from "../domain/servers.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { parseJson } from "../api/json.ts";
import { Invalid } from "../api/schema.ts";
import { objectsOf, rowsOf, type SqlDatabase, type Steps } from "./sql/steps.ts";
import { jsonArray } from "./sql/values.ts";
import type { Dialect } from "./sql/dialect.ts";

/** The most servers that are listed, and the most characters of a report. */
const MAX_REPORTS = 1_000;
const MAX_LENGTH = 16_384;

const selectReports = ({
  now,
}: Dialect): string => `SELECT id, report, ${now} - reported_at AS "ageMs" FROM servers
  WHERE length(report) <= ${MAX_LENGTH} ORDER BY id LIMIT ${MAX_REPORTS}`;

/** The releases of the servers that run, as far as they register. */
export function* registeredReleases(dialect: Dialect): Steps<readonly string[]> {
  const reports = yield* objectsOf<StoredReport>(selectReports(dialect));
  return reports.flatMap(({ report, ageMs }) => {
    const read = ServerVersion.read(parseJson(report));
    return Math.abs(Number(ageMs)) > GONE_AFTER_MS || read instanceof Invalid ? [] : [read.version];
  });
}

export class SqlServerReportStore implements ServerReportStore {
  readonly #put: string;
  readonly #select: string;

  constructor(private readonly database: SqlDatabase) {
    const { now } = database.dialect;
    this.#put = `INSERT INTO servers (id, report, reported_at) VALUES (?, ?, ${now})
      ON CONFLICT (id) DO UPDATE SET report = excluded.report, reported_at = excluded.reported_at`;
    this.#select = selectReports(database.dialect);
  }

  async report(id: string, report: string): Promise<readonly StoredReport[]> {
    const [first, ...others] = this.database.dialect.writeThenSelect(this.#put, this.#select);
    const stored = await this.database.write(function* () {
      let rows = yield* objectsOf<StoredReport>(first, id, report);
      for (const sql of others) rows = yield* objectsOf(sql);
      return rows;
    });
    return stored.filter((each) => each.id !== id);
  }

  listReports(): Awaitable<readonly StoredReport[]> {
    return this.database.read(() => objectsOf(this.#select));
  }

  async deleteReports(ids: readonly string[]): Promise<void> {
    const { dialect } = this.database;
    const sql = `DELETE FROM servers WHERE ${dialect.isOneOf("id", "?", "text")}`;
    await this.database.write(() => rowsOf(sql, jsonArray(ids)));
  }
}
