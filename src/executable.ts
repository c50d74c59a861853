/** What an executable of `npm run build` contains beside the code. */
export interface ExecutableContents {
  /** The commit that it was built from. */
  readonly commit: string;
  /** What pages load, as `browser-bundle/build.ts` writes it. */
  readonly bundles: Readonly<Record<"console" | "docs", string>>;
}

/** Undefined in a program that runs from its source: `scripts/build.ts` replaces this module. */
export const EXECUTABLE: ExecutableContents | undefined = undefined;
