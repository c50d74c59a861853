import { expect, test } from "bun:test";
import { ActivityCollector, NO_ACTIVITY } from "../../src/domain/servers.ts";

test("the activity of a server is what its parts report, each until it is removed", () => {
  const activity = new ActivityCollector();
  expect(activity.collect()).toEqual(NO_ACTIVITY);
  let requests = 1;
  activity.add(() => ({ requests, adminUrl: null }));
  const remove = activity.add(() => ({ adminUrl: "http://127.0.0.1:8090" }));
  expect(activity.collect()).toEqual({ ...NO_ACTIVITY, requests: 1, adminUrl: "http://127.0.0.1:8090" });
  requests = 2;
  remove();
  expect(activity.collect()).toEqual({ ...NO_ACTIVITY, requests: 2, adminUrl: null });
});
