/** Tests two editors of one action: neither overwrites changes that it has not seen, and each receives the other's changes. */
import { expect } from "chai";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { createRestApiClient } from "./api-clients.js";
import { CODE, make, publishApp } from "./support.js";

const OTHER_CODE = `${CODE} // the other's`;

describe("a change of an action with If-Match or ifUpdatedAt", () => {
  let service: TestService;

  before(async () => {
    service = await useSharedService("api");
    await publishApp(service);
  });
  after(() => service.stop());

  const path = (id: number, rest = "") => `/v3/apps/${service.appId}/actions/${id}${rest}`;
  const read = async (id: number) => {
    const { headers, body } = await service.rest("GET", path(id));
    return { tag: headers.get("etag")!, action: body.action };
  };

  interface Change {
    method: string;
    rest?: string;
    body?: object;
    mutation: string;
  }
  const CHANGE_CALLS: Record<string, Change> = {
    update: {
      method: "PUT",
      body: { description: "mine" },
      mutation: 'updateAction(ARGS, data: { description: "mine" })',
    },
    remove: { method: "DELETE", mutation: "removeAction(ARGS)" },
    publish: { method: "POST", rest: "/publish", mutation: "publishAction(ARGS)" },
    unpublish: { method: "POST", rest: "/unpublish", mutation: "unpublishAction(ARGS)" },
    restore: {
      method: "POST",
      rest: "/versions/VERSION/restore",
      mutation: "restoreActionVersion(ARGS, versionId: VERSION)",
    },
  };

  const fields: Record<string, string> = {
    update: " { id }",
    publish: " { action { id } }",
    restore: " { restoredFromVersionId }",
  };

  /** Functions that send the change `name`. They return the error with the current action, or null if the change succeeded. */
  const APIS = {
    async REST(name: string, id: number, versionId: number, updatedAt: string) {
      const { method, rest = "", body } = CHANGE_CALLS[name]!;
      const call = { headers: { "if-match": `"${updatedAt}"` }, ...(body && { body }) };
      const answer = await service.rest(method, path(id, rest.replace("VERSION", String(versionId))), call);
      return answer.http < 300 ? null : { http: answer.http, status: answer.body.status, action: answer.body.action };
    },
    async GraphQL(name: string, id: number, versionId: number, updatedAt: string) {
      const key = name === "restore" ? "actionId" : "id";
      const args = `appId: ${service.appId}, ${key}: ${id}, ifUpdatedAt: "${updatedAt}"`;
      const mutation = CHANGE_CALLS[name]!.mutation.replace("ARGS", args).replace("VERSION", String(versionId));
      const { errors } = await service.graphql(`mutation { ${mutation}${fields[name] ?? ""} }`);
      return errors ? { http: 409, status: errors[0].extensions.status, action: errors[0].extensions.action } : null;
    },
  };

  for (const [api, send] of Object.entries(APIS)) {
    for (const name of Object.keys(CHANGE_CALLS)) {
      it(`${name} over ${api}: is rejected with the current state, changes nothing, and succeeds from that state`, async () => {
        const { id, updatedAt } = await make(createRestApiClient(service));
        if (name === "unpublish") await service.rest("POST", path(id, "/publish"));
        await service.rest("PUT", path(id), { body: { code: OTHER_CODE } });
        const { body } = await service.rest("GET", path(id, "/versions"));
        const versionId = body.versions.at(-1).id as number;
        const storedAction = (await read(id)).action;
        const copies = () => service.db.query("SELECT * FROM action WHERE id = $1 OR master_id = $1 ORDER BY id", [id]);
        const before = await copies();
        expect(await send(name, id, versionId, updatedAt)).to.deep.equal({
          http: 409,
          status: "ACTION_CHANGED",
          action: storedAction,
        });
        expect(await copies()).to.deep.equal(before);
        expect(await send(name, id, versionId, storedAction.updatedAt)).to.equal(null);
        expect(await copies()).to.not.deep.equal(before);
      });
    }
  }

  it("succeeds for only one of many callers that started from the same state", async () => {
    const { id } = await make(createRestApiClient(service));
    const { tag } = await read(id);
    const saves = Array.from({ length: 12 }, (_, at) =>
      service.rest("PUT", path(id), { body: { description: String(at) }, headers: { "if-match": tag } }),
    );
    const codes = (await Promise.all(saves)).map(({ http }) => http).sort();
    expect(codes).to.deep.equal([200, ...Array(11).fill(409)]);
  });

  it("returns a new ETag after every change, also within one millisecond, and the same ETag after a run", async () => {
    const { id } = await make(createRestApiClient(service), { active: true, triggers: [{ trigger: "manual" }] });
    const tags = new Set<string>();
    for (let change = 0; change < 20; change += 1) {
      const { headers } = await service.rest("PUT", path(id), { body: { description: String(change) } });
      tags.add(headers.get("etag")!);
    }
    expect(tags.size).to.equal(20);
    await service.db.query("UPDATE action SET last_run_at = now() WHERE id = $1", [id]);
    expect((await read(id)).tag).to.equal([...tags].at(-1));
  });

  it("accepts any of several ETags, weak ones and *, and rejects an invalid ETag", async () => {
    const { id, updatedAt } = await make(createRestApiClient(service));
    const remove = (tag: string) => service.rest("DELETE", path(id), { headers: { "if-match": tag } });
    for (const invalidTag of ["", "2026-01-01", '"a', `"${updatedAt}",`, Array(30).fill('"a"').join()]) {
      const { http, body } = await remove(invalidTag);
      expect([http, body.status], invalidTag).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(/^If-Match must be/);
    }
    expect((await remove('"a", "b"')).http).to.equal(409);
    const put = await service.rest("PUT", path(id), { body: { description: "x" }, headers: { "if-match": "*" } });
    expect(put.http).to.equal(200);
    expect((await remove(`"a", W/${put.headers.get("etag")}`)).http).to.equal(200);
  });

  it("is sent to the app's editors at once: who changed what, and only for their app", async () => {
    const socket = service.socket("editor");
    const fields = "reset id removed type fields updatedAt user { id }";
    const query = `subscription { actionChanged(appId: ${service.appId}) { ${fields} } }`;
    const events = socket.iterate<{ actionChanged: Record<string, unknown> }>({ query });
    const first = (await events.next()).value!.data!.actionChanged;
    expect(first).to.deep.include({ reset: true, id: null });
    const other = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "other" } });
    const otherActions = `/v3/apps/${other.body.app.id}/actions`;
    const theirs = (await service.rest("POST", otherActions, { as: "admin", body: { name: "elsewhere", code: CODE } }))
      .body;
    const { id, updatedAt } = await make(createRestApiClient(service));
    const known = { reset: false, id, removed: false };
    // Changes from before the subscription may still arrive, so `next` skips those of other actions. Changes of the other app must not arrive.
    const next = async (): Promise<Record<string, unknown>> => {
      const change = (await events.next()).value!.data!.actionChanged;
      expect(change["id"]).to.be.a("number").and.not.equal(theirs.action.id);
      return change["id"] === id ? change : next();
    };
    const created = await next();
    expect(created).to.deep.include({ ...known, type: "appAction.v3.create", updatedAt });
    expect((created["user"] as { id: number }).id).to.be.a("number");
    const change = { code: OTHER_CODE, description: "last" };
    const { action } = (await service.rest("PUT", path(id), { body: change })).body;
    const updated = await next();
    expect(updated).to.deep.include({ ...known, type: "appAction.v3.update", updatedAt: action.updatedAt });
    expect(updated["fields"]).to.have.members(["code", "description"]);
    await service.rest("POST", path(id, "/publish"));
    expect(await next()).to.deep.include({ ...known, type: "appAction.v3.publish", updatedAt: action.updatedAt });
    await service.rest("DELETE", path(id));
    // The deletion of the action also removes its live version, so two events arrive. Only one of them has `removed`.
    const removals = [await next(), await next()].filter(({ removed }) => removed);
    expect(removals).to.have.length(1);
    expect(removals[0]).to.deep.include({ id, type: "appAction.v3.remove", updatedAt: null });
    await socket.dispose();
  });
});
