import { type Refusal, Unavailable } from "../contract/errors.ts";
import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";
import { DAY_MS, type Verdict } from "../domain/rate-limit.ts";
import type { Awaitable, Clock, Span } from "../domain/ports.ts";
import { etagOf } from "../etag.ts";
import type { Incoming } from "../http1/request.ts";
import { line, type Reply } from "../http1/response.ts";
import type { Caller } from "../auth/authenticator.ts";
import { isKnown } from "./conditional-requests.ts";
import type { Deadlines } from "./request-timeout.ts";
import { removalFields } from "./deprecation-headers.ts";
import type { FaultLog } from "./error-log.ts";
import type { Handlers } from "./handlers.ts";
import { type OperationInput, readInput } from "./validation.ts";
import type { KeptAnswer, KeptAnswers } from "./response-cache.ts";
import {
  emptyReply,
  errorReply,
  faultReply,
  type HeaderFields,
  jsonReply,
  limitLines,
  linesOf,
  unavailableReply,
} from "./responses.ts";
import { identifierIn, type Route } from "./router.ts";

export interface Operating {
  readonly handlers: Handlers;
  /** By operation; none where the store cannot tell whether an answer still holds. */
  readonly kept: Partial<Record<OperationId, KeptAnswers>>;
  readonly deadlines: Deadlines;
  readonly clock: Clock;
  readonly faults: FaultLog;
  readonly baseUrl: string;
}

/** Answers a request that was admitted. */
export type Operate = (
  incoming: Incoming,
  route: Route | undefined,
  caller: Caller,
  verdict: Verdict,
) => Awaitable<Reply>;

/** Everything that serves one operation, put together once. */
interface Desk {
  readonly id: OperationId;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  readonly kept: KeptAnswers | undefined;
  /** What every answer of the operation says in its head. */
  readonly lines: string;
  /** When the operation is removed; never, as a rule. */
  readonly goneAt: number;
}

/** One request at its desk. */
interface Task {
  readonly desk: Desk;
  readonly incoming: Incoming;
  readonly verdict: Verdict;
  /** What a kept answer is found by. */
  readonly words: string;
}

type AnyAnswer =
  | {
      readonly body: string;
      readonly headers?: HeaderFields;
      readonly etag?: string;
      readonly lastsIn?: Span;
    }
  | Refusal;
/** Any of the handlers, for an input that was read by that same operation's entry in the table. */
type AnyHandler = (input: OperationInput) => Awaitable<AnyAnswer>;

export function createOperate(operating: Operating): Operate {
  const { deadlines, clock, faults } = operating;
  const desks = desksOf(operating);

  return (incoming, route, caller, verdict) => {
    if (route === undefined)
      return errorReply("not_found", "No resource lives at this path.", limitLines(verdict));
    const id = route.operations.get(incoming.method);
    if (id === undefined) return otherMethod(incoming.method, route, verdict);

    const desk = desks[id];
    if (hasGone(desk, verdict)) return removed(verdict, desk);
    const words = desk.operation.identifier ? identifierIn(incoming.path, route) : incoming.query;
    const known = desk.kept?.find(words);
    if (known) return replyUnlessKnown(incoming, known, verdict);

    const task = { desk, incoming, verdict, words };
    try {
      const input = readInput({ incoming, operation: desk.operation, words }, caller);
      return input instanceof Promise
        ? input.then((read) => work(task, read)).catch((error: unknown) => fault(task, error))
        : work(task, input);
    } catch (error) {
      return fault(task, error);
    }
  };

  /**
   * The clock takes its time, and is not asked before the end is near: the caller's window ends later than now, by a
   * clock that is less than a day behind this one.
   */
  function hasGone({ goneAt }: Desk, { resetAt }: Verdict): boolean {
    return resetAt * 1000 + DAY_MS >= goneAt && clock.now() >= goneAt;
  }

  /** The deadline begins here: until the input had come it was the client's time that passed. */
  function work(task: Task, input: OperationInput | Refusal): Awaitable<Reply> {
    if ("refused" in input) return refusal(input, task);
    const answer = task.desk.handler(input);
    if (!(answer instanceof Promise)) return write(task, answer);
    const reply = answer.then((given) => write(task, given));
    return deadlines.bound(reply, (error) => fault(task, error));
  }

  function fault({ desk: { id, lines }, verdict }: Task, error: unknown): Reply {
    faults.report(id, error);
    const head = lines + limitLines(verdict);
    if (!(error instanceof Unavailable)) return faultReply(head);
    const message = "The service cannot answer right now; try again soon.";
    return unavailableReply(message, head, error.retryAfterSeconds);
  }
}

function write(task: Task, answer: AnyAnswer): Reply {
  if ("refused" in answer) return refusal(answer, task);
  const { desk, verdict, incoming, words } = task;
  const { body, headers, lastsIn } = answer;
  const lines = headers ? desk.lines + linesOf(headers) : desk.lines;
  const { method, success } = desk.operation;
  if (method !== "GET") return jsonReply(success.status, lines + limitLines(verdict), body);
  const etag = answer.etag ?? etagOf(body);
  const whole = { lines: lines + line("ETag", etag), body, etag };
  if (lastsIn && desk.kept?.isWanted(words)) desk.kept.keep(words, whole, lastsIn);
  return replyUnlessKnown(incoming, whole, verdict);
}

/** 304 when the client has this already. */
function replyUnlessKnown({ fields }: Incoming, { lines, body, etag }: KeptAnswer, verdict: Verdict): Reply {
  const head = lines + limitLines(verdict);
  return isKnown(etag, fields.get("if-none-match")) ? emptyReply(304, head) : jsonReply(200, head, body);
}

function desksOf({ handlers, kept, baseUrl }: Operating): Readonly<Record<OperationId, Desk>> {
  const entries = (Object.entries(OPERATIONS) as [OperationId, Operation][]).map(([id, operation]) => {
    const { deprecated } = operation;
    const lines = linesOf(deprecated ? removalFields(deprecated, baseUrl) : {});
    const goneAt = deprecated?.sunset.getTime() ?? Infinity;
    const handler = handlers[id] as unknown as AnyHandler;
    return [id, { id, operation, handler, kept: kept[id], lines, goneAt }];
  });
  return Object.fromEntries(entries) as Record<OperationId, Desk>;
}

function refusal({ refused, message }: Refusal, { verdict, desk }: Task): Reply {
  return errorReply(refused, message, desk.lines + limitLines(verdict));
}

function otherMethod(method: string, { methods }: Route, verdict: Verdict): Reply {
  const lines = line("Allow", methods) + limitLines(verdict);
  if (method === "OPTIONS") return emptyReply(204, lines);
  return errorReply("method_not_allowed", `This path allows ${methods}, not ${method}.`, lines);
}

function removed(verdict: Verdict, { lines }: Desk): Reply {
  return errorReply(
    "operation_removed",
    "This operation has been removed; Link names its successor.",
    lines + limitLines(verdict),
  );
}
