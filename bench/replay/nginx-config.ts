import { NGINX_FOLDERS } from "../../harness/load-balancer.ts";
import type { CapturedResponse, CapturedResponses } from "./responses.ts";

/** nginx in one process, with Petstore's responses as `return` directives. */
export function nginxConfig(
  folder: string,
  responses: CapturedResponses,
  ports: Readonly<Record<string, number>>,
): string {
  const servers = Object.entries(responses).map(([workload, { list, get, create }]) => {
    const first = list ?? create;
    const post = create && list ? `if ($request_method = POST) { ${directives(create)} }` : "";
    return `server {
    listen 127.0.0.1:${ports[workload]};
    location = /v1/pets { ${post} ${first ? directives(first) : ""} }
    ${get ? `location /v1/pets/ { ${directives(get)} }` : ""}
  }`;
  });
  return `daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  ${NGINX_FOLDERS.map((name) => `${name}_temp_path ${folder}/${name};`).join("\n  ")}
  types {}
  default_type application/json;
  ${servers.join("\n  ")}
}
`;
}

function directives({ status, headers, body }: CapturedResponse): string {
  const lines = Object.entries(headers)
    .filter(([name]) => name.toLowerCase() !== "content-type")
    .map(([name, value]) => `add_header ${name} ${quoted(value)} always;`);
  return [...lines, `return ${status} ${quoted(body)};`].join("\n      ");
}

/** `$` would begin a variable and cannot be escaped; no response of the benchmark contains one. */
function quoted(text: string): string {
  if (text.includes("$")) throw new Error("nginx cannot return a dollar sign");
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
