import { makeTemporaryDirectory, removeDirectory } from "../../runtime/own-files.ts";
import { configOf } from "../../config/config.ts";
import { SETTINGS } from "../../config/options.ts";
import { shownSettings } from "../../config/shown-settings.ts";
import { parseOptions, sourceOf, type ValuesOf } from "../../config/parse-options.ts";
import { formatValue } from "../../config/value-types.ts";
import type { Demo } from "../../demo/demo.ts";
import { defineCommand } from "../command.ts";
import { columns, curlLine } from "../output.ts";

export const demo = defineCommand({
  name: "demo",
  summary: "Try Petstore with sample data and traffic, in a temporary directory",
  description:
    "Serves the API on a free port with sample pets, orders and keys of every plan, and uses it with clients that also run into their limits; one of them is banned. Everything is in a temporary directory. Ctrl-C stops the server and removes the directory.",
  data: "nothing",
  options: {
    port: { ...SETTINGS.port, default: 0, defaultText: "any free port" },
    "admin-address": SETTINGS["admin-address"],
    "log-format": SETTINGS["log-format"],
    // The log would otherwise report the keys of the demo.
    "log-level": { ...SETTINGS["log-level"], default: "warn" },
  },
  examples: ["petstore demo", "petstore demo --port 8080 --admin-address 127.0.0.1:9091"],
  async run({ values }, context) {
    const stopSignal = context.stopSignal(0);
    const directory = makeTemporaryDirectory("petstore-demo-");
    const remove = () => removeDirectory(directory);
    // A second Ctrl-C, and an error that nothing catches, end the process at once.
    process.on("exit", remove);
    try {
      const log = context.openLog({ format: values["log-format"], level: values["log-level"] });
      const { startDemo } = await import("../../demo/demo.ts");
      const { config, shown } = settingsIn(directory, values);
      const { startApp } = await import("../../app.ts");
      const { clock } = context;
      const start = () => startApp(config, { clock, log, shownSettings: shown, isDemo: true });
      await using running = await startDemo(config.data, { clock, startApp: start });
      await context.print(startMessage(running, directory));
      await stopSignal;
    } finally {
      remove();
    }
    return undefined;
  },
});

/** The other settings have their defaults, whatever the variables are: the demo touches no other data. */
function settingsIn(directory: string, given: Pick<ValuesOf<typeof SETTINGS>, "port" | "admin-address">) {
  const address = given["admin-address"];
  const flags = {
    data: [directory],
    port: [`${given.port}`],
    ...(address && { "admin-address": [formatValue(SETTINGS["admin-address"].type, address)] }),
  };
  const values = parseOptions(SETTINGS, flags, {});
  const source = (flag: string) => sourceOf(flag, flags, {});
  return {
    config: configOf(values),
    shown: shownSettings(SETTINGS, values, { source, envFileVariables: new Set() }),
  };
}

function startMessage({ url, consoleUrl, secret }: Demo, directory: string): string {
  const rows = [
    ["  Console", consoleUrl ?? "off"],
    ["  API", url],
    ["  Docs", new URL("/docs", url).href],
  ];
  const nextCode = `The URL of the console signs in once, within five minutes. This prints another one:

  petstore admin-url --data ${directory}

`;
  return `A demo of Petstore, in a temporary directory. Ctrl-C ends it and removes the directory.

${columns(rows)}
${consoleUrl === undefined ? "" : nextCode}Several clients use it. "Price comparison" reaches the limit of its plan within a minute and waits.
"Forgotten script" does not wait, so it is banned within ten seconds. This key is for you:

  ${curlLine(secret, url)}

`;
}
