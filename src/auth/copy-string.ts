/**
 * A text of its own. A piece of a request's head keeps all of the head in memory for as long as it is kept itself, so
 * what is remembered beyond its request is copied. Heads are bytes: no character is beyond them.
 */
export function copyOf(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
