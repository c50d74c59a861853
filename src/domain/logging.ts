/* What a user can set about logs, and how much of a request they show. */

export const LOG_FORMATS = ["json", "text"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];
/** The levels in ascending order of importance. */
export const LOG_LEVELS = ["info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** The fields that an operator may leave out of the access log. */
export const ACCESS_LOG_FIELDS = ["address", "path", "userAgent", "errorCode", "traceId"] as const;
export type AccessLogField = (typeof ACCESS_LOG_FIELDS)[number];

/** Logs cut the methods, paths and other texts of requests: each can be as long as the head of a request. */
export const MAX_LOGGED_METHOD_LENGTH = 20;
export const MAX_LOGGED_LENGTH = 200;
