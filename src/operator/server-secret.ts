import { createHmac, randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { SERVER_SECRET } from "../domain/operators.ts";
import type { SettingsStore } from "../domain/ports.ts";
import { isSameSecret } from "./sign-in.ts";

const SECRET_BYTES = 32;
/** How long a signed request is valid, before and after its time: clocks of servers differ. */
const REQUEST_MS = 30_000;
const REQUEST = /^Petstore-Server (\d{13})\.([\w-]{22})\.([\w-]{43})$/;

export const newNonce = (): string => randomBytes(16).toString("base64url");

interface ServerRequest {
  /** Origin of the listener that it is for: whoever gets it can send it to no other. */
  readonly to: string;
  readonly method: string;
  readonly target: string;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** What the servers of a database, and the commands that can open it, know: they recognize one another by it. */
export class ServerSecret {
  readonly #secret: Buffer;

  constructor(secret: string) {
    this.#secret = Buffer.from(secret, "base64url");
    if (this.#secret.length !== SECRET_BYTES) throw new Error(`the setting ${SERVER_SECRET} is damaged`);
  }

  /** The first server or command creates it. Of several that do so together, one wins and all use its secret. */
  static async open(settings: Pick<SettingsStore, "saveIfMissing">): Promise<ServerSecret> {
    const candidate = randomBytes(SECRET_BYTES).toString("base64url");
    return new ServerSecret(await settings.saveIfMissing(SERVER_SECRET, candidate));
  }

  /**
   * What a server with this URL for operators responds to a nonce. The machine is part of it: a program that has taken
   * the port of a server cannot pass the nonce on to a server on another machine.
   */
  proofOf(nonce: string, url: string): string {
    return this.#sign("proof", nonce, url, hostname());
  }

  /** Compares in constant time. */
  isProof(proof: string, nonce: string, url: string): boolean {
    return isSameSecret(proof, this.proofOf(nonce, url));
  }

  /** The `Authorization` of a request from one server, or from a command on its machine, to another server. */
  authorizationOf({ to, method, target, at }: ServerRequest): string {
    const nonce = newNonce();
    return `Petstore-Server ${at}.${nonce}.${this.#sign("request", to, method, target, `${at}`, nonce)}`;
  }

  /** Whether `authorizationOf` made it for this request, within 30 seconds of `at`. */
  isAuthorized(authorization: string, { to, method, target, at }: ServerRequest): boolean {
    const [, sentAt = "", nonce = "", signature = ""] = REQUEST.exec(authorization) ?? [];
    return (
      Math.abs(at - Number(sentAt)) <= REQUEST_MS &&
      isSameSecret(signature, this.#sign("request", to, method, target, sentAt, nonce))
    );
  }

  /** No part has a line break, so no two lists of parts are signed alike. */
  #sign(...parts: readonly string[]): string {
    return createHmac("sha256", this.#secret).update(parts.join("\n")).digest("base64url");
  }
}
