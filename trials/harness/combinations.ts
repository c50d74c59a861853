/** Values for each filter; a filter without values does not compile. */
export type ValuesOf<Filters> = { readonly [Name in keyof Filters]-?: readonly NonNullable<Filters[Name]>[] };

/** Every set of the filters, of at most so many, with each of their values. */
export function combinations<Filters extends object>(
  values: ValuesOf<Filters>,
  most = Infinity,
): readonly Partial<Filters>[] {
  const sets: [string, unknown][][] = [[]];
  for (const [name, some] of Object.entries<readonly unknown[]>(values)) {
    const extended = sets.filter(({ length }) => length < most);
    sets.push(...some.flatMap((value) => extended.map((set) => set.concat([[name, value]]))));
  }
  // Each set has some of the filters.
  return sets.map((set) => Object.fromEntries(set) as Partial<Filters>);
}
