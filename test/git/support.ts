/** Sends requests about an app's git connection, and commits a project to the connected repository. */
import { createHmac } from "node:crypto";
import type { GitServer } from "../harness/git-server.js";
import type { TestService } from "../harness/service.js";

export const TOKEN = "token-that-nobody-reads";

const actionFile = (value: number): string =>
  `import { defineAction } from "svc";\nimport { twice } from "../../lib/twice";\n\n` +
  `export const config = defineAction({ description: "value ${value}" });\n\n` +
  `export async function execute(): Promise<number> {\n  return twice(${value});\n}\n`;

export const project = (value: number, more: Record<string, string> = {}): Record<string, string> => ({
  "README.md": "not a part of the project",
  "lib/twice.ts": "export const twice = (value: number): number => value * 2;\n",
  "actions/first/action.ts": actionFile(value),
  "actions/second/action.js": "async function execute() {\n  return 2;\n}\n",
  "data/rooms.json": JSON.stringify({ name: "rooms", columns: ["Name"] }),
  "settings.json": JSON.stringify([{ key: "title", value: "Shop" }]),
  ...more,
});

/** @param getServers called only after the service and the git server have started */
export function gitCalls(getServers: () => { service: TestService; server: GitServer }) {
  const path = (rest: string, app = getServers().service.appId) => `/v1/apps/${app}${rest}`;
  const fields = () => ({ provider: "github", url: getServers().server.url, tagPattern: "v*" });
  const connect = (body: object = fields()) => getServers().service.rest("PUT", path("/git"), { body });
  const pull = (query = "", body?: object) => getServers().service.rest("POST", path(`/git/pull${query}`), { body });
  const lastPull = async () => (await getServers().service.rest("GET", path("/git"))).body.git.lastPull;
  const actions = async () =>
    (await getServers().service.rest("GET", path("/actions").replace("v1", "v3"))).body.actions;
  const idOf = async (name: string): Promise<number> =>
    (await actions()).find((action: { name: string }) => action.name === name).id;
  const versions = async (name: string) =>
    (
      await getServers().service.rest(
        "GET",
        `/v3/apps/${getServers().service.appId}/actions/${await idOf(name)}/versions`,
      )
    ).body.versions;
  /** Sends a webhook with the signature header that GitHub uses. */
  const webhook = (secret: string, body: object, headers: Record<string, string> = {}) => {
    const text = JSON.stringify(body);
    const signature = `sha256=${createHmac("sha256", secret).update(text).digest("hex")}`;
    return getServers().service.rest("POST", path("/git/webhook"), {
      as: null,
      body: text,
      headers: { "x-hub-signature-256": signature, ...headers },
    });
  };
  const pushed = (ref: string) => ({ ref, after: "1".repeat(40), repository: { full_name: "any/thing" } });
  return { path, fields, connect, pull, lastPull, actions, idOf, versions, webhook, pushed };
}
