import { expect } from "chai";
import { MEMBERS_PER_ORGANIZATION_OR_APP_MAX } from "../../src/limits.js";
import type { Role } from "../../src/rules/roles.js";
import { createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { cookieOf, createMemberCalls, outcomeOf, type Person, tokenIn } from "./support.js";

describe("members and invitations", () => {
  let service: TestService;
  let administrator: Person;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { user, email, token } = await createSignedInPerson(service);
    administrator = { id: user.id, email, token };
  });
  after(() => service.stop());

  const { as, organization, address, invite, accept, join, members, appMembers, rolesAt } = createMemberCalls(() => ({
    service,
    administrator,
  }));

  it("an administrator of the service creates an organization and owns it", async () => {
    const { body, http } = await as(administrator.token, "POST", "/v1/organizations", { name: " Pier " });
    expect(http).to.equal(201);
    expect(body.organization).to.include({ name: "Pier", role: "owner" });
    const listed = await as(administrator.token, "GET", members(body.organization.id));
    expect(listed.body.members).to.have.length(1);
    expect(listed.body.members[0]).to.have.keys("user", "role", "lastSeenAt", "updatedAt");
    expect(listed.body.members[0].user).to.include({ id: administrator.id, email: administrator.email });
    expect(new Date(listed.body.members[0].lastSeenAt).getTime()).to.be.closeTo(Date.now(), 60_000);
    expect(outcomeOf(await as(administrator.token, "POST", "/v1/organizations", {}))).to.deep.equal([
      400,
      "REQUEST_INVALID",
    ]);
  });

  it("an invitation creates an account with the role and a session, once", async () => {
    const { id } = await organization();
    const email = address();
    const made = await invite(administrator.token, id, { email, role: "operator" });
    expect(made.http).to.equal(201);
    expect(made.body).to.have.keys("invitation", "link");
    expect(made.body.link).to.contain("/studio/invitation#token=");
    expect(made.body.invitation).to.include({ email, role: "operator", appId: null, createdBy: administrator.id });
    const week = Date.now() + 168 * 3_600_000;
    expect(new Date(made.body.invitation.expiresAt).getTime()).to.be.closeTo(week, 60_000);
    const joined = await accept(made.body.link);
    expect(joined.http).to.equal(200);
    expect(joined.body).to.have.keys("user", "expiresAt");
    expect(joined.body.user).to.include({ email, firstName: "Grace" });
    const { body } = await as(cookieOf(joined), "GET", "/v1/auth/session");
    expect(body.organizations).to.deep.equal([{ id, name: "Harbour", role: "operator" }]);
    expect(body.apps.map(({ role }: { role: Role }) => role)).to.deep.equal(["operator"]);
    expect(outcomeOf(await accept(made.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
    expect(
      (await as(administrator.token, "GET", `/v1/organizations/${id}/invitations`)).body.invitations,
    ).to.deep.equal([]);
  });

  it("an invitation to an app gives a role there and nowhere else", async () => {
    const { id, appId } = await organization();
    const person = await join(id, "editor", appId);
    const { body } = await as(person.token, "GET", "/v1/auth/session");
    expect(body.organizations).to.deep.equal([]);
    expect(body.apps).to.deep.equal([{ id: appId, name: "Harbour", role: "editor" }]);
    expect(await rolesAt(appMembers(appId))).to.deep.equal({ [person.id]: "editor" });
    const editors = await as(administrator.token, "GET", `/v1/apps/${appId}/editors`);
    expect(editors.body.editors.map((editor: Person) => editor.id)).to.deep.equal([person.id]);
    const foreign = await invite(administrator.token, id, { email: address(), role: "reader", appId: service.appId });
    expect(outcomeOf(foreign)).to.deep.equal([404, "APP_NOT_FOUND"]);
  });

  it("a revoked, expired or invented invitation is 410", async () => {
    const { id } = await organization();
    const revoked = await invite(administrator.token, id, { email: address(), role: "reader" });
    const path = `/v1/organizations/${id}/invitations/${revoked.body.invitation.id}`;
    expect((await as(administrator.token, "DELETE", path)).http).to.equal(200);
    expect(outcomeOf(await as(administrator.token, "DELETE", path))).to.deep.equal([404, "NOT_FOUND"]);
    expect(outcomeOf(await accept(revoked.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
    const old = await invite(administrator.token, id, { email: address(), role: "reader", expiresInHours: 1 });
    await service.db.query("UPDATE one_time_link SET expires_at = now() WHERE kind = 'invitation'");
    expect(outcomeOf(await accept(old.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
    expect(outcomeOf(await accept("#token=svc_invitation_made-up"))).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("invalid invitations are rejected by field", async () => {
    const { id } = await organization();
    for (const [data, field] of [
      [{ role: "reader" }, "email"],
      [{ email: "no address", role: "reader" }, "email"],
      [{ email: address() }, "role"],
      [{ email: address(), role: "viewer" }, "role"],
      [{ email: address(), role: "reader", expiresInHours: 0 }, "expiresInHours"],
      [{ email: address(), role: "reader", expiresInHours: 721 }, "expiresInHours"],
      [{ email: address(), role: "reader", appId: "1" }, "appId"],
      [{ email: address(), role: "reader", rolle: "owner" }, "role"],
    ] as const) {
      const { http, body } = await invite(administrator.token, id, data);
      expect([http, body.status], JSON.stringify(data)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.contain(field);
    }
  });

  it("an invitation to the address of an account does not give access to it: only its own session accepts, and keeps the higher role", async () => {
    const firstOrganization = await organization("One");
    const secondOrganization = await organization("Two");
    const victim = await join(firstOrganization.id, "editor");
    const other = await join(secondOrganization.id, "owner");
    const { body } = await invite(other.token, secondOrganization.id, {
      email: victim.email.toUpperCase(),
      role: "admin",
    });
    for (const by of [null, other.token, service.tokens.api, service.tokens.live]) {
      expect(outcomeOf(await accept(body.link, {}, by))).to.deep.equal([401, "UNAUTHORIZED"]);
    }
    const before = await as(null, "POST", "/v1/auth/sign-in", {
      email: victim.email,
      passphrase: "chosen by the attacker",
    });
    expect(before.body.status).to.equal("SIGN_IN_FAILED");
    const accepted = await accept(body.link, { passphrase: "chosen by the attacker" }, victim.token);
    expect(accepted.http).to.equal(200);
    expect(accepted.headers.get("set-cookie")).to.equal(null);
    expect((await rolesAt(members(secondOrganization.id)))[victim.id]).to.equal("admin");
    expect((await rolesAt(members(firstOrganization.id)))[victim.id]).to.equal("editor");
    expect((await as(null, "POST", "/v1/auth/sign-in", { email: victim.email, passphrase: PASSPHRASE })).http).to.equal(
      200,
    );
    const lower = await invite(other.token, secondOrganization.id, { email: victim.email, role: "reader" });
    expect((await accept(lower.body.link, {}, victim.token)).http).to.equal(200);
    expect((await rolesAt(members(secondOrganization.id)))[victim.id]).to.equal("admin");
  });

  it("only one of three concurrent accepts of one invitation succeeds", async () => {
    const { id } = await organization();
    const { body } = await invite(administrator.token, id, { email: address(), role: "reader" });
    const answers = await Promise.all([accept(body.link), accept(body.link), accept(body.link)]);
    expect(answers.map(({ http }) => http).filter((http) => http === 200)).to.have.length(1);
    for (const answer of answers.filter(({ http }) => http !== 200)) {
      expect(answer.body.status).to.be.oneOf(["LINK_EXPIRED", "UNAUTHORIZED"]);
    }
    expect(Object.keys(await rolesAt(members(id)))).to.have.length(2);
  });

  it("no one can give, take or invite above their own role, nor raise themselves", async () => {
    const { id, appId } = await organization();
    const admin = await join(id, "admin");
    const editor = await join(id, "editor");
    const other = await join(id, "reader");
    for (const [by, path, body] of [
      [admin, `${members(id)}/${admin.id}`, { role: "owner" }],
      [admin, `${members(id)}/${other.id}`, { role: "owner" }],
      [admin, `${members(id)}/${administrator.id}`, { role: "reader" }],
      [admin, `${appMembers(appId)}/${administrator.id}`, { role: "reader" }],
      [admin, `${appMembers(appId)}/${other.id}`, { role: "owner" }],
      [editor, `${members(id)}/${editor.id}`, { role: "admin" }],
      [editor, `${appMembers(appId)}/${editor.id}`, { role: "admin" }],
      [editor, `${appMembers(appId)}/${other.id}`, { role: "reader" }],
      [other, `${members(id)}/${other.id}`, { role: "operator" }],
    ] as const) {
      expect(outcomeOf(await as(by.token, "PUT", path, body)), path).to.deep.equal([403, "FORBIDDEN"]);
    }
    expect(outcomeOf(await as(admin.token, "DELETE", `${members(id)}/${administrator.id}`))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    expect(outcomeOf(await invite(admin.token, id, { email: address(), role: "owner" }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    for (const by of [editor, other]) {
      for (const data of [{ role: "reader" }, { role: "reader", appId }]) {
        expect(outcomeOf(await invite(by.token, id, { email: address(), ...data }))).to.deep.equal([403, "FORBIDDEN"]);
      }
    }
    expect((await as(admin.token, "PUT", `${members(id)}/${other.id}`, { role: "admin" })).http).to.equal(200);
    const down = await as(admin.token, "PUT", `${members(id)}/${admin.id}`, { role: "reader" });
    expect(down.http).to.equal(200);
    expect(outcomeOf(await as(admin.token, "GET", members(id)))).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("the removal of an editor ends their sessions and tokens if no role remains", async () => {
    const { id, appId } = await organization();
    const removeEditor = (userId: number) => as(administrator.token, "DELETE", `/v1/apps/${appId}/editors`, { userId });
    const tokenOf = async (userId: number): Promise<string> =>
      (await as(administrator.token, "POST", `/v1/apps/${appId}/tokens`, { kind: "viewer", userId })).body.token;
    const [leaving, staying] = [await join(id, "editor", appId), await join(id, "reader")];
    const add = await as(administrator.token, "POST", `/v1/apps/${appId}/editors`, { userId: staying.id });
    expect(add.http).to.equal(200);
    const access = async ({ token }: Person, ofApp: string) => [
      (await as(token, "GET", "/v1/auth/session")).http,
      (await as(ofApp, "GET", `/v1/apps/${appId}/env.js`)).http,
    ];
    const tokens = [await tokenOf(leaving.id), await tokenOf(staying.id)] as const;
    expect(await access(leaving, tokens[0])).to.deep.equal([200, 200]);
    for (const { id: userId } of [leaving, staying]) expect((await removeEditor(userId)).http).to.equal(200);
    expect(await access(leaving, tokens[0])).to.deep.equal([401, 401]);
    expect(await access(staying, tokens[1])).to.deep.equal([200, 200]);
  });

  it("a person who loses a role, or gets a lower one, cannot regain it with an older invitation", async () => {
    const { id, appId } = await organization();
    const other = await organization();
    const app = await as(administrator.token, "POST", "/v1/admin/apps", { name: "Second", organizationId: id });
    const second: number = app.body.app.id;
    const setRole = (path: string, role: Role) => as(administrator.token, "PUT", path, { role });
    const remove = (path: string) => as(administrator.token, "DELETE", path);
    const removeEditor = (userId: number) => as(administrator.token, "DELETE", `/v1/apps/${appId}/editors`, { userId });
    const cases: [
      name: string,
      joined: number | undefined,
      end: (userId: number) => Promise<Answer>,
      revoked: boolean[],
    ][] = [
      ["removed from the organization", undefined, (userId) => remove(`${members(id)}/${userId}`), [true, true, true]],
      [
        "lower role in the organization",
        undefined,
        (userId) => setRole(`${members(id)}/${userId}`, "reader"),
        [true, true, true],
      ],
      ["removed from the app", appId, (userId) => remove(`${appMembers(appId)}/${userId}`), [false, true, false]],
      [
        "lower role on the app",
        appId,
        (userId) => setRole(`${appMembers(appId)}/${userId}`, "reader"),
        [false, true, false],
      ],
      ["removed as editor", appId, removeEditor, [false, true, false]],
      ["a higher role", appId, (userId) => setRole(`${appMembers(appId)}/${userId}`, "admin"), [false, false, false]],
    ];
    for (const [name, joinedApp, end, revoked] of cases) {
      const person = await join(id, "editor", joinedApp);
      const links: string[] = [];
      const email = person.email.toUpperCase();
      for (const [invitedTo, invitedApp] of [
        [id, undefined],
        [id, appId],
        [id, second],
        [other.id, undefined],
      ] as const) {
        const { body } = await invite(administrator.token, invitedTo, { email, role: "admin", appId: invitedApp });
        links.push(body.link);
      }
      expect((await end(person.id)).http, name).to.equal(200);
      const signedIn = await as(null, "POST", "/v1/auth/sign-in", { email: person.email, passphrase: PASSPHRASE });
      const statuses: unknown[] = [];
      for (const link of links) statuses.push((await accept(link, {}, cookieOf(signedIn))).http);
      expect(statuses, name).to.deep.equal([...revoked.map((isRevoked) => (isRevoked ? 410 : 200)), 200]);
    }
  });

  it("an app has at most 1,000 members, also if editors are added", async () => {
    const { id, appId } = await organization();
    const [member, other] = [await join(id, "reader", appId), await join(id, "reader")];
    await service.db.query(
      `WITH people AS (
         INSERT INTO person (organization_id, first_name, last_name, email)
         SELECT $1, 'Ada', 'Member', 'full' || n || '@example.com' FROM generate_series(1, $3) AS n RETURNING id)
       INSERT INTO app_member (app_id, person_id, role) SELECT $2, id, 'reader' FROM people`,
      [id, appId, MEMBERS_PER_ORGANIZATION_OR_APP_MAX - 1],
    );
    const addEditor = (userId: number) => as(administrator.token, "POST", `/v1/apps/${appId}/editors`, { userId });
    const setRole = (userId: number) =>
      as(administrator.token, "PUT", `${appMembers(appId)}/${userId}`, { role: "operator" });
    for (const refused of [await addEditor(other.id), await setRole(other.id)]) {
      expect(outcomeOf(refused)).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(refused.body.error).to.equal("an organization or app can have at most 1000 members; remove one first");
    }
    for (const accepted of [await addEditor(member.id), await setRole(member.id)]) expect(accepted.http).to.equal(200);
  });

  it("an administrator of one organization has no power over another, its people or its apps", async () => {
    const firstOrganization = await organization("One");
    const secondOrganization = await organization("Two");
    const admin = await join(firstOrganization.id, "owner");
    const victim = await join(secondOrganization.id, "reader");
    const secondAdmin = await join(secondOrganization.id, "admin");
    const pending = await invite(secondAdmin.token, secondOrganization.id, { email: address(), role: "reader" });
    const other = `/v1/organizations/${secondOrganization.id}`;
    for (const [method, path, body] of [
      ["GET", `${other}/members`],
      ["PUT", `${other}/members/${victim.id}`, { role: "owner" }],
      ["DELETE", `${other}/members/${victim.id}`],
      ["POST", `${other}/members/${victim.id}/reset-link`],
      ["GET", `${other}/invitations`],
      ["GET", `${other}/invitations?appId=${firstOrganization.appId}`],
      ["POST", `${other}/invitations`, { email: address(), role: "reader" }],
      ["POST", `${other}/invitations`, { email: address(), role: "reader", appId: secondOrganization.appId }],
      ["POST", `${other}/invitations`, { email: address(), role: "reader", appId: firstOrganization.appId }],
      ["DELETE", `${other}/invitations/${pending.body.invitation.id}`],
      ["DELETE", `${other}/invitations/2000000000`],
      ["PUT", `${appMembers(secondOrganization.appId)}/${victim.id}`, { role: "editor" }],
      ["GET", appMembers(secondOrganization.appId)],
      ["GET", "/v1/organizations/2000000000/members"],
    ] as const) {
      expect(outcomeOf(await as(admin.token, method, path, body)), `${method} ${path}`).to.deep.equal([
        403,
        "FORBIDDEN",
      ]);
    }
    // An organization can neither add people without their consent nor find people by their IDs.
    for (const path of [members(firstOrganization.id), appMembers(firstOrganization.appId)]) {
      const answer = await as(admin.token, "PUT", `${path}/${victim.id}`, { role: "reader" });
      expect(outcomeOf(answer)).to.deep.equal([404, "NOT_FOUND"]);
      const unknown = await as(admin.token, "PUT", `${path}/2000000000`, { role: "reader" });
      expect(unknown.body).to.deep.equal(answer.body);
    }
    const invitationPath = `/v1/organizations/${firstOrganization.id}/invitations/${pending.body.invitation.id}`;
    expect(outcomeOf(await as(admin.token, "DELETE", invitationPath))).to.deep.equal([404, "NOT_FOUND"]);
    expect((await rolesAt(members(secondOrganization.id)))[victim.id]).to.equal("reader");
  });

  it("the admin of an app can invite to that app only", async () => {
    const { id, appId } = await organization();
    const admin = await join(id, "admin", appId);
    const invited = await invite(admin.token, id, { email: address(), role: "admin", appId });
    expect(invited.http).to.equal(201);
    const listed = await as(admin.token, "GET", `/v1/organizations/${id}/invitations?appId=${appId}`);
    expect(listed.body.invitations.map((invitation: Person) => invitation.id)).to.deep.equal([
      invited.body.invitation.id,
    ]);
    expect(outcomeOf(await invite(admin.token, id, { email: address(), role: "reader" }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    expect(outcomeOf(await invite(admin.token, id, { email: address(), role: "owner", appId }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    const ofAll = await invite(administrator.token, id, { email: address(), role: "reader" });
    const revoked = await as(admin.token, "DELETE", `/v1/organizations/${id}/invitations/${ofAll.body.invitation.id}`);
    expect(outcomeOf(revoked)).to.deep.equal([403, "FORBIDDEN"]);
    const removed = await as(
      admin.token,
      "DELETE",
      `/v1/organizations/${id}/invitations/${invited.body.invitation.id}`,
    );
    expect(removed.http).to.equal(200);
  });

  it("rejected invitations do not count in the limit of 200 an hour", async () => {
    const { id } = await organization();
    const admin = await join(id, "admin");
    const rejected = { email: address(), role: "owner" };
    for (let sent = 0; sent < 200; sent += 1) expect((await invite(admin.token, id, rejected)).http).to.equal(403);
    expect((await invite(admin.token, id, { ...rejected, role: "reader" })).http).to.equal(201);
  });

  it("a role that the person already has changes nothing: a reset link stays valid", async () => {
    const { id, appId } = await organization();
    const { id: userId } = await join(id, "reader", appId);
    const paths = [`${members(id)}/${userId}`, `${appMembers(appId)}/${userId}`];
    for (const path of paths) await as(administrator.token, "PUT", path, { role: "editor" });
    const { body } = await as(administrator.token, "POST", `${members(id)}/${userId}/reset-link`);
    const audit = await as(administrator.token, "GET", `/v1/organizations/${id}/audit?limit=1`);
    expect(audit.body.entries[0]).to.deep.include({
      type: "person.resetLink",
      subjectId: userId,
      address: "127.0.0.1",
    });
    const entries = async () => (await as(administrator.token, "GET", `/v1/apps/${appId}/audit`)).body.pagination.total;
    const before = await entries();
    for (const path of paths) {
      expect((await as(administrator.token, "PUT", path, { role: "editor" })).http).to.equal(200);
      expect((await as(administrator.token, "PUT", path, { role: "editor", rule: 1 })).http).to.equal(400);
    }
    expect(await entries()).to.equal(before);
    const passphrase = "nine lamps of the harbour";
    const answer = await as(null, "POST", "/v1/auth/reset/confirm", { token: tokenIn(body.link), passphrase });
    expect(answer.http).to.equal(200);
  });
});
