import type { Log } from "../log.ts";
import type { RequestHandler, Response } from "../http1/index.ts";
import type { Page } from "./static-routes.ts";
import type { Pipeline } from "./pipeline.ts";
import { errorResponse, internalErrorResponse, unavailableResponse } from "./responses.ts";
import { isVersioned, Router } from "./router.ts";

export interface Rooms {
  readonly pipeline: Pipeline;
  /** What stands beside the versioned interface, by path. */
  readonly pages: ReadonlyMap<string, Page>;
  readonly log: Log;
}

/** Everything that is served on a port. */
export function createSite({ pipeline, pages, log }: Rooms): RequestHandler {
  const router = new Router();
  return {
    handle: (request) =>
      isVersioned(request.path)
        ? pipeline(request, router.find(request.path))
        : (pages.get(request.path) ?? nowhere)(request),
    handleError(error) {
      log.error("a request failed outside of its operation", { error });
      return internalErrorResponse();
    },
  };
}

function nowhere(): Response {
  return errorResponse("not_found", "No resource lives at this path; the interface is under /v1.");
}

/** What is served before there is anything to serve. */
export const STARTING: RequestHandler = {
  handle: () => unavailableResponse("The service is starting."),
  handleError: () => internalErrorResponse(),
};
