/** Tests requests that give a person a role or a token. Meanwhile, another request removes this person or the sender. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import type { Role } from "../../src/rules/roles.js";
import { countLockWaits, overlap, untilLockWait } from "../harness/lock-waits.js";
import { createSignedInPerson } from "../harness/people.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { createMemberCalls, outcomeOf, type Person } from "./support.js";

/** Lock that stops a removal at its last statement: the removal has deleted the rights, but has not committed. */
const STOP_REMOVAL = "LOCK TABLE access_event IN ACCESS EXCLUSIVE MODE";

describe("removals while a request grants something", () => {
  let service: TestService;
  let administrator: Person;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { user, email, token } = await createSignedInPerson(service);
    administrator = { id: user.id, email, token };
  });
  after(() => service.stop());

  const { as, organization, address, invite, accept, join, members } = createMemberCalls(() => ({
    service,
    administrator,
  }));

  const during = (removal: () => Promise<Answer>, request: () => Promise<Answer>): Promise<[Answer, Answer]> =>
    overlap(service.db, [STOP_REMOVAL], removal, request);

  it("delay no administrator while a request waits for a locked app", async () => {
    const { appId } = await organization();
    const { id } = await organization("Other");
    const person = await join(id, "reader");
    const { waiting, waits } = await service.db.transaction(async (manager) => {
      await rows(manager, "SELECT FROM app WHERE id = $1 FOR NO KEY UPDATE", [appId]);
      const issued = as(administrator.token, "POST", `/v1/apps/${appId}/tokens`, { kind: "viewer" });
      await untilLockWait(manager, issued);
      const promoted = as(administrator.token, "PUT", `/v1/admin/administrators/${person.id}`);
      await untilLockWait(manager, promoted, 2);
      const invited = invite(administrator.token, id, { email: "late@example.com", role: "reader" });
      await untilLockWait(manager, invited, 3);
      return { waiting: [issued, promoted, invited], waits: await countLockWaits(manager) };
    });
    expect(waits).to.equal(1);
    for (const answer of await Promise.all(waiting)) expect(answer.http, JSON.stringify(answer.body)).to.be.below(300);
  });

  describe("of a member", () => {
    /** Creates an organization with an app whose editor is a person of another organization. */
    async function createAppWithGuest() {
      const { id, appId } = await organization();
      const person = await join((await organization("Home")).id, "reader");
      const { body } = await invite(administrator.token, id, { email: person.email, role: "editor", appId });
      expect((await accept(body.link, {}, person.token)).http).to.equal(200);
      const remove = () => as(administrator.token, "DELETE", `${members(id)}/${person.id}`);
      const rolesLeft = () =>
        rows(
          service.db,
          "SELECT FROM app_role JOIN app ON app.id = app_id WHERE app.organization_id = $1 AND person_id = $2",
          [id, person.id],
        );
      return { appId, userId: person.id, remove, rolesLeft };
    }

    it("a stage that is created meanwhile has no role of the person", async () => {
      const { appId, remove, rolesLeft } = await createAppWithGuest();
      const create = () => as(administrator.token, "POST", `/v1/apps/${appId}/stages`, { name: "test" });
      const [removed, created] = await during(remove, create);
      expect([removed.http, created.http], JSON.stringify(created.body)).to.deep.equal([200, 201]);
      expect(await rolesLeft()).to.have.length(0);
    });

    it("a token for the person is refused", async () => {
      const { appId, userId, remove } = await createAppWithGuest();
      const body = { kind: "viewer", userId };
      const [removed, issued] = await during(remove, () =>
        as(administrator.token, "POST", `/v1/apps/${appId}/tokens`, body),
      );
      expect(removed.http).to.equal(200);
      expect(outcomeOf(issued)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(issued.body.error).to.contain("userId");
    });

    it("the person does not become an editor", async () => {
      const { appId, userId, remove, rolesLeft } = await createAppWithGuest();
      const [removed, added] = await during(remove, () =>
        as(administrator.token, "POST", `/v1/apps/${appId}/editors`, { userId }),
      );
      expect(removed.http).to.equal(200);
      expect(outcomeOf(added)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(await rolesLeft()).to.have.length(0);
    });
  });

  describe("of the person who sends the request", () => {
    /**
     * Expects that a request of a person is refused while this person is being removed.
     * @param prepare creates the data that the request needs, and returns the request
     */
    async function expectRefused(
      prepare: (
        person: Person,
        app: { id: number; appId: number },
      ) => (() => Promise<Answer>) | Promise<() => Promise<Answer>>,
      role: Role = "editor",
    ) {
      const app = await organization();
      const person = await join(app.id, role);
      const send = await prepare(person, app);
      const remove = () => as(administrator.token, "DELETE", `${members(app.id)}/${person.id}`);
      const [removed, answer] = await during(remove, send);
      expect(removed.http).to.equal(200);
      expect(outcomeOf(answer), JSON.stringify(answer.body)).to.deep.equal([403, "FORBIDDEN"]);
    }
    const REPOSITORY = { provider: "github", url: "https://git.example.com/app.git" };

    it("the editor cannot become an editor again", () =>
      expectRefused(
        ({ id, token }, { appId }) =>
          () =>
            as(token, "POST", `/v1/apps/${appId}/editors`, { userId: id }),
      ));

    it("the editor cannot remove another editor", () =>
      expectRefused(async ({ token }, { id, appId }) => {
        const other = await join(id, "editor", appId);
        return () => as(token, "DELETE", `/v1/apps/${appId}/editors`, { userId: other.id });
      }));

    it("the editor cannot create a token", () =>
      expectRefused(
        ({ id, token }, { appId }) =>
          () =>
            as(token, "POST", `/v1/apps/${appId}/tokens`, { kind: "viewer", userId: id }),
      ));

    it("the editor cannot revoke a token", () =>
      expectRefused(async ({ token }, { appId }) => {
        const { body } = await as(administrator.token, "POST", `/v1/apps/${appId}/tokens`, { kind: "api" });
        return () => as(token, "DELETE", `/v1/apps/${appId}/tokens/${body.id}`);
      }));

    it("the editor cannot create a stage", () =>
      expectRefused(
        ({ token }, { appId }) =>
          () =>
            as(token, "POST", `/v1/apps/${appId}/stages`, { name: "test" }),
      ));

    it("the editor cannot connect a Git repository", () =>
      expectRefused(
        ({ token }, { appId }) =>
          () =>
            as(token, "PUT", `/v1/apps/${appId}/git`, REPOSITORY),
      ));

    it("the editor cannot disconnect a Git repository", () =>
      expectRefused(async ({ token }, { appId }) => {
        expect((await as(administrator.token, "PUT", `/v1/apps/${appId}/git`, REPOSITORY)).http).to.equal(200);
        return () => as(token, "DELETE", `/v1/apps/${appId}/git`);
      }));

    it("the admin cannot revoke an invitation", () =>
      expectRefused(async ({ token }, { id }) => {
        const { body } = await invite(administrator.token, id, { email: address(), role: "reader" });
        return () => as(token, "DELETE", `/v1/organizations/${id}/invitations/${body.invitation.id}`);
      }, "admin"));
  });

  describe("of an administrator", () => {
    /** Expects that a request of an administrator is refused while the administrator is being removed. */
    async function expectRefused(send: (token: string) => Promise<Answer>) {
      const { user, token } = await createSignedInPerson(service);
      const remove = () => as(administrator.token, "DELETE", `/v1/admin/administrators/${user.id}`);
      const [removed, answer] = await during(remove, () => send(token));
      expect(removed.http).to.equal(200);
      expect(outcomeOf(answer)).to.deep.equal([403, "FORBIDDEN"]);
    }

    it("the request cannot give the role owner", async () => {
      const { id } = await organization();
      const person = await join(id, "reader");
      await expectRefused((token) => as(token, "PUT", `${members(id)}/${person.id}`, { role: "owner" }));
    });

    it("the request cannot invite an owner", async () => {
      const { id } = await organization();
      await expectRefused((token) => invite(token, id, { email: address(), role: "owner" }));
    });

    it("the request cannot create an organization", () =>
      expectRefused((token) => as(token, "POST", "/v1/organizations", { name: "Late" })));
  });
});
