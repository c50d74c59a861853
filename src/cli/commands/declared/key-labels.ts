/** A key has its name in files as a label with this prefix. */
const ID_LABEL = "id:";

export const labelOfKey = (name: string): string => ID_LABEL + name;

/** The names in files among the labels of a key. */
export function keyNames(labels: readonly string[]): readonly string[] {
  return labels.flatMap((label) => (label.startsWith(ID_LABEL) ? label.slice(ID_LABEL.length) : []));
}
