import { nameOfServer, type ServerState } from "../../domain/servers.ts";
import { type ReadResponse, unreadableText } from "../calls.ts";
import type { AdminOperationId } from "../operations.ts";
import type { ServerServices } from "./services.ts";

/** The number of servers that are asked. Each response has up to 1 MiB. */
const MAX_ASKED = 50;

/** What another server has responded; undefined, and the reason, if it could not be asked. */
export interface Asked<Body> {
  readonly server: ServerState;
  readonly body: Body | undefined;
  /** Why the response, or a part of it, is missing. */
  readonly problem: string | null;
}

function without(server: ServerState, problem: string) {
  return { server, body: undefined, problem };
}

/**
 * Asks all other servers at once. `idOf` returns the identifier that a response has, because another server may have
 * taken the port of one that was killed.
 */
export async function askOthers<Id extends AdminOperationId>(
  servers: ServerServices["servers"],
  ask: (server: ServerState) => Promise<ReadResponse<Id> | string>,
  idOf: (body: ReadResponse<Id>["body"]) => string | undefined,
): Promise<readonly Asked<ReadResponse<Id>["body"]>[]> {
  const others = (await servers.list()).filter(({ id }) => id !== servers.self.id);
  const asked = others.slice(0, MAX_ASKED).map(async (server) => {
    const response = await ask(server);
    if (typeof response === "string") return without(server, response);
    const { body, unreadable } = response;
    if (idOf(body) !== server.id) return without(server, `another server responds at ${server.adminUrl}`);
    return { server, body, problem: unreadable > 0 ? unreadableText(unreadable) : null };
  });
  const left = others
    .slice(MAX_ASKED)
    .map((each) => without(each, `only ${MAX_ASKED} other servers are asked`));
  return [...(await Promise.all(asked)), ...left];
}

/** The name of the server that responds. */
export async function ownName(servers: ServerServices["servers"]): Promise<string> {
  const { self } = servers;
  return nameOfServer((await servers.list()).find(({ id }) => id === self.id) ?? self);
}
