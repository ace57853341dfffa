/**
 * Creates the content of an app by REST: a data source, a private setting, a file, and an action that reads the setting. Checks later that
 * a service still has this content.
 */
import { expect } from "chai";

/** Code of an action. The result is a sum over the letters of the private setting, because a result must not contain the setting. */
const CODE = `async function execute({ settings, payload }) {
  return payload.n + [...settings._secret].reduce((sum, letter) => sum + letter.charCodeAt(0), 0);
}`;
const ENTRIES = [{ n: 1 }, { n: 2 }, { n: 3 }];
const SECRET = "kept in the database, encrypted";
const FILE = "The content of a file.\n".repeat(500);

export interface Content {
  dataSource: number;
  file: number;
}

// biome-ignore lint/suspicious/noExplicitAny: each route returns another type
async function send(url: string, token: string, method: string, path: string, body?: object): Promise<any> {
  const isForm = body instanceof FormData;
  const response = await fetch(url + path, {
    method,
    headers: { "auth-token": token, ...(body && !isForm && { "content-type": "application/json" }) },
    ...(body && { body: isForm ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  expect(response.status, `${method} ${path}: ${text}`).to.be.within(200, 299);
  return JSON.parse(text);
}

export async function createContent(url: string, token: string): Promise<Content> {
  await send(url, token, "POST", "/v1/apps/1/settings", { _secret: SECRET });
  const source = await send(url, token, "POST", "/v1/apps/1/data-sources", { name: "numbers", entries: ENTRIES });
  const action = { name: "reads", code: CODE, active: true, triggers: [{ trigger: "manual" }] };
  await send(url, token, "POST", "/v3/apps/1/actions", action);
  const form = new FormData();
  form.append("file", new Blob([FILE]), "content.txt");
  const { files } = await send(url, token, "POST", "/v1/apps/1/media/files", form);
  return { dataSource: source.dataSource.id, file: files[0].id };
}

export async function expectContent(url: string, token: string, { dataSource, file }: Content): Promise<void> {
  const { entries } = await send(url, token, "POST", `/v1/apps/1/data-sources/${dataSource}/query`, {});
  expect(entries.map(({ data }: { data: object }) => data)).to.have.deep.members(ENTRIES);
  const response = await fetch(`${url}/v1/apps/1/media/files/${file}/contents`, { headers: { "auth-token": token } });
  expect([response.status, await response.text()]).to.deep.equal([200, FILE]);
  const { result } = await send(url, token, "POST", "/v3/apps/1/actions/reads/runWithResult", { n: 7 });
  expect(result).to.equal([...SECRET].reduce((sum, letter) => sum + letter.charCodeAt(0), 7));
}
