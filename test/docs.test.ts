import { expect, test } from "bun:test";
import { readme, withTables } from "../docs/tables.ts";

/** The formatter pads the cells of tables. */
const unpadded = (text: string) => text.replace(/ +/g, " ").replace(/-{3,}/g, "---");

test("the README's table of settings is the program's own; `bun docs/tables.ts` renews it", () => {
  expect(unpadded(readme())).toBe(unpadded(withTables(readme())));
});
