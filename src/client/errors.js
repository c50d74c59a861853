/** @import { ResponseMetadata } from "./index.d.ts" */

export class PetstoreError extends Error {
  /**
   * @param {string} message
   * @param {{ cause?: unknown }} [options]
   */
  constructor(message, options) {
    super(message, options);
    this.name = new.target.className;
  }

  /** Survives minification. */
  static className = "PetstoreError";
}

export class ApiError extends PetstoreError {
  static className = "ApiError";

  /** @param {{ code: string | undefined, message: string, response: ResponseMetadata }} options */
  constructor({ code, message, response }) {
    super(message);
    this.code = code;
    this.status = response.status;
    this.requestId = response.requestId;
    this.retryAfter = response.retryAfter;
    this.response = response;
  }
}

export class InvalidRequestError extends ApiError {
  static className = "InvalidRequestError";
}
export class AuthenticationError extends ApiError {
  static className = "AuthenticationError";
}
export class PermissionError extends ApiError {
  static className = "PermissionError";
}
export class NotFoundError extends ApiError {
  static className = "NotFoundError";
}
export class ConflictError extends ApiError {
  static className = "ConflictError";
}
export class RateLimitError extends ApiError {
  static className = "RateLimitError";
}
export class ServerError extends ApiError {
  static className = "ServerError";
}

export class ConnectionError extends PetstoreError {
  static className = "ConnectionError";
}
export class TimeoutError extends PetstoreError {
  static className = "TimeoutError";
}

/** @type {Readonly<Record<number, typeof ApiError>>} */
const CLASSES = {
  401: AuthenticationError,
  403: PermissionError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  422: ConflictError,
  429: RateLimitError,
};

/**
 * The body is `{code, message, status}`, unless something in front of the server responded.
 *
 * @param {string} text
 * @param {ResponseMetadata} response
 * @returns {ApiError}
 */
export function apiError(text, response) {
  const { status } = response;
  const { code, message } = errorBody(text);
  const Class = CLASSES[status] ?? (status < 500 ? InvalidRequestError : ServerError);
  return new Class({ code, message: message ?? `The server responded with status ${status}.`, response });
}

/**
 * @param {string} text
 * @returns {{ code?: string, message?: string }}
 */
function errorBody(text) {
  try {
    const body = JSON.parse(text);
    return typeof body?.code === "string" && typeof body.message === "string" ? body : {};
  } catch {
    return {};
  }
}
