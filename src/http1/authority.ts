const PORT = "(?::[0-9]*)?";
/** A registered name or an IPv4 address. The grammar allows a comma, which no name has but a list of hosts does. */
const NAME = new RegExp(`^(?:[\\w\\-.~!$&'()*+;=]|%[\\da-f]{2})+${PORT}$`, "i");
const IP_LITERAL = new RegExp(`^\\[([\\da-f:.]+|v[\\da-f]+\\.[\\w\\-.~!$&'()*+;=:]+)\\]${PORT}$`, "i");

/** Whether the text is a host, which may not be empty, and perhaps a port (RFC 9110, 4.2.1 and 7.2; RFC 3986, 3.2). */
export function isHostAndPort(text: string): boolean {
  if (!text.startsWith("[")) return NAME.test(text);
  const address = IP_LITERAL.exec(text)?.[1];
  return address !== undefined && (/^v/i.test(address) || isIpv6(address));
}

/** node:net is loaded when it is used, because that takes 8 ms. */
function isIpv6(address: string): boolean {
  return process.getBuiltinModule("node:net").isIPv6(address);
}
