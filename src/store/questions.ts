import { Overloaded } from "../api/errors.ts";
import type { QuestionStore } from "../domain/ports/servers.ts";
import type { Question, QuestionState } from "../domain/servers.ts";
import { MAX_ANSWER_LENGTH } from "../domain/size-limits.ts";
import type { Awaitable } from "../runtime/awaitable.ts";
import { objectsOf, rowsOf, type SqlDatabase } from "./sql/steps.ts";
import { jsonArray, jsonRows } from "./sql/values.ts";

/** The most questions that wait or whose answer does. */
const MAX_QUESTIONS = 256;
const MAX_QUERY_LENGTH = 16_384;
/** The longest identifier of a question or a server, and the longest name of an operation. */
const MAX_NAME_LENGTH = 300;
/** Whoever asks waits for less. */
const MAX_AGE_MS = 30_000;
/** Whoever else can write to the database can store any number of rows. Above this one, all are deleted. */
const MAX_ROWS = 1_000;

export class SqlQuestionStore implements QuestionStore {
  constructor(private readonly database: SqlDatabase) {}

  async ask(questions: readonly Question[]): Promise<void> {
    const { tableOfJson, now } = this.database.dialect;
    const rows = questions.map(({ id, to = null, operation, query }) => [id, to, operation, query]);
    const columns = { id: "text", server: "text", operation: "text", query: "text" } as const;
    const insert = `INSERT INTO server_questions (id, server, operation, query, asked_at)
      SELECT id, server, operation, query, ${now} FROM ${tableOfJson(columns, "?1")}
      WHERE (SELECT count(*) FROM server_questions) + ?2 <= ${MAX_QUESTIONS} RETURNING id`;
    const stored = await this.database.write(() => rowsOf(insert, jsonRows(rows), rows.length));
    if (stored.length < rows.length) throw new Overloaded(`${MAX_QUESTIONS} questions wait for servers`);
  }

  take(server: string, machine: string, most: number): Promise<readonly Question[]> {
    const { now } = this.database.dialect;
    const deleteOld = `DELETE FROM server_questions WHERE abs(${now} - asked_at) > ${MAX_AGE_MS}
      OR (SELECT count(*) FROM (SELECT 1 FROM server_questions LIMIT ${MAX_ROWS + 1}) AS stored) > ${MAX_ROWS}`;
    const take = `UPDATE server_questions SET taken_by = ?1 WHERE taken_by IS NULL AND id IN (
      SELECT id FROM server_questions WHERE taken_by IS NULL AND (server IS NULL OR server IN (?1, ?2))
        AND octet_length(id) <= ${MAX_NAME_LENGTH} AND octet_length(operation) <= ${MAX_NAME_LENGTH}
        AND octet_length(query) <= ${MAX_QUERY_LENGTH} LIMIT ?3)
      RETURNING id, operation, query`;
    return this.database.write(function* () {
      yield* rowsOf(deleteOld);
      return yield* objectsOf<Question>(take, server, machine, most);
    });
  }

  async answer(id: string, answer: string): Promise<void> {
    const update = "UPDATE server_questions SET answer = ? WHERE id = ?";
    await this.database.write(() => rowsOf(update, answer, id));
  }

  readAnswers(ids: readonly string[]): Awaitable<readonly QuestionState[]> {
    const select = `SELECT id, substr(taken_by, 1, ${MAX_NAME_LENGTH}) AS "takenBy",
      CASE WHEN length(answer) <= ${MAX_ANSWER_LENGTH} THEN answer END AS answer
      FROM server_questions WHERE ${this.database.dialect.isOneOf("id", "?", "text")}`;
    return this.database.read(() => objectsOf(select, jsonArray(ids)));
  }

  async forget(ids: readonly string[]): Promise<void> {
    const { dialect } = this.database;
    const sql = `DELETE FROM server_questions WHERE ${dialect.isOneOf("id", "?", "text")}`;
    await this.database.write(() => rowsOf(sql, jsonArray(ids)));
  }
}
