import { RawConnection } from "../../trials/harness/http-connection.ts";
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
}

/** Something that happens between requests. */
export type Action = (server: Server) => unknown;

export type Step = Row | Exchange | Action;

export interface Scenario extends ServerOptions {
  readonly listener?: "admin";
  readonly steps: readonly Step[];
}

/** What was received, by the names of the exchanges, in their order. */
export type Responses = Map<string, string>;

/** Plays one scenario after another: servers that start at once would keep a slow machine from responding in time. */
export async function playAll(scenarios: readonly Scenario[]): Promise<Responses> {
  const played: Responses[] = [];
  for (const scenario of scenarios) played.push(await play(scenario));
  const responses: Responses = new Map(played.flatMap((some) => [...some]));
  const count = played.reduce((sum, { size }) => sum + size, 0);
  if (responses.size < count) throw new Error("two requests of different scenarios have the same name");
  return responses;
}

async function play(scenario: Scenario): Promise<Responses> {
  const server = await Server.start(scenario);
  const player = new Player(server, scenario.listener === "admin" ? server.adminPort : server.port);
  for (const step of scenario.steps) {
    if (typeof step === "function") await step(server);
    else await player.play("send" in step ? step : { name: step[0], send: step.slice(1) });
  }
  player.close();
  await server.stop();
  return player.responses;
}

class Player {
  readonly responses: Responses = new Map();
  readonly #connections = new Map<string, RawConnection>();
  readonly #normaliser = new Normaliser();

  constructor(
    private readonly server: Server,
    private readonly port: number,
  ) {}

  async play({ name, send, isPipelined, on = "", responses = send.length }: Exchange): Promise<void> {
    if (name !== undefined && this.responses.has(name)) throw new Error(`two requests are called: ${name}`);
    const connection = this.#connections.get(on) ?? new RawConnection(this.port);
    this.#connections.set(on, connection);
    if (isPipelined) await connection.write(send.map((piece) => this.#fill(piece)).join(""));

    const texts: string[] = [];
    let closes = false;
    for (let i = 0; i < Math.max(responses, send.length); i++) {
      const piece = this.#fill(send[i] ?? "");
      if (!isPipelined && piece !== "") await connection.write(piece);
      if (i >= responses) continue;
      const raw = await connection.response(piece.slice(0, piece.indexOf(" ")));
      texts.push(this.#normaliser.normalise(raw, piece));
      closes ||= connection.isClosed || /^connection: close\r$/im.test(raw);
    }
    if (closes) {
      const rest = await connection.rest();
      texts.push(`${rest}(The server closes the connection.)`);
      connection.socket.destroy();
      this.#connections.delete(on);
    }
    if (name !== undefined) this.responses.set(name, texts.join("\n\n"));
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.socket.destroy();
  }

  /** `{{name}}` stands for a key, or for what an earlier response gave: `next`, `cursor`, `etag`. */
  #fill(piece: string): string {
    return piece.replace(/\{\{(\w+)\}\}/g, (_, name: string) => {
      return this.server.secret(name) ?? this.#normaliser.given(name) ?? `(no ${name})`;
    });
  }
}
