import type { Kind } from "../config/kinds.ts";

const WHOLE = /^[1-9]\d{0,15}$/;

/** A key's number. A secret is never taken here: arguments can be read by every user of the machine. */
export const keyId: Kind<number> = {
  placeholder: "ID",
  expected: "the number of a key, as petstore keys list shows it",
  read: (text) => (WHOLE.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined),
  write: String,
};
