import type { Awaitable } from "../../runtime/awaitable.ts";
import type { Question, QuestionState, ServerState, StoredReport } from "../servers.ts";

/** What each server on the database reports about itself. A crash of PostgreSQL loses it until the next report. */
export interface ServerReportStore {
  /** Replaces the report of a server, and returns those of all others. */
  report(id: string, report: string): Promise<readonly StoredReport[]>;
  listReports(): Awaitable<readonly StoredReport[]>;
  deleteReports(ids: readonly string[]): Promise<void>;
}

/** Questions to servers. `KeyStore.changesSince` shows whether there are any. */
export interface QuestionStore {
  /** Stores all of the questions. Throws Overloaded if there are too many already. */
  ask(questions: readonly Question[]): Promise<void>;
  /**
   * Takes up to so many of the questions that a server may answer, each once. Deletes old questions, which nobody waits
   * for.
   */
  take(server: string, machine: string, most: number): Promise<readonly Question[]>;
  answer(id: string, answer: string): Promise<void>;
  /** Returns the questions that still exist. */
  readAnswers(ids: readonly string[]): Awaitable<readonly QuestionState[]>;
  forget(ids: readonly string[]): Promise<void>;
}

/** The servers on the database. */
export interface ServerRegister {
  /** Lists this server and those that have reported lately, the oldest first. */
  list(): Awaitable<readonly ServerState[]>;
  /** Lists the servers that were killed in the last hour, or have lost their network, and did not start again. */
  lost(): Awaitable<readonly ServerState[]>;
}
