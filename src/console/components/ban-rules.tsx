import { call } from "../admin-api.ts";
import { usePolled } from "../polling.ts";

/** What bans a key, with the settings of this server. */
export function BanRules() {
  const settings = usePolled("settings", () => call("getSettings"));
  const valueOf = (name: string) =>
    settings.data?.items.find((setting) => setting.name === name)?.value ?? "…";
  return (
    <>
      A request that is rejected more than {valueOf("ban-grace")} after the first 429 is a strike.{" "}
      {valueOf("ban-strikes")} strikes in a window ban the key for {valueOf("ban-length")}, and for twice as
      long each time that it happens again within a day.
    </>
  );
}
