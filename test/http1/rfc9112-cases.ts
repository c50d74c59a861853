import { BODY_LENGTH } from "./cases/body-length.ts";
import type { Case } from "./cases/case.ts";
import { CHUNKS } from "./cases/chunks.ts";
import { CONNECTION } from "./cases/connection.ts";
import { FIELDS } from "./cases/fields.ts";
import { HOST } from "./cases/host.ts";
import { REQUEST_LINE } from "./cases/request-line.ts";
import { SMUGGLING } from "./cases/smuggling.ts";
import { TARGET } from "./cases/target.ts";

/** The grammar of HTTP/1.1 requests (RFC 9112, and RFC 9110 where it refers to it) as cases, valid and not. */
export const RFC_9112_CASES: readonly Case[] = [
  ...REQUEST_LINE,
  ...TARGET,
  ...HOST,
  ...FIELDS,
  ...BODY_LENGTH,
  ...CHUNKS,
  ...CONNECTION,
  ...SMUGGLING,
];
