/** What an executable of `npm run build` contains besides the code. */
export interface ExecutableContents {
  /** The commit that it was built from. */
  readonly commit: string;
  /** The script and the style sheet of each set of pages. */
  readonly bundles: Readonly<Record<"console" | "docs", { readonly script: string; readonly style: string }>>;
  /** The files of the package `@petstore/client`, by their names. */
  readonly client: Readonly<Record<string, string>>;
  /** The packages of earlier releases in base64, by release. */
  readonly clientReleases: Readonly<Record<string, string>>;
}

/** Undefined in a program that runs from its source: `scripts/build.ts` replaces this module. */
export const EXECUTABLE: ExecutableContents | undefined = undefined;
