import { createHmac, hash, randomBytes, timingSafeEqual } from "node:crypto";

/** 256 random bits, in characters that a URL needs not escape. */
export function generateToken(): string {
  return `pet_admin_${randomBytes(32).toString("base64url")}`;
}

/** `openssl rand -hex 20` and longer: too many possibilities to guess, however fast. */
const UNGUESSABLE_LENGTH = 40;

/** The secret that operators sign in with. It can be replaced while the server runs. */
export class AdminToken {
  #hash: Buffer;
  #sessionKey: Buffer;
  #length: number;
  readonly #onChange: (() => void)[] = [];

  constructor(token: string) {
    this.#hash = digest(token);
    this.#sessionKey = sessionKeyOf(token);
    this.#length = token.length;
  }

  get isUnguessable(): boolean {
    return this.#length >= UNGUESSABLE_LENGTH;
  }

  /** In constant time: the hashes have one length, and which of their bytes differ says nothing of the token. */
  matches(candidate: string): boolean {
    return timingSafeEqual(digest(candidate), this.#hash);
  }

  /** A signature that nobody can make without the token, in base64url. */
  sign(text: string): string {
    return createHmac("sha256", this.#sessionKey).update(text).digest("base64url");
  }

  replace(token: string): void {
    this.#hash = digest(token);
    this.#sessionKey = sessionKeyOf(token);
    this.#length = token.length;
    for (const listener of this.#onChange) listener();
  }

  onReplace(listener: () => void): void {
    this.#onChange.push(listener);
  }
}

function digest(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

function sessionKeyOf(token: string): Buffer {
  return createHmac("sha256", token).update("petstore admin session").digest();
}
