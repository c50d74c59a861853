/** One step of a schema. A step that was ever released is never edited: a change is a new step at the end. */
export interface Migration {
  /** 1, 2, 3, … in the order of the list. */
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

export function newestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0;
}

/** A database that a later release has changed is not to be written to by this one. */
export function refuseNewer(version: number, migrations: readonly Migration[]): void {
  const known = newestOf(migrations);
  if (version <= known) return;
  throw new Error(
    `a newer petstore made it (schema ${version}, and this one knows ${known}); upgrade petstore`,
  );
}
