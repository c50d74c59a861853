const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s;

/** Returns a URL for each host of `scheme://user@a,b:5433/path`, which is how libpq writes several servers. */
export function hostUrls(url: string): readonly string[] {
  const [, start = "", hosts = "", end = ""] = PARTS.exec(url) ?? [];
  return hosts.includes(",") ? hosts.split(",").map((host) => start + host + end) : [url];
}

/** Returns `a,b:5433/path` of such a URL, for messages. */
export function withoutCredentials(url: string): string {
  const urls = hostUrls(url).map((each) => new URL(each));
  return urls.map(({ host }) => host).join(",") + (urls[0]?.pathname.replace(/\/$/, "") ?? "");
}
