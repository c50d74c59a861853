import { array, boolean, type Infer, line, nullable, object, oneOf, text } from "../../api/schema.ts";
import { ok, tagged } from "./rows.ts";

export const SETTING_SOURCES = ["default", "flag", "variable", "env file"] as const;

const Setting = object(
  "A setting of the server that responds",
  {
    name: line(60, { description: "The flag without its dashes", examples: ["drain-delay"] }),
    variable: line(80, { description: "The environment variable", examples: ["PETSTORE_DRAIN_DELAY"] }),
    value: nullable(text(10_000, "The value in effect. Secrets are masked.")),
    default: nullable(text(10_000, "The value if nothing is set")),
    source: oneOf(SETTING_SOURCES, "Where the value comes from"),
    help: text(2_000, "What the setting does"),
  },
  {
    given: text(10_000, "What was set, if the value in effect is another"),
    isVariableOnly: boolean("Whether there is no flag, because others could read it in a list of processes"),
  },
);
export type Setting = Infer<typeof Setting>;

/** The setting as a user sets it. */
export function settingText({ name, variable, isVariableOnly }: Setting): string {
  return isVariableOnly ? variable : `--${name}`;
}

export const Settings = object("The settings of the server that responds", {
  items: array(Setting, { json: "In the order of `petstore serve --help`" }),
});

/** The operation that shows how a server is set. */
export const SETTING_OPERATIONS = tagged("Server", {
  getSettings: {
    method: "GET",
    path: "/settings",
    summary: "List settings",
    description: "Lists the settings of the server that responds, each with its source. Secrets are masked.",
    needsRunningServer: true,
    success: ok("The settings", Settings),
  },
});
