/** The input as a whole cannot be read: the import ends. The message names the line where that is known. */
export class InputError extends Error {}
