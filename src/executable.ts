/** What an executable of `npm run build` contains beside the code. */
export interface ExecutableContents {
  /** The commit that it was built from. */
  readonly commit: string;
  /** The files of the console, as `admin/console/build.ts` writes them. */
  readonly console: string;
}

/** Undefined in a program that runs from its source: `scripts/build.ts` replaces this module. */
export const EXECUTABLE: ExecutableContents | undefined = undefined;
