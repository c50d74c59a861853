/**
 * A wrong command line or variable. The message is one line with the name, the value and what is expected. The exit
 * status is 2.
 */
export class UsageError extends Error {}
