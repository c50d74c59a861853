/** Compiled, never run: what index.d.ts declares is what the code exports. */
import type * as declared from "../../src/client/index.d.ts";
import type * as errors from "../../src/client/errors.js";
import type * as petstore from "../../src/client/petstore.js";

type Declared = Pick<typeof declared, keyof typeof declared>;
type Implemented = typeof petstore & Omit<typeof errors, "apiError">;

type Extends<A extends B, B> = [A, B];
export type EveryExportIsAsDeclared = Extends<Implemented, Declared>;
export type NothingElseIsExported = Extends<keyof Implemented, keyof Declared>;
