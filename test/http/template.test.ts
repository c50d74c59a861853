import { expect, test } from "bun:test";
import type { Verdict } from "../../src/domain/limits.ts";
import { Template } from "../../src/http/template.ts";

const admitted: Verdict = { outcome: "admitted", limit: 60, remaining: 59, resetAt: 1_000, retryAfter: 0 };
const fieldsOf = (response: Response) =>
  Object.fromEntries([...response.headers].filter(([name]) => !name.startsWith("x-ratelimit")));

test("an answer's own fields are gone with the next answer, and those of them all come back", () => {
  const template = new Template(201, { Link: "<all>" });
  const json = { "content-type": "application/json" };
  const own = template.dress({ Link: "<own>", Location: "/1" }).reply("{}", admitted);
  expect([own.status, fieldsOf(own)]).toEqual([201, { ...json, link: "<own>", location: "/1" }]);
  expect(fieldsOf(template.dress({ Location: "/2" }).reply("{}", admitted))).toEqual({
    ...json,
    link: "<all>",
    location: "/2",
  });
  expect(fieldsOf(template.dress().reply("{}", admitted))).toEqual({ ...json, link: "<all>" });
  // Those that went out before are as they were.
  expect(fieldsOf(own)).toEqual({ ...json, link: "<own>", location: "/1" });
});

test("every answer says where its caller stands, whoever was answered before", () => {
  const template = new Template(200);
  const stand = (verdict: Verdict) => {
    const { headers } = template.reply("{}", verdict);
    const limits = ["limit", "remaining", "reset"].map((name) => Number(headers.get(`x-ratelimit-${name}`)));
    return [...limits, headers.get("retry-after")];
  };
  expect(stand(admitted)).toEqual([60, 59, 1_000, null]);
  expect(stand({ ...admitted, outcome: "limited", limit: 5, remaining: 0, retryAfter: 7 })).toEqual([
    5,
    0,
    1_000,
    "7",
  ]);
  expect(stand({ ...admitted, resetAt: 2_000 })).toEqual([60, 59, 2_000, null]);
});

test("what the client has already is 304 with the ETag, and without a body or its type", async () => {
  const template = new Template(200);
  const ask = (ifNoneMatch: string | null, etag: string) =>
    template.replyUnlessKnown("{}", admitted, { ifNoneMatch, etag });
  const known = ask('W/"a", "b"', '"b"');
  expect([known.status, await known.text(), fieldsOf(known)]).toEqual([304, "", { etag: '"b"' }]);
  const unknown = ask('"b"', '"c"');
  expect([unknown.status, unknown.headers.get("etag")]).toEqual([200, '"c"']);
  expect(unknown.headers.get("content-type")).toBe("application/json");
  // An answer to be changed on its way out, as a server that is leaving does, changes no other.
  unknown.headers.set("Connection", "close");
  expect(ask(null, '"c"').headers.has("connection")).toBe(false);
});
