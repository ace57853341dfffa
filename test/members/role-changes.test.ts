/** Tests changes of roles, removals of members, and reset links, in a whole service. */
import { expect } from "chai";
import type { GraphQLFormattedError } from "graphql";
import { rows } from "../../src/data/database.js";
import { countLockWaits } from "../harness/lock-waits.js";
import { createSignedInPerson } from "../harness/people.js";
import { longTest } from "../harness/samples.js";
import type { Answer, TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";
import { until } from "../harness/until.js";
import { cookieOf, createMemberCalls, outcomeOf, type Person, tokenIn } from "./support.js";

async function endOf(source: AsyncIterable<{ errors?: readonly GraphQLFormattedError[] }>): Promise<unknown> {
  let status: unknown = null;
  try {
    for await (const { errors } of source) status = errors?.[0]?.extensions?.["status"] ?? status;
  } catch (error) {
    // graphql-ws throws the close event of the socket, or the errors of the subscription.
    const { code } = error as { code?: number };
    status = code === undefined ? (error as GraphQLFormattedError[])[0]!.extensions?.["status"] : code;
  }
  return status;
}

describe("members whose roles change", () => {
  let service: TestService;
  let administrator: Person;
  before(async () => {
    service = await useSharedService("api");
    const { user, email, token } = await createSignedInPerson(service);
    administrator = { id: user.id, email, token };
  });
  after(() => service.stop());

  const { as, organization, address, invite, accept, join, members, appMembers, rolesAt } = createMemberCalls(() => ({
    service,
    administrator,
  }));

  longTest("an organization keeps an owner, also when two owners remove each other at once", async () => {
    const { id } = await organization();
    const alone = await as(administrator.token, "DELETE", `${members(id)}/${administrator.id}`);
    expect(outcomeOf(alone)).to.deep.equal([409, "LAST_OWNER"]);
    const lower = await as(administrator.token, "PUT", `${members(id)}/${administrator.id}`, { role: "admin" });
    expect(outcomeOf(lower)).to.deep.equal([409, "LAST_OWNER"]);
    const raceRoleChange = async () => {
      const created = await organization();
      const [firstOwner, secondOwner] = await Promise.all([join(created.id, "owner"), join(created.id, "owner")]);
      expect((await as(firstOwner.token, "DELETE", `${members(created.id)}/${administrator.id}`)).http).to.equal(200);
      return { path: members(created.id), firstOwner, secondOwner };
    };
    const races = await Promise.all(Array.from({ length: 8 }, raceRoleChange));
    const answers = await Promise.all(
      races.map(({ path, firstOwner, secondOwner }) =>
        Promise.all([
          as(firstOwner.token, "DELETE", `${path}/${secondOwner.id}`),
          as(secondOwner.token, "PUT", `${path}/${firstOwner.id}`, { role: "reader" }),
        ]),
      ),
    );
    for (const [at, { path }] of races.entries()) {
      const owners = Object.values(await rolesAt(path)).filter((role) => role === "owner");
      expect(owners).to.have.length(1);
      expect(answers[at]!.filter(({ http }) => http === 200)).to.have.length(1);
    }
  });

  it("removal ends sessions, tokens and open subscriptions at once, and revokes the person's invitations", async () => {
    const { id, appId } = await organization();
    const person = await join(id, "admin");
    const pending = await invite(person.token, id, { email: address(), role: "admin" });
    const runtime = await as(administrator.token, "POST", `/v1/apps/${appId}/tokens`, {
      kind: "viewer",
      userId: person.id,
    });
    expect(runtime.http).to.equal(201);
    const client = service.socket(person.token);
    const changes = client.iterate({ query: `subscription { actionChanged(appId: ${appId}) { reset } }` });
    expect((await changes.next()).value?.data).to.deep.equal({ actionChanged: { reset: true } });
    const removed = await as(administrator.token, "DELETE", `${members(id)}/${person.id}`);
    expect(removed.http).to.equal(200);
    expect(outcomeOf(await as(person.token, "GET", "/v1/auth/session"))).to.deep.equal([401, "UNAUTHORIZED"]);
    expect((await as(runtime.body.token, "GET", `/v1/apps/${appId}/env.js`)).http).to.equal(401);
    expect(await endOf(changes)).to.equal("UNAUTHORIZED");
    await client.dispose();
    expect(outcomeOf(await accept(pending.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("removal from one organization keeps the roles of another", async () => {
    const firstOrganization = await organization("One");
    const secondOrganization = await organization("Two");
    const person = await join(firstOrganization.id, "editor");
    const { body } = await invite(administrator.token, secondOrganization.id, {
      email: person.email,
      role: "reader",
      appId: secondOrganization.appId,
    });
    await accept(body.link, {}, person.token);
    expect((await as(person.token, "GET", `/v3/apps/${firstOrganization.appId}/actions`)).http).to.equal(200);
    await as(administrator.token, "DELETE", `${members(firstOrganization.id)}/${person.id}`);
    expect((await as(person.token, "GET", `/v3/apps/${firstOrganization.appId}/actions`)).http).to.equal(403);
    expect((await as(person.token, "GET", `/v3/apps/${secondOrganization.appId}/actions`)).http).to.equal(200);
    const gone = await as(administrator.token, "DELETE", `${appMembers(secondOrganization.appId)}/${person.id}`);
    expect(gone.body.members).to.deep.equal([]);
    expect((await as(person.token, "GET", `/v3/apps/${secondOrganization.appId}/actions`)).http).to.equal(401);
  });

  it("a lower role revokes invitations that it may not make", async () => {
    const { id } = await organization();
    const person = await join(id, "owner");
    const [owner, reader] = await Promise.all([
      invite(person.token, id, { email: address(), role: "owner" }),
      invite(person.token, id, { email: address(), role: "reader" }),
    ]);
    await as(administrator.token, "PUT", `${members(id)}/${person.id}`, { role: "admin" });
    expect((await accept(owner.body.link)).http).to.equal(410);
    expect((await accept(reader.body.link)).http).to.equal(200);
  });

  it("a changed role applies from the next request on, also in an active subscription", async () => {
    const { id, appId } = await organization();
    const person = await join(id, "editor");
    const client = service.socket(person.token);
    const changes = client.iterate({ query: `subscription { actionChanged(appId: ${appId}) { reset } }` });
    // Waits until the subscription is active. A removal before that would only close the socket.
    expect((await changes.next()).value?.data).to.deep.equal({ actionChanged: { reset: true } });
    const end = endOf(changes);
    const settings = () => as(person.token, "GET", `/v1/apps/${appId}/settings`);
    expect((await settings()).http).to.equal(200);
    await as(administrator.token, "PUT", `${members(id)}/${person.id}`, { role: "operator" });
    expect((await settings()).http).to.equal(403);
    expect((await as(person.token, "GET", `/v3/apps/${appId}/actions`)).http).to.equal(200);
    await as(administrator.token, "DELETE", `${members(id)}/${person.id}`);
    expect(await end).to.equal("UNAUTHORIZED");
    await client.dispose();
  });

  it("a reset link needs a caller with a higher role than the person in each of the person's organizations", async () => {
    const firstOrganization = await organization("One");
    const secondOrganization = await organization("Two");
    const owner = await join(firstOrganization.id, "owner");
    const second = await join(firstOrganization.id, "owner");
    const editor = await join(firstOrganization.id, "editor");
    const link = (by: string, id: number, userId: number) => as(by, "POST", `${members(id)}/${userId}/reset-link`);
    const made = await link(owner.token, firstOrganization.id, editor.id);
    expect(made.http).to.equal(201);
    expect(made.body.link).to.contain("/studio/reset#token=");
    const confirmed = await as(null, "POST", "/v1/auth/reset/confirm", {
      token: tokenIn(made.body.link),
      passphrase: "nine lamps of the harbour",
    });
    expect(confirmed.http).to.equal(200);
    expect(outcomeOf(await link(owner.token, firstOrganization.id, second.id))).to.deep.equal([403, "FORBIDDEN"]);
    expect(outcomeOf(await link(editor.token, firstOrganization.id, owner.id)).at(0)).to.be.oneOf([401, 403]);
    const { body } = await invite(administrator.token, secondOrganization.id, { email: editor.email, role: "reader" });
    const again = await as(null, "POST", "/v1/auth/sign-in", {
      email: editor.email,
      passphrase: "nine lamps of the harbour",
    });
    await accept(body.link, {}, cookieOf(again));
    expect(outcomeOf(await link(owner.token, firstOrganization.id, editor.id))).to.deep.equal([403, "FORBIDDEN"]);
    expect((await link(administrator.token, firstOrganization.id, editor.id)).http).to.equal(201);
    const { user } = await createSignedInPerson(service);
    const other = await link(administrator.token, user.organizationId, user.id);
    expect(outcomeOf(other)).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("a reset link is made with the rights in the database, not those of some seconds ago", async () => {
    const { id } = await organization();
    const owner = await join(id, "owner");
    const reader = await join(id, "reader");
    const link = (by: string) => as(by, "POST", `${members(id)}/${reader.id}/reset-link`);
    expect((await link(owner.token)).http).to.equal(201);
    // This statement sends no notification, so the access check still uses cached rights, and the operation itself must refuse the request.
    await service.db.query("DELETE FROM organization_member WHERE organization_id = $1 AND person_id = $2", [
      id,
      owner.id,
    ]);
    expect(outcomeOf(await link(owner.token))).to.deep.equal([403, "FORBIDDEN"]);
    const formerAdministrator = await createSignedInPerson(service);
    expect((await link(formerAdministrator.token)).http).to.equal(201);
    await service.db.query("UPDATE person SET is_administrator = false WHERE id = $1", [formerAdministrator.user.id]);
    expect(outcomeOf(await link(formerAdministrator.token))).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("a reset link that is made while its person gets a higher role is rejected or ends", async () => {
    const { id } = await organization();
    const admin = await join(id, "admin");
    const promotedPeople = await Promise.all(Array.from({ length: 6 }, () => join(id, "reader")));
    const races = await Promise.all(
      promotedPeople.map(async (person) => {
        const path = `${members(id)}/${person.id}`;
        const [link, role] = await Promise.all([
          as(admin.token, "POST", `${path}/reset-link`),
          as(administrator.token, "PUT", path, { role: "owner" }),
        ]);
        return { link, role };
      }),
    );
    for (const { link, role } of races) {
      expect(role.http).to.equal(200);
      if (link.http !== 201) {
        expect(outcomeOf(link)).to.deep.equal([403, "FORBIDDEN"]);
        continue;
      }
      const body = { token: tokenIn(link.body.link), passphrase: "nine lamps of the harbour" };
      expect(outcomeOf(await as(null, "POST", "/v1/auth/reset/confirm", body))).to.deep.equal([410, "LINK_EXPIRED"]);
    }
  });

  it("a reset link ends when the role of its maker or of its person changes", async () => {
    const { id } = await organization();
    const owner = await join(id, "owner");
    const [promoted, other] = [await join(id, "reader"), await join(id, "reader")];
    const link = async (userId: number) =>
      tokenIn((await as(owner.token, "POST", `${members(id)}/${userId}/reset-link`)).body.link);
    const promotedLink = await link(promoted.id);
    await as(administrator.token, "PUT", `${members(id)}/${promoted.id}`, { role: "owner" });
    const otherLink = await link(other.id);
    expect((await as(administrator.token, "DELETE", `${members(id)}/${owner.id}`)).http).to.equal(200);
    for (const token of [promotedLink, otherLink]) {
      const body = { token, passphrase: "nine lamps of the harbour" };
      const answer = await as(null, "POST", "/v1/auth/reset/confirm", body);
      expect(outcomeOf(answer)).to.deep.equal([410, "LINK_EXPIRED"]);
    }
  });

  describe("while another transaction holds a lock", () => {
    const NEW_PASSPHRASE = "nine lamps of the harbour";
    const LOCK_PERSON = "SELECT FROM person WHERE id = $1 FOR NO KEY UPDATE";
    const confirm = (token: string) =>
      as(null, "POST", "/v1/auth/reset/confirm", { token, passphrase: NEW_PASSPHRASE });
    const resetLink = async (by: string, id: number, userId: number) =>
      tokenIn((await as(by, "POST", `${members(id)}/${userId}/reset-link`)).body.link);

    /** Sends two requests that both wait for the row that `lock` locks. Sends the second one when the first one waits. */
    async function sendInOrder(
      lock: [sql: string, id: number],
      first: () => Promise<Answer>,
      second: () => Promise<Answer>,
    ) {
      const sent = await service.db.transaction(async (manager) => {
        await manager.query(lock[0], [lock[1]]);
        const requests = [first()];
        await until(async () => (await countLockWaits(manager)) === 1);
        requests.push(second());
        await until(async () => (await countLockWaits(manager)) === 2);
        return { requests };
      });
      return (await Promise.all(sent.requests)).map(({ http, body }) => [http, http === 200 ? null : body.status]);
    }
    const FIRST_ONLY = [
      [200, null],
      [410, "LINK_EXPIRED"],
    ];

    it("a removal of the person revokes a reset link that is used next, without a deadlock", async () => {
      const { id } = await organization();
      const person = await join(id, "reader");
      const token = await resetLink(administrator.token, id, person.id);
      const remove = () => as(administrator.token, "DELETE", `${members(id)}/${person.id}`);
      expect(await sendInOrder([LOCK_PERSON, person.id], remove, () => confirm(token))).to.deep.equal(FIRST_ONLY);
    });

    it("a new administrator's reset link that is used next is revoked, without a deadlock", async () => {
      const { id } = await organization();
      const person = await join(id, "reader");
      const token = await resetLink(administrator.token, id, person.id);
      const promote = () => as(administrator.token, "PUT", `/v1/admin/administrators/${person.id}`);
      expect(await sendInOrder([LOCK_PERSON, person.id], promote, () => confirm(token))).to.deep.equal(FIRST_ONLY);
    });

    it("a removal of the links' creator revokes all of them before one is used, without a deadlock", async () => {
      const { id } = await organization();
      const [owner, person] = [await join(id, "owner"), await join(id, "reader")];
      await resetLink(owner.token, id, person.id);
      const newest = await resetLink(owner.token, id, person.id);
      const lockOldest =
        "SELECT FROM one_time_link WHERE id = (SELECT min(id) FROM one_time_link WHERE created_by = $1) FOR UPDATE";
      const remove = () => as(administrator.token, "DELETE", `${members(id)}/${owner.id}`);
      expect(await sendInOrder([lockOldest, owner.id], remove, () => confirm(newest))).to.deep.equal(FIRST_ONLY);
    });

    it("a revocation of an invitation that is accepted first is 404", async () => {
      const { id } = await organization();
      const { link, invitation } = (await invite(administrator.token, id, { email: address(), role: "reader" })).body;
      const lockLink =
        "SELECT FROM one_time_link WHERE id = (SELECT link_id FROM invitation WHERE id = $1) FOR NO KEY UPDATE";
      const path = `/v1/organizations/${id}/invitations/${invitation.id}`;
      const revoke = () => as(administrator.token, "DELETE", path);
      const answers = await sendInOrder([lockLink, invitation.id], () => accept(link), revoke);
      expect(answers).to.deep.equal([
        [200, null],
        [404, "NOT_FOUND"],
      ]);
    });

    it("a former administrator's invitation of themselves is revoked before it is accepted", async () => {
      const { id } = await organization();
      const { user, email, token } = await createSignedInPerson(service);
      const { link } = (await invite(token, id, { email, role: "reader" })).body;
      const remove = () => as(administrator.token, "DELETE", `/v1/admin/administrators/${user.id}`);
      expect(await sendInOrder([LOCK_PERSON, user.id], remove, () => accept(link, {}, token))).to.deep.equal(
        FIRST_ONLY,
      );
    });
  });

  it("changes of roles are in the audit log of the app and of the service", async () => {
    const { id, appId } = await organization();
    const person = await join(id, "editor", appId);
    await as(administrator.token, "PUT", `${appMembers(appId)}/${person.id}`, { role: "reader" });
    const { body } = await as(administrator.token, "GET", `/v1/apps/${appId}/audit`);
    const types = body.entries.map(({ type }: { type: string }) => type);
    expect(types).to.deep.equal(["member.update", "invitation.accept"]);
    expect(body.entries[0].data).to.deep.include({ role: "reader", before: "editor", userId: person.id });
    const events = await rows<{ type: string }>(
      service.db,
      "SELECT type FROM access_event WHERE organization_id = $1 ORDER BY id",
      [id],
    );
    expect(events.map(({ type }) => type)).to.deep.equal([
      "organization.create",
      "invitation.create",
      "invitation.accept",
      "member.update",
    ]);
  });

  it("a person that an administrator creates, and editors who are added and removed, are in both audit logs", async () => {
    const { id, appId } = await organization();
    const human = { firstName: "Ed", lastName: "Itor", email: address(), organizationId: id };
    const { body } = await as(administrator.token, "POST", "/v1/admin/users", human);
    const change = (method: string) =>
      as(administrator.token, method, `/v1/apps/${appId}/editors`, { userId: body.user.id });
    // The second POST and the second DELETE change nothing.
    for (const method of ["POST", "POST", "DELETE", "DELETE"]) expect((await change(method)).http).to.equal(200);
    const ofApp = await as(administrator.token, "GET", `/v1/apps/${appId}/audit`);
    const facts = (entries: { type: string; data: object }[]) => entries.map(({ type, data }) => [type, data]);
    expect(facts(ofApp.body.entries)).to.deep.equal([
      ["editor.delete", { userId: body.user.id }],
      ["editor.create", { userId: body.user.id }],
    ]);
    const ofAll = await as(administrator.token, "GET", `/v1/organizations/${id}/audit?limit=3`);
    expect(facts(ofAll.body.entries)).to.deep.equal([
      ["editor.delete", { appId }],
      ["editor.create", { appId }],
      ["person.create", {}],
    ]);
    for (const entry of ofAll.body.entries) {
      expect(entry).to.deep.include({ organizationId: id, userId: administrator.id, subjectId: body.user.id });
      expect(entry.address).to.be.a("string");
    }
  });

  it("GraphQL offers the same", async () => {
    const { id, appId } = await organization();
    const ask = async (text: string, variables: object = {}, token = administrator.token) =>
      service.graphql(text, { id, appId, ...variables }, { as: token });
    const { data } = await ask(
      `mutation ($id: Int!, $data: CreateInvitationInput!) {
         createInvitation(organizationId: $id, data: $data) { link invitation { id role } } }`,
      { data: { email: address(), role: "editor", appId } },
    );
    const joined = await accept(data.createInvitation.link);
    const userId = joined.body.user.id;
    const person = cookieOf(joined);
    const set = await ask(
      `mutation ($id: Int!, $appId: Int!, $userId: Int!) {
         setAppMember(appId: $appId, userId: $userId, role: reader) { user { id } role }
         setOrganizationMember(organizationId: $id, userId: $userId, role: operator) { user { id } role }
         createResetLink(organizationId: $id, userId: $userId) { link } }`,
      { userId },
    );
    expect(set.data.setAppMember).to.deep.equal([{ user: { id: userId }, role: "reader" }]);
    expect(set.data.setOrganizationMember).to.deep.include({ user: { id: userId }, role: "operator" });
    expect(set.data.createResetLink.link).to.contain("/studio/reset#token=");
    const ownOrganizations = await ask("{ organizations { id name role } }", {}, person);
    expect(ownOrganizations.data.organizations).to.deep.equal([{ id, name: "Harbour", role: "operator" }]);
    const again = await invite(administrator.token, id, { email: joined.body.user.email, role: "editor" });
    const accepted = await ask(
      "mutation ($token: String!) { acceptInvitation(token: $token) { id } }",
      { token: tokenIn(again.body.link) },
      person,
    );
    expect(accepted.data.acceptInvitation).to.deep.equal({ id: userId });
    const removed = await ask(
      `mutation ($id: Int!, $appId: Int!, $userId: Int!) {
         removeAppMember(appId: $appId, userId: $userId) { role }
         removeOrganizationMember(organizationId: $id, userId: $userId) { user { id } } }`,
      { userId },
    );
    expect(removed.data).to.deep.equal({
      removeAppMember: [],
      removeOrganizationMember: [{ user: { id: administrator.id } }],
    });
  });
});
