import { NO_ACTIVITY, type ServerState } from "../../domain/servers.ts";
import { type CallInput, type ReadResponse, unreadableText } from "../calls.ts";
import type { RunningServerOperationId } from "../operations.ts";
import { tryToAsk } from "../ask-servers.ts";
import type { Services } from "../services.ts";

/** The number of servers that are asked. Each answer has up to 1 MiB. */
const MAX_ASKED = 50;

/** What another server has answered; undefined, and the reason, if it has not. */
export interface Asked<Body> {
  readonly server: ServerState;
  readonly body: Body | undefined;
  /** Why the answer, or a part of it, is missing. */
  readonly problem: string | null;
}

function without(server: ServerState, problem: string) {
  return { server, body: undefined, problem };
}

/** Asks all other servers at once. */
export async function askOthers<Id extends RunningServerOperationId>(
  operation: Id,
  query: CallInput["query"],
  { servers, questions }: Pick<Services, "servers" | "questions">,
): Promise<readonly Asked<ReadResponse<Id>["body"]>[]> {
  const others = (await servers.list()).filter(({ id }) => id !== servers.self.id);
  const asked = others.slice(0, MAX_ASKED);
  const ids = asked.map(({ id }) => id);
  const answers = await tryToAsk(ids, operation, { questions, query });
  return others.map((server, i) => {
    if (i >= MAX_ASKED) return without(server, `only ${MAX_ASKED} other servers are asked`);
    const answer = answers[i] ?? "it does not answer";
    if (typeof answer === "string") return without(server, answer);
    const { body, unreadable } = answer;
    return { server, body, problem: unreadable > 0 ? unreadableText(unreadable) : null };
  });
}

/** The state of the server that responds. */
export async function ownState(servers: Services["servers"]): Promise<ServerState> {
  const { self } = servers;
  const own = (await servers.list()).find(({ id }) => id === self.id);
  return own ?? { ...NO_ACTIVITY, ...self, seenAt: self.startedAt };
}
