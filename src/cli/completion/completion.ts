import { choice } from "../../config/value-types.ts";
import { defineCommand } from "../command.ts";
import { loadCommands } from "../program.ts";
import { bashCompletion } from "./bash.ts";
import { completedCommands } from "./candidates.ts";
import { fishCompletion } from "./fish.ts";
import { zshCompletion } from "./zsh.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion } as const;
const SHELLS = ["bash", "zsh", "fish"] as const;

export const completion = defineCommand({
  name: "completion",
  summary: "Print a script that completes commands and options in a shell",
  description:
    "Prints a completion script for bash, zsh or fish. Commands, options, their choices, files and directories are completed. Load the script when the shell starts; print it again after an upgrade.",
  positionals: { SHELL: choice("SHELL", SHELLS) },
  options: {},
  examples: [
    "petstore completion bash > /etc/bash_completion.d/petstore",
    "petstore completion zsh > /usr/local/share/zsh/site-functions/_petstore",
    "petstore completion fish > /etc/fish/completions/petstore.fish",
  ],
  async run({ positionals: { SHELL: shell } }, { print }) {
    await print(SCRIPTS[shell](completedCommands(await loadCommands())));
    return undefined;
  },
});
