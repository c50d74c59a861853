import { join } from "node:path";
import { loadClientFiles } from "../../src/browser-bundle/bundle.ts";

/** Puts the files of the package where programs in the folder find it. */
export async function installClient(folder: string): Promise<void> {
  const target = join(folder, "node_modules/@petstore/client");
  for (const [name, text] of Object.entries(await loadClientFiles()))
    await Bun.write(join(target, name), text);
}
