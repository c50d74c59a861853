const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

/** One URL for each host of `scheme://user@a,b:5433/path`, as libpq writes several servers. */
export function hostUrls(url: string): readonly string[] {
  const [, start = "", hosts = "", end = ""] = PARTS.exec(url) ?? [];
  return hosts.includes(",") ? hosts.split(",").map((host) => start + host + end) : [url];
}
