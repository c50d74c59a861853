/* Servers and commands ask servers through the database that they share: whoever can write there may ask. */

import { parseJson } from "../api/json.ts";
import { messageOf } from "../runtime/message-of.ts";
import type { QuestionStore } from "../domain/ports/servers.ts";
import type { Question, QuestionState } from "../domain/servers.ts";
import { scheduler } from "../runtime/scheduler.ts";
import { type CallInput, queryText, type ReadResponse, readRejection, readResponse } from "./calls.ts";
import type { RunningServerOperationId } from "./operations.ts";

/** How often whoever asks looks for the answers. */
const LOOK_EVERY_MS = 50;
/** How long a question waits for a server to take it, and a server for the answer of another one. */
const ANSWER_TIMEOUT_MS = 2_000;
/** How long a command waits for a server, which may wait for other servers or for the receiver of a webhook. */
export const ASK_TIMEOUT_MS = 15_000;

interface AskOptions extends Pick<CallInput, "query"> {
  readonly questions: QuestionStore;
  /** How long to wait for an answer once a server has taken the question. */
  readonly timeoutMs?: number;
}

/** A response, or why there is none; undefined if no server has answered in time. */
type Answer<Id extends RunningServerOperationId> = ReadResponse<Id> | string | undefined;

/** Asks several servers at once. The answers are in the order of `to`, of which `Question` has the meaning. */
export async function askServers<Id extends RunningServerOperationId>(
  to: readonly Question["to"][],
  operation: Id,
  { questions, query, timeoutMs = ANSWER_TIMEOUT_MS }: AskOptions,
): Promise<readonly Answer<Id>[]> {
  if (to.length === 0) return [];
  const asked = to.map((each) => {
    return { id: crypto.randomUUID(), to: each, operation, query: queryText(query) };
  });
  const ids = asked.map(({ id }) => id);
  await questions.ask(asked);
  try {
    const states = await collect(ids, questions, timeoutMs);
    return ids.map((id) => {
      const { answer } = states.find((state) => state.id === id) ?? {};
      return answer === undefined ? undefined : readAnswer(operation, answer);
    });
  } finally {
    // What cannot be deleted now is deleted half a minute later.
    void questions.forget(ids).catch(() => {});
  }
}

/** Waits until every question has an answer, or until those without one have waited for long enough. */
async function collect(
  ids: readonly string[],
  questions: QuestionStore,
  timeoutMs: number,
): Promise<readonly QuestionState[]> {
  const startedAt = scheduler.now();
  for (;;) {
    await scheduler.sleep(LOOK_EVERY_MS);
    const states = await questions.readAnswers(ids);
    const waitedMs = scheduler.now() - startedAt;
    const isOver = ({ takenBy, answer }: QuestionState) =>
      answer !== undefined || waitedMs > (takenBy === undefined ? ANSWER_TIMEOUT_MS : timeoutMs);
    if (states.every(isOver)) return states;
  }
}

function readAnswer<Id extends RunningServerOperationId>(
  operation: Id,
  text: string,
): ReadResponse<Id> | string {
  const { body, error }: { body?: unknown; error?: unknown } = Object(parseJson(text));
  if (error !== undefined) return readRejection(error)?.message ?? "it cannot answer";
  return readResponse(operation, body) ?? "it is of another release, whose answer this one does not know";
}

/** Asks as `askServers` does. A database that fails is the reason why there is no answer. */
export function tryToAsk<Id extends RunningServerOperationId>(
  to: readonly string[],
  operation: Id,
  options: AskOptions,
): Promise<readonly Answer<Id>[]> {
  return askServers(to, operation, options).catch((error: unknown) =>
    to.map(() => `it cannot be asked (${messageOf(error)})`),
  );
}
