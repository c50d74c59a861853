import packageJson from "../../package.json" with { type: "json" };
import { EXECUTABLE } from "../executable.ts";

/** Such as `petstore 1.0.0 (commit 66cceed7213f, Bun 1.4.4)`. */
export function versionLine(contents = EXECUTABLE): string {
  const origin = contents === undefined ? "from source" : `commit ${contents.commit}`;
  return `petstore ${packageJson.version} (${origin}, Bun ${Bun.version})`;
}
