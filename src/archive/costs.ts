/** The time per byte that a step of a backup or a restore takes, in comparison with the others. */
export const COSTS = { snapshot: 8, copy: 1, check: 6, checksum: 1 } as const;
