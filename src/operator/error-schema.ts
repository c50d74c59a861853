import { array, integer, object, type Schema, text, valueSchema } from "../api/schema.ts";

const nameOrIndex = valueSchema(
  { kind: "other", expected: "a name or an index", json: { type: ["string", "integer"] } },
  (value) => (typeof value === "string" || typeof value === "number" ? value : undefined),
);
export const inputProblem = object("What is wrong with a value in the request", {
  path: array(nameOrIndex, {
    max: 10,
    json: "Where the value is: names and indexes, from the outside in; empty for the request body",
  }),
  message: text(10_000, "The end of a sentence that begins with the value, such as `must be true or false`"),
});

/** The body of an error. The console and the command line name their own fields and flags in the problems. */
export function apiErrorSchema(code: Schema<string>) {
  return object(
    {
      description: "An error. `code` is for programs, `message` for people: it names the field at fault.",
      additionalProperties: false,
    },
    {
      code,
      message: text(100_000),
      status: integer({ min: 400, max: 599, description: "The HTTP status code" }),
    },
    { problems: array(inputProblem, { json: "Each value that is not valid" }) },
  );
}
