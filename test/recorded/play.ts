import { Connection } from "./connection.ts";
import { Normaliser } from "./normalise.ts";
import { Server, type ServerOptions } from "./server.ts";

/** A name and what is sent under it, each piece after the response to the one before. */
export type Row = readonly [name: string, ...pieces: string[]];

/** An exchange that takes more than a row to say. */
export interface Exchange {
  /** None where the response is of no interest. */
  readonly name?: string;
  readonly send: readonly string[];
  /** All pieces go out at once. */
  readonly isPipelined?: true;
  /** Which connection, where one is not enough. */
  readonly on?: string;
  /** How many responses are read; as many as there are pieces, unless said. */
  readonly responses?: number;
  /** The client sends no more. */
  readonly ends?: true;
  /** The server closes after a while; the record says when. */
  readonly isTimed?: true;
}

/** Something that happens between requests. */
export type Action = (server: Server) => unknown;

export type Step = Row | Exchange | Action;

export interface Scenario extends ServerOptions {
  readonly steps: readonly Step[];
}

/** What was received, by the names of the exchanges, in their order. */
export type Responses = Map<string, string>;

export async function play(scenario: Scenario): Promise<Responses> {
  const server = await Server.start(scenario);
  const player = new Player(server);
  try {
    for (const step of scenario.steps) {
      if (player.silences === MAX_SILENCES) break;
      if (typeof step === "function") await step(server);
      else await player.play("send" in step ? step : { name: step[0], send: step.slice(1) });
    }
  } finally {
    player.close();
    await server.stop();
  }
  return player.responses;
}

/** More at once would only wait for one another. */
const AT_ONCE = 4;

/** Of each scenario, in their order. They have servers of their own, and so nothing in common but the machine. */
export async function playAll(scenarios: readonly Scenario[]): Promise<Responses[]> {
  const played: Responses[] = [];
  const waiting = [...scenarios.entries()];
  const playOn = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) played[next[0]] = await play(next[1]);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, playOn));
  return played;
}

export function merged(played: readonly Responses[]): Responses {
  return new Map(played.flatMap((responses) => responses.entries().toArray()));
}

/** Seconds after which the server closes a connection. On a busy machine it may take twice as long. */
const PATIENCE = [75, 30];

/** After so many responses that do not come, the others are not waited for. */
const MAX_SILENCES = 3;

class Player {
  silences = 0;
  readonly responses: Responses = new Map();
  readonly #connections = new Map<string, Connection>();
  readonly #normaliser: Normaliser;

  constructor(private readonly server: Server) {
    this.#normaliser = new Normaliser(server);
  }

  async play(exchange: Exchange): Promise<void> {
    const { name, send, isPipelined, on = "", responses = send.length, ends, isTimed } = exchange;
    if (name !== undefined && this.responses.has(name)) throw new Error(`two requests are called: ${name}`);
    const connection = this.#connections.get(on) ?? (await Connection.open(this.server.port));
    this.#connections.set(on, connection);
    const pieces = send.map((piece) => this.#fill(piece));
    if (isPipelined) connection.write(pieces.join(""));

    const texts: string[] = [];
    let closes = ends === true || isTimed === true;
    for (let i = 0; i < Math.max(responses, pieces.length); i++) {
      const piece = pieces[i] ?? "";
      if (!isPipelined && piece !== "") connection.write(piece);
      if (i >= responses) continue;
      const raw = await connection.response(piece.startsWith("HEAD "));
      texts.push(this.#normaliser.normalise(raw, piece));
      closes ||= connection.isClosed || connection.isSilent || /^connection: close\r$/im.test(raw);
    }
    if (ends) connection.end();
    if (closes) texts.push(...(await this.#end(connection, on)));
    if (isTimed) texts.push(this.#wait(connection.waitedMs));
    if (name !== undefined) this.responses.set(name, texts.join("\n\n"));
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.destroy();
  }

  async #end(connection: Connection, on: string): Promise<string[]> {
    const text = await connection.rest();
    if (connection.isSilent) this.silences++;
    const end = connection.isClosed ? "(The server closes the connection.)" : "(The connection stays open.)";
    connection.destroy();
    this.#connections.delete(on);
    return text === "" ? [end] : [text, end];
  }

  /** By the server's clock; one second is for the rounding of its timers. */
  #wait(elapsedMs: number): string {
    const seconds = (elapsedMs * this.server.speed) / 1_000 + 1;
    return `(after ${PATIENCE.find((least) => seconds >= least && seconds < 2 * least) ?? seconds} s)`;
  }

  /** `{{name}}` stands for a key, or for what an earlier response gave: `next`, `cursor`, `etag`. */
  #fill(piece: string): string {
    return piece.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
      return this.server.secret(name) ?? this.#normaliser.given(name) ?? `(no ${name})`;
    });
  }
}
