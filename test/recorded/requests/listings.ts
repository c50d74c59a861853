import { keyLine, clientOf, HOST, message } from "../message.ts";
import type { Step } from "../play.ts";

const { get, head } = clientOf("lister");
const NEXT = message("GET {{next}} HTTP/1.1", [HOST, keyLine("lister")]);

/** Pages, filters, cursors, validators. They list no pet that a request adds, but those of `fixtures.ts`. */
export const listings: readonly Step[] = [
  ["listPets 200: two pages of three", get("/pets?limit=3"), NEXT],
  ["listPets 200: two pages of one of those sold", get("/pets?limit=1&status=sold"), NEXT],
  ["listPets 200: two pages of one of a category", get("/pets?limit=1&categoryId=7"), NEXT],
  ["listPets 200: of several ids, those of a category", get("/pets?id=1,2,3&categoryId=7")],
  [
    "listPets 200: a status and the lowest category",
    get("/pets?categoryId=-9223372036854775808&status=sold"),
  ],
  ["listPets 200: the last page", get("/pets?id=1,2,3,4&limit=3"), NEXT],
  ["listPets 200: several ids, in ascending order and each once", get("/pets?id=4,2,9007199254740993,2")],
  ["listPets 200: no id exists", get("/pets?id=9223372036854775807")],
  ["listPets 200: an unknown parameter, and an encoded one", get("/pets?l%69mit=%31&x=1&x=2")],
  ["listPets 400: limit=0", get("/pets?limit=0")],
  ["listPets 400: categoryId=07", get("/pets?categoryId=07")],
  ["listPets 400: categoryId twice", get("/pets?categoryId=7&categoryId=7")],
  ["listPets 400: id=7,", get("/pets?id=7,")],
  ["listPets 400: every parameter", get("/pets?limit=0&categoryId=&status=lost&id=x&cursor=abc")],
  ["HEAD listPets 400: no body", head("/pets?limit=0&status=lost")],
  ["listOrders 400: a cursor of pets", get("/pets?limit=1"), get("/store/orders?cursor={{cursor}}")],

  [
    "listPets 200: asked three times, so from the cache",
    get("/pets?limit=2"),
    get("/pets?limit=2"),
    get("/pets?limit=2"),
  ],
  ["HEAD listPets 200: no body", head("/pets?limit=3")],
  [
    "listPets 304: the ETag that was given",
    get("/pets?limit=3"),
    get("/pets?limit=3", "If-None-Match: {{etag}}"),
  ],
  ["listPets 304: a weak one of several", get("/pets?limit=3", 'If-None-Match: "a", W/{{etag}}')],
  ["HEAD listPets 304", head("/pets?limit=3", "If-None-Match: {{etag}}")],
  [
    "listPets 200: headers that are ignored",
    get("/pets?limit=3", "Range: bytes=0-1", "Accept: text/html", "Accept-Encoding: gzip, br"),
  ],

  ["listOrders 200: two pages of two", get("/store/orders?limit=2"), NEXT],
  ["listOrders 200: placed", get("/store/orders?status=placed")],
  [
    "listOrders 304: the ETag that was given",
    get("/store/orders"),
    get("/store/orders", "If-None-Match: {{etag}}"),
  ],
  ["HEAD listOrders 200: no body", head("/store/orders")],
  ["listOrders 200: those of another key are not listed", clientOf("reader").get("/store/orders")],
  ["listOrders 400: status=sold, which pets have", get("/store/orders?status=sold")],
];
