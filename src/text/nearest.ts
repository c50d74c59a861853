/** The suggestion of a message, if there is one. */
export function didYouMean(meant: string | undefined): string | undefined {
  return meant === undefined ? undefined : `did you mean ${meant}?`;
}

/** The candidate with the smallest edit distance, if it is small enough to be a typing error. */
export function nearest(typed: string, candidates: readonly string[]): string | undefined {
  const maxDistance = Math.max(1, Math.floor(typed.length / 3));
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(typed, candidate);
    if (distance <= maxDistance && distance < (best?.distance ?? Infinity)) best = { candidate, distance };
  }
  return best?.candidate;
}

/**
 * The Damerau-Levenshtein distance (optimal string alignment). The small packages count a swap of neighbours as two
 * edits, which makes `--prot` too far from `--port`.
 */
function editDistance(from: string, to: string): number {
  const rows = [Array.from({ length: to.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Infinity;
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    rows.push(current);
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwapped = from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const edits = [
        at(row - 1, column),
        at(row, column - 1),
        ...(isSwapped ? [at(row - 2, column - 2)] : []),
      ];
      current.push(Math.min(at(row - 1, column - 1) + (isSame ? 0 : 1), Math.min(...edits) + 1));
    }
  }
  return at(from.length, to.length);
}
