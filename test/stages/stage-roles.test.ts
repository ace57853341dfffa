/** Tests roles on stages: the rights that the creation of a stage needs, and the removal of people from a group of stages. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("roles on stages", () => {
  let service: TestService;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
  });
  after(() => service.stop());

  const appPath = (id: number) => `/v1/apps/${id}`;
  const asAdmin = (method: string, path: string, body?: object) =>
    service.rest(method, path, { as: "admin", ...(body && { body }) });

  it("the creation of a stage of a stage needs an editor of the original app", async () => {
    const source = (await asAdmin("POST", `${appPath(service.appId)}/stages`, { name: "source" })).body.app
      .id as number;
    const users = await service.rest("POST", "/v1/admin/users", {
      as: "admin",
      body: { firstName: "Ed", lastName: "Itor", email: "editor-of-stage@example.com" },
    });
    const { user, token } = users.body;
    const addEditor = (id: number) =>
      service.rest("POST", `${appPath(id)}/editors`, { as: "admin", body: { userId: user.id } });
    const createAs = (name: string) => service.rest("POST", `${appPath(source)}/stages`, { as: token, body: { name } });
    expect((await addEditor(source)).http).to.equal(200);
    expect((await createAs("denied")).body.status).to.equal("FORBIDDEN");
    expect(await rows(service.db, "SELECT FROM app_stage WHERE name = 'denied'")).to.have.length(0);
    expect((await addEditor(service.appId)).http).to.equal(200);
    expect((await createAs("allowed")).http).to.equal(201);
  });

  it("a person who is removed from the original app loses the roles on its stages, also while a stage is created", async () => {
    const created = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "grouped" } });
    const root: number = created.body.app.id;
    const newPerson = async (name: string) => {
      const body = { firstName: name, lastName: "x", email: `${name}@example.com` };
      const { user, token } = (await asAdmin("POST", "/v1/admin/users", body)).body;
      return { id: user.id as number, token: token as string };
    };
    const editor = await newPerson("grouped-editor");
    const member = await newPerson("grouped-member");
    const guest = await newPerson("grouped-guest");
    const late = await newPerson("grouped-late");
    const readingEditor = await newPerson("grouped-reading-editor");
    const memberPath = (app: number, { id }: { id: number }) => `${appPath(app)}/members/${id}`;
    const setRole = async (app: number, person: { id: number }, role: string) =>
      expect((await asAdmin("PUT", memberPath(app, person), { role })).http).to.equal(200);
    for (const person of [editor, late]) await setRole(root, person, "editor");
    for (const person of [member, readingEditor]) await setRole(root, person, "reader");
    const editors = `${appPath(root)}/editors`;
    expect((await asAdmin("POST", editors, { userId: readingEditor.id })).http).to.equal(200);
    const first = (await asAdmin("POST", `${appPath(root)}/stages`, { name: "first" })).body.app.id as number;
    const second = (await asAdmin("POST", `${appPath(first)}/stages`, { name: "second" })).body.app.id as number;
    await setRole(first, guest, "editor");
    await setRole(second, member, "operator");
    const mayRead = async (person: { token: string }) => {
      const answers = [first, second].map((app) =>
        service.rest("GET", `/v3/apps/${app}/actions`, { as: person.token }),
      );
      return (await Promise.all(answers)).map(({ http }) => http);
    };
    expect(await mayRead(editor)).to.deep.equal([200, 200]);
    for (const { id } of [editor, readingEditor])
      expect((await asAdmin("DELETE", editors, { userId: id })).http).to.equal(200);
    const stageRoles = "SELECT role FROM app_role WHERE app_id = ANY ($1) AND person_id = $2";
    expect(await rows(service.db, stageRoles, [[first, second], readingEditor.id])).to.deep.equal([
      { role: "reader" },
      { role: "reader" },
    ]);
    expect(await mayRead(editor)).to.deep.equal([401, 401]);
    expect((await asAdmin("DELETE", memberPath(root, member))).http).to.equal(200);
    expect(await mayRead(member)).to.deep.equal([401, 401]);
    expect(await mayRead(guest)).to.deep.equal([200, 403]);
    expect((await asAdmin("DELETE", memberPath(root, guest))).http).to.equal(404);
    expect(await mayRead(guest)).to.deep.equal([200, 403]);

    // The service builds an index of the new stage before the stage belongs to the group. The lock of the table blocks the build.
    const data = { name: "guests", columns: ["Name"], indexes: [{ columns: ["Name"], unique: true }] };
    expect((await asAdmin("POST", `${appPath(root)}/data-sources`, data)).http).to.equal(201);
    const removed = await service.db.transaction(async (manager) => {
      await manager.query("LOCK TABLE data_source_entry IN SHARE UPDATE EXCLUSIVE MODE");
      const creation = asAdmin("POST", `${appPath(root)}/stages`, { name: "third" });
      await untilLockWait(manager, creation);
      const deleted = await asAdmin("DELETE", `${appPath(root)}/editors`, { userId: late.id });
      expect(deleted.http).to.equal(200);
      return { creation };
    });
    const third = (await removed.creation).body.app.id;
    expect(await rows(service.db, "SELECT FROM app_editor WHERE app_id = $1", [third])).to.have.length(0);
  });
});
