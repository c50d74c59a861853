import { clientOf, HOST, ORIGIN } from "../message.ts";
import type { Scenario } from "../play.ts";
import type { Server } from "../server.ts";

const { get, head, post, patch } = clientOf("main");
const STATUSES = ["available", "pending", "sold", undefined];
const COUNT = 150;

/** Enough pets for several pages, added by another key. */
async function addPets(server: Server): Promise<void> {
  for (let i = 1; i <= COUNT; i++) {
    const response = await fetch(`http://127.0.0.1:${server.port}/v1/pets`, {
      method: "POST",
      headers: { Authorization: `Bearer ${server.secret("other")}`, "Content-Type": "application/json" },
      body: JSON.stringify({ name: `Pet ${i}`, categoryId: i, status: STATUSES[i % 4] }),
    });
    if (response.status !== 201) throw new Error(`pet ${i} was not added: ${response.status}`);
  }
}

const next = `GET {{next}} HTTP/1.1\r\n${HOST}\r\nAuthorization: Bearer {{main}}\r\n\r\n`;

const idsTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1).join(",");

/** Pages, filters, cursors, validators. */
export const listings: Scenario = {
  keys: {
    main: ["--plan", "business"],
    other: ["--plan", "enterprise", "--per-minute", "1000000", "--per-day", "1000000"],
  },
  flags: ["--public-url", ORIGIN],
  steps: [
    addPets,
    ["listPets 200: 20 by default", get("/pets")],
    ["listPets 200: the next 20", next],
    ["listPets 200: a page of 100", get("/pets?limit=100")],
    ["listPets 200: the rest behind 100", next],
    ["listPets 200: a page of 1", get("/pets?limit=1")],
    ["listPets 200: the second page of 1", next],
    ["listPets 200: the third page of 1", next],
    ["listPets 200: a page of 1 of those available", get("/pets?limit=1&status=available")],
    ["listPets 200: the second page of 1 of those available", next],
    ["listPets 200: available", get("/pets?status=available")],
    ["listPets 200: the last of those available", next],
    ["listPets 200: pending", get("/pets?status=pending&limit=3")],
    ["listPets 200: sold", get("/pets?limit=3&status=sold")],
    ["listPets 200: an unknown parameter is ignored", get("/pets?limit=1&colour=red")],
    ["listPets 200: an unknown parameter may be repeated", get("/pets?limit=1&x=1&x=2")],
    ["listPets 200: an encoded value", get("/pets?limit=%31")],
    ["listPets 200: an encoded name", get("/pets?l%69mit=1")],
    ["listPets 200: parameters have a case", get("/pets?Limit=1&limit=2")],
    ["listPets 200: an empty query", get("/pets?")],
    ["listPets 200: a query of separators", get("/pets?&&")],
    ["listPets 200: an encoded # is part of an unknown parameter", get("/pets?limit=1&x=%23&y=0")],
    ["listPets 400: limit=0", get("/pets?limit=0")],
    ["listPets 400: limit=101", get("/pets?limit=101")],
    ["listPets 400: limit=-1", get("/pets?limit=-1")],
    ["listPets 400: limit=05", get("/pets?limit=05")],
    ["listPets 400: limit=+5", get("/pets?limit=+5")],
    ["listPets 400: limit=5.0", get("/pets?limit=5.0")],
    ["listPets 400: limit=1e1", get("/pets?limit=1e1")],
    ["listPets 400: limit=abc", get("/pets?limit=abc")],
    ["listPets 400: limit=", get("/pets?limit=")],
    ["listPets 400: limit without a value", get("/pets?limit")],
    ["listPets 400: limit=5&limit=5", get("/pets?limit=5&limit=5")],
    ["listPets 400: limit of twenty digits", get("/pets?limit=10000000000000000005")],
    ["listPets 400: status=Sold", get("/pets?status=Sold")],
    ["listPets 400: status=", get("/pets?status=")],
    ["listPets 400: status=placed, which orders have", get("/pets?status=placed")],
    ["listPets 400: status given twice", get("/pets?status=sold&status=sold")],
    ["listPets 400: limit and status", get("/pets?limit=0&status=lost")],
    ["HEAD listPets 400: no body", head("/pets?limit=0&status=lost")],
    ["listPets 400: a cursor that nobody gave", get("/pets?cursor=abc")],
    ["listPets 400: an empty cursor", get("/pets?cursor=")],
    ["listPets 200: to have a cursor", get("/pets?limit=1")],
    ["listPets 400: a cursor with another end", get("/pets?cursor={{cursor}}0")],
    ["listPets 400: a cursor with another beginning", get("/pets?cursor=0{{cursor}}")],
    ["listPets 400: a cursor given twice", get("/pets?cursor={{cursor}}&cursor={{cursor}}")],
    [
      "listPets 200: a cursor with another limit and a status",
      get("/pets?status=sold&limit=2&cursor={{cursor}}"),
    ],
    ["listOrders 400: a cursor of pets", get("/store/orders?cursor={{cursor}}")],

    ["listPets 200: asked the first time", get("/pets?limit=3")],
    ["listPets 200: asked the second time", get("/pets?limit=3")],
    ["listPets 200: asked the third time", get("/pets?limit=3")],
    ["HEAD listPets 200: no body", head("/pets?limit=3")],
    ["listPets 304: the ETag that was given", get("/pets?limit=3", "If-None-Match: {{etag}}")],
    ["listPets 304: a weak ETag", get("/pets?limit=3", "If-None-Match: W/{{etag}}")],
    ["listPets 304: one of several", get("/pets?limit=3", 'If-None-Match: "a", {{etag}}, "b"')],
    [
      "listPets 304: in several headers",
      get("/pets?limit=3", 'If-None-Match: "a"', "If-None-Match: {{etag}}"),
    ],
    ["listPets 304: any", get("/pets?limit=3", "If-None-Match: *")],
    ["HEAD listPets 304", head("/pets?limit=3", "If-None-Match: {{etag}}")],
    ["listPets 200: an ETag without its quotes", get("/pets?limit=3", "If-None-Match: abc")],
    [
      "listPets 200: If-Modified-Since is ignored",
      get("/pets?limit=3", "If-Modified-Since: Sun, 15 Nov 2099 00:00:00 GMT"),
    ],
    ["listPets 200: Range is ignored", get("/pets?limit=3", "Range: bytes=0-1")],
    [
      "listPets 200: Accept is ignored",
      get("/pets?limit=3", "Accept: text/html", "Accept-Encoding: gzip, br"),
    ],
    ["getPet 200: before its order", get("/pets/3")],
    ["getPet 200: before its order, once more", get("/pets/3")],
    ["placeOrder 201: a pet without a status, on a page that was given", post("/store/orders", { petId: 4 })],
    ["listPets 200: the page before the one that changed", get("/pets?limit=3")],
    ["listPets 200: the page that changed", get("/pets?limit=4")],
    ["listPets 200: the page that changed, once more", get("/pets?limit=4")],
    ["listPets 304: the page that changed", get("/pets?limit=4", "If-None-Match: {{etag}}")],
    ["updateOrder 200: cancelled", patch("/store/orders/1", { status: "cancelled" })],
    ["listPets 200: an ETag of before the change", get("/pets?limit=4", "If-None-Match: {{etag}}")],
    ["getPet 200: after its order", get("/pets/4")],
    ["listPets 200: a page of 100, once more", get("/pets?limit=100")],
    ["listPets 200: the rest behind 100, once more", next],
    [
      "createPet 201: a pet for the last page",
      post("/pets", { name: "Last", categoryId: 1, status: "sold" }),
    ],
    ["listPets 200: the last page, with that pet", next],

    ["listPets 200: id=7", get("/pets?id=7")],
    ["listPets 304: id=7", get("/pets?id=7", "If-None-Match: {{etag}}")],
    ["HEAD listPets 200: id=7", head("/pets?id=7")],
    ["listPets 200: several ids, in ascending order and each once", get("/pets?id=9,7,150,7")],
    ["listPets 200: an encoded comma", get("/pets?id=7%2C9")],
    ["listPets 200: ids that do not exist are left out", get("/pets?id=-1,0,7,9007199254740993")],
    ["listPets 200: no id exists", get("/pets?id=9223372036854775807")],
    ["listPets 200: ids with a status", get("/pets?id=4,5,6,7,8&status=available")],
    ["listPets 200: ids with a limit", get("/pets?id=8,4,12&limit=2")],
    ["listPets 200: the next page of ids", next],
    ["listPets 400: id=", get("/pets?id=")],
    ["listPets 400: id=7,", get("/pets?id=7,")],
    ["listPets 400: id=07", get("/pets?id=07")],
    ["listPets 400: id=+7", get("/pets?id=+7")],
    ["listPets 400: id=7.0", get("/pets?id=7.0")],
    ["listPets 400: id=abc", get("/pets?id=abc")],
    ["listPets 400: id out of range", get("/pets?id=9223372036854775808")],
    ["listPets 400: id given twice", get("/pets?id=7&id=8")],
    ["listPets 200: 100 ids", get(`/pets?limit=1&id=${idsTo(100)}`)],
    ["listPets 400: 101 ids", get(`/pets?id=${idsTo(101)}`)],
  ],
};
