/** The beginning of the bodies. They look like a new pet but lack the name, so they add nothing to the catalogue. */
const START = '{"categoryId":1,';

/** Valid JSON of about `size` bytes that is costly to parse, by description. */
export function worstBodies(size: number): ReadonlyMap<string, string> {
  const repeat = (start: string, unit: string, end: string) =>
    start + unit.repeat(Math.floor((size - start.length - end.length) / unit.length)) + end;
  const list = (items: string) => repeat(`${START}"a":[1e0`, `,${items}`, "]}");
  const members = (member: string) => repeat(START, `${member},`, '"a":[]}');
  const nested = (open: string, close: string) => {
    const depth = Math.floor((size - START.length - 6) / (open.length + close.length));
    return `${START}"a":${open.repeat(depth)}0${close.repeat(depth)}}`;
  };
  const numbered = (member: (number: number) => string, end = '"a":0}') => {
    let text = START;
    let bytes = START.length + end.length;
    for (let i = 0; bytes < size - 20; i++) {
      text += `${member(i)},`;
      bytes += Buffer.byteLength(member(i)) + 1;
    }
    return text + end;
  };
  return new Map([
    ["objects with a large index for a name", list('{"999":0}')],
    ["objects with a large index for a name, nested in each other", nested('{"999":', "}")],
    ["objects with other indexes for names", list('{"4294967294":0}')],
    ["empty objects", list("{}")],
    ["empty arrays", list("[]")],
    ["arrays nested in each other", nested("[", "]")],
    ["objects nested in each other", nested('{"":', "}")],
    ["small numbers", list("1")],
    ["numbers with exponents", list("-1e-9")],
    ["words", list("null")],
    ["empty strings", list('""')],
    ["many members", members('"":0')],
    ["many members of one known name", members('"name":""')],
    ["many members of one known number", members('"categoryId":1.5')],
    ["members with an escaped name", members('"\\u006eam":0')],
    ["members with different names", numbered((i) => `"${i.toString(36)}x":0`)],
    ["members with different names beyond ASCII", numbered((i) => `"${String.fromCharCode(0xa1 + i)}":0`)],
    ["members with falling indexes for names", numbered((i) => `"${9_999 - i}":0`)],
    ["members with scattered indexes for names", numbered((i) => `"${(i * 7_919) % 99_991}":0`)],
    ["a string of escape sequences", repeat(`${START}"name":"`, "\\n", '"}')],
    ["a string of escaped surrogates", repeat(`${START}"name":"`, "\\ud83d\\ude00", '"}')],
    ["a blank string", repeat(`${START}"name":"`, " ", '"}')],
    ["a long integer", repeat('{"categoryId":1', "0", "}")],
    ["a long integer, divided", repeat('{"categoryId":1', "0", "e-16000}")],
    ["a long fraction", repeat('{"categoryId":0.', "0", "1e16300}")],
    ["white space", repeat(`${START}"a":[1`, " ", "]}")],
  ]);
}
