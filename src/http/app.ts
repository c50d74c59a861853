import type { Log } from "../log.ts";
import type { Reply } from "../http1/response.ts";
import type { Site } from "../http1/request-handler.ts";
import type { Page } from "./static-routes.ts";
import type { Pipeline } from "./pipeline.ts";
import { errorReply, faultReply, unavailableReply } from "./responses.ts";
import { isVersioned, Router } from "./router.ts";

export interface Rooms {
  readonly pipeline: Pipeline;
  /** What stands beside the versioned interface, by path. */
  readonly pages: ReadonlyMap<string, Page>;
  readonly log: Log;
}

/** Everything that is served on a port. */
export function createSite({ pipeline, pages, log }: Rooms): Site {
  const router = new Router();
  return {
    answer: (incoming) =>
      isVersioned(incoming.path)
        ? pipeline(incoming, router.find(incoming.path))
        : (pages.get(incoming.path) ?? nowhere)(incoming),
    fault(error) {
      log.error("a request failed outside of its operation", { error });
      return faultReply();
    },
  };
}

function nowhere(): Reply {
  return errorReply("not_found", "No resource lives at this path; the interface is under /v1.");
}

/** What is served before there is anything to serve. */
export const STARTING: Site = {
  answer: () => unavailableReply("The service is starting."),
  fault: () => faultReply(),
};
