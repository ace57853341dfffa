/** Creates an app that has data on every page of Studio, including long names. */
import type { TestService } from "../harness/service.js";

const CODE = `async function execute({ payload }) {
  console.log("a line", payload);
  if (payload.fail) throw new TypeError("it was asked to fail");
  return { text: "a result" };
}
`;

export interface Content {
  actionId: number;
  /** A completed run and a failed run. */
  runIds: number[];
}

export const LONG_NAME = `a-name-that-is-long-${"x".repeat(230)}`;

export async function fillApp({ rest, appId, url, tokens }: TestService): Promise<Content> {
  const post = async (path: string, body?: unknown) => {
    const { http, body: answer } = await rest("POST", path, { body });
    if (http >= 300) throw new Error(`${path}: ${http} ${JSON.stringify(answer)}`);
    return answer;
  };
  const [v1, v3] = [`/v1/apps/${appId}`, `/v3/apps/${appId}/actions`];
  const renamed = await rest("PUT", v1, { body: { name: LONG_NAME } });
  if (renamed.http !== 200) throw new Error(JSON.stringify(renamed.body));
  const triggers = [{ trigger: "manual" }, { trigger: "schedule" }];
  const first = {
    name: "first",
    description: "the first one",
    active: true,
    triggers,
    frequency: "0 9 * * 1-5",
    code: CODE,
  };
  const actionId = (await post(v3, first)).action.id as number;
  await post(v3, { ...first, name: LONG_NAME, active: false });
  const { runId } = await post(`${v3}/${actionId}/run`, { name: "Ada" });
  await post(`${v3}/${actionId}/runWithResult`, {});
  await rest("POST", `${v3}/${actionId}/runWithResult`, { body: { fail: true } });
  const failed = (await rest("GET", `/v3/apps/${appId}/runs?state=failed`)).body.runs[0];
  await post(`${v1}/publish`);
  await post(`${v3}/${actionId}/publish`);
  await post(`${v1}/settings`, {
    title: "Shop",
    ["k".repeat(120)]: "v".repeat(400),
    _region: "eu",
    __apiKey: "hidden",
  });
  await post(`${v1}/tokens`, { kind: "api", name: LONG_NAME });
  const sourceId = (await post(`${v1}/data-sources`, { name: "people" })).dataSource.id as number;
  await post(`${v1}/data-sources/${sourceId}/entries`, { name: "Ada Lovelace", born: 1815 });
  await post(`${v1}/media/folders`, { name: "pictures" });
  await post(`${v1}/notifications`, { data: { title: "Hello" } });
  const mail = { to: [{ email: "ada@example.com", name: "Ada" }], subject: "Hello", html: "<p>Hello</p>" };
  await post(`${v1}/communicate/email`, mail);
  await post(`${v1}/alerts`, {
    name: LONG_NAME.slice(0, 100),
    condition: "failed",
    channel: "email",
    to: ["ada@example.com"],
  });
  const picture = new FormData();
  picture.append("file", new Blob(["a text"], { type: "text/plain" }), `${LONG_NAME}.txt`.slice(-200));
  const sent = await fetch(`${url}${v1}/media/files`, {
    method: "POST",
    headers: { "auth-token": tokens.editor },
    body: picture,
  });
  if (!sent.ok) throw new Error(await sent.text());
  return { actionId, runIds: [runId, failed.id] };
}
