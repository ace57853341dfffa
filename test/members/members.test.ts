/** Organizations, members and invitations, and attacks on them. */
import { expect } from "chai";
import type { GraphQLFormattedError } from "graphql";
import { rows } from "../../src/data/database.js";
import type { Role } from "../../src/rules/roles.js";
import { PASSPHRASE, signedInPerson } from "../harness/people.js";
import { type Answer, type Call, startTestService, type TestService } from "../harness/service.js";

interface Person {
  id: number;
  email: string;
  token: string;
}

/** The session token that an answer sets. */
const cookieOf = ({ headers }: Answer): string => /auth_token=([^;]*)/.exec(headers.get("set-cookie") ?? "")?.[1] ?? "";
const tokenIn = (link: string): string => link.slice(link.indexOf("#token=") + "#token=".length);
const stated = ({ http, body }: Answer) => [http, body.status];

/** The status with which a subscription ends. */
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

describe("members and invitations", () => {
  let service: TestService;
  let administrator: Person;
  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { user, email, token } = await signedInPerson(service);
    administrator = { id: user.id, email, token };
  });
  after(() => service.stop());

  const as = (token: string | null, method: string, path: string, body?: object): Promise<Answer> =>
    service.rest(method, path, { as: token, ...(body && { body }) } as Call);

  async function organization(name = "Harbour"): Promise<{ id: number; appId: number }> {
    const { body } = await as(administrator.token, "POST", "/v1/organizations", { name });
    const app = await as(administrator.token, "POST", "/v1/admin/apps", { name, organizationId: body.organization.id });
    return { id: body.organization.id, appId: app.body.app.id };
  }

  let made = 0;
  const address = () => {
    made += 1;
    return `member${made}@example.com`;
  };

  const invite = (by: string, id: number, data: object) => as(by, "POST", `/v1/organizations/${id}/invitations`, data);
  const accept = (link: string, more: object = {}, by: string | null = null) =>
    as(by, "POST", "/v1/auth/invitations/accept", {
      token: tokenIn(link),
      firstName: "Grace",
      lastName: "Hopper",
      passphrase: PASSPHRASE,
      ...more,
    });

  /** Invites a person who has no account and accepts. */
  async function join(id: number, role: Role, appId?: number): Promise<Person> {
    const email = address();
    const { body } = await invite(administrator.token, id, { email, role, appId });
    const joined = await accept(body.link);
    expect(joined.http, JSON.stringify(joined.body)).to.equal(200);
    return { id: joined.body.user.id, email, token: cookieOf(joined) };
  }

  const members = (id: number) => `/v1/organizations/${id}/members`;
  const appMembers = (id: number) => `/v1/apps/${id}/members`;

  async function rolesAt(path: string): Promise<Record<number, Role>> {
    const { body } = await as(administrator.token, "GET", path);
    return Object.fromEntries(body.members.map(({ user, role }: { user: Person; role: Role }) => [user.id, role]));
  }

  it("an administrator of the service makes an organization and owns it", async () => {
    const { body, http } = await as(administrator.token, "POST", "/v1/organizations", { name: " Pier " });
    expect(http).to.equal(201);
    expect(body.organization).to.include({ name: "Pier", role: "owner" });
    const listed = await as(administrator.token, "GET", members(body.organization.id));
    expect(listed.body.members).to.have.length(1);
    expect(listed.body.members[0]).to.have.keys("user", "role", "lastSeenAt", "updatedAt");
    expect(listed.body.members[0].user).to.include({ id: administrator.id, email: administrator.email });
    expect(new Date(listed.body.members[0].lastSeenAt).getTime()).to.be.closeTo(Date.now(), 60_000);
    expect(stated(await as(administrator.token, "POST", "/v1/organizations", {}))).to.deep.equal([
      400,
      "REQUEST_INVALID",
    ]);
  });

  it("an invitation makes an account with the role and a session, once", async () => {
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
    expect(stated(await accept(made.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
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
    expect(editors.body.editors.map((one: Person) => one.id)).to.deep.equal([person.id]);
    const foreign = await invite(administrator.token, id, { email: address(), role: "reader", appId: service.appId });
    expect(stated(foreign)).to.deep.equal([404, "APP_NOT_FOUND"]);
  });

  it("a revoked, expired or made-up invitation is 410", async () => {
    const { id } = await organization();
    const revoked = await invite(administrator.token, id, { email: address(), role: "reader" });
    const path = `/v1/organizations/${id}/invitations/${revoked.body.invitation.id}`;
    expect((await as(administrator.token, "DELETE", path)).http).to.equal(200);
    expect(stated(await as(administrator.token, "DELETE", path))).to.deep.equal([404, "NOT_FOUND"]);
    expect(stated(await accept(revoked.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
    const old = await invite(administrator.token, id, { email: address(), role: "reader", expiresInHours: 1 });
    await service.db.query("UPDATE one_time_link SET expires_at = now() WHERE kind = 'invitation'");
    expect(stated(await accept(old.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
    expect(stated(await accept("#token=svc_invitation_made-up"))).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("faulty invitations are refused by field", async () => {
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

  it("an invitation to the address of an account takes nothing over: only its own session accepts, and keeps the higher role", async () => {
    const one = await organization("One");
    const two = await organization("Two");
    const victim = await join(one.id, "editor");
    const other = await join(two.id, "owner");
    const { body } = await invite(other.token, two.id, { email: victim.email.toUpperCase(), role: "admin" });
    for (const by of [null, other.token, service.tokens.api, service.tokens.live]) {
      expect(stated(await accept(body.link, {}, by))).to.deep.equal([401, "UNAUTHORIZED"]);
    }
    const before = await as(null, "POST", "/v1/auth/sign-in", {
      email: victim.email,
      passphrase: "chosen by the attacker",
    });
    expect(before.body.status).to.equal("SIGN_IN_FAILED");
    const accepted = await accept(body.link, { passphrase: "chosen by the attacker" }, victim.token);
    expect(accepted.http).to.equal(200);
    expect(accepted.headers.get("set-cookie")).to.equal(null);
    expect((await rolesAt(members(two.id)))[victim.id]).to.equal("admin");
    expect((await rolesAt(members(one.id)))[victim.id]).to.equal("editor");
    expect((await as(null, "POST", "/v1/auth/sign-in", { email: victim.email, passphrase: PASSPHRASE })).http).to.equal(
      200,
    );
    const lower = await invite(other.token, two.id, { email: victim.email, role: "reader" });
    expect((await accept(lower.body.link, {}, victim.token)).http).to.equal(200);
    expect((await rolesAt(members(two.id)))[victim.id]).to.equal("admin");
  });

  it("of two who accept one invitation at once, one joins", async () => {
    const { id } = await organization();
    const { body } = await invite(administrator.token, id, { email: address(), role: "reader" });
    const answers = await Promise.all([accept(body.link), accept(body.link), accept(body.link)]);
    expect(answers.map(({ http }) => http).filter((http) => http === 200)).to.have.length(1);
    for (const answer of answers.filter(({ http }) => http !== 200)) {
      expect(answer.body.status).to.be.oneOf(["LINK_EXPIRED", "EMAIL_IN_USE", "UNAUTHORIZED"]);
    }
    expect(Object.keys(await rolesAt(members(id)))).to.have.length(2);
  });

  it("nobody gives, takes or invites above their own role, nor raises themselves", async () => {
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
      expect(stated(await as(by.token, "PUT", path, body)), path).to.deep.equal([403, "FORBIDDEN"]);
    }
    expect(stated(await as(admin.token, "DELETE", `${members(id)}/${administrator.id}`))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    expect(stated(await invite(admin.token, id, { email: address(), role: "owner" }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    for (const by of [editor, other]) {
      for (const data of [{ role: "reader" }, { role: "reader", appId }]) {
        expect(stated(await invite(by.token, id, { email: address(), ...data }))).to.deep.equal([403, "FORBIDDEN"]);
      }
    }
    expect((await as(admin.token, "PUT", `${members(id)}/${other.id}`, { role: "admin" })).http).to.equal(200);
    const down = await as(admin.token, "PUT", `${members(id)}/${admin.id}`, { role: "reader" });
    expect(down.http).to.equal(200);
    expect(stated(await as(admin.token, "GET", members(id)))).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("an administrator of one organization has no power over another, its people or its apps", async () => {
    const one = await organization("One");
    const two = await organization("Two");
    const admin = await join(one.id, "owner");
    const victim = await join(two.id, "reader");
    const ofTwo = await join(two.id, "admin");
    const pending = await invite(ofTwo.token, two.id, { email: address(), role: "reader" });
    const other = `/v1/organizations/${two.id}`;
    for (const [method, path, body] of [
      ["GET", `${other}/members`],
      ["PUT", `${other}/members/${victim.id}`, { role: "owner" }],
      ["DELETE", `${other}/members/${victim.id}`],
      ["POST", `${other}/members/${victim.id}/reset-link`],
      ["GET", `${other}/invitations`],
      ["GET", `${other}/invitations?appId=${one.appId}`],
      ["POST", `${other}/invitations`, { email: address(), role: "reader" }],
      ["POST", `${other}/invitations`, { email: address(), role: "reader", appId: two.appId }],
      ["POST", `${other}/invitations`, { email: address(), role: "reader", appId: one.appId }],
      ["DELETE", `${other}/invitations/${pending.body.invitation.id}`],
      ["DELETE", `${other}/invitations/2000000000`],
      ["PUT", `${appMembers(two.appId)}/${victim.id}`, { role: "editor" }],
      ["GET", appMembers(two.appId)],
      ["GET", "/v1/organizations/2000000000/members"],
    ] as const) {
      expect(stated(await as(admin.token, method, path, body)), `${method} ${path}`).to.deep.equal([403, "FORBIDDEN"]);
    }
    // Neither can it take people in without their consent, nor find by their numbers who they are.
    for (const path of [members(one.id), appMembers(one.appId)]) {
      const taken = await as(admin.token, "PUT", `${path}/${victim.id}`, { role: "reader" });
      expect(stated(taken)).to.deep.equal([404, "NOT_FOUND"]);
      const unknown = await as(admin.token, "PUT", `${path}/2000000000`, { role: "reader" });
      expect(unknown.body).to.deep.equal(taken.body);
    }
    const byLink = `/v1/organizations/${one.id}/invitations/${pending.body.invitation.id}`;
    expect(stated(await as(admin.token, "DELETE", byLink))).to.deep.equal([404, "NOT_FOUND"]);
    expect((await rolesAt(members(two.id)))[victim.id]).to.equal("reader");
  });

  it("the admin of an app invites to that app only", async () => {
    const { id, appId } = await organization();
    const admin = await join(id, "admin", appId);
    const invited = await invite(admin.token, id, { email: address(), role: "admin", appId });
    expect(invited.http).to.equal(201);
    const listed = await as(admin.token, "GET", `/v1/organizations/${id}/invitations?appId=${appId}`);
    expect(listed.body.invitations.map((one: Person) => one.id)).to.deep.equal([invited.body.invitation.id]);
    expect(stated(await invite(admin.token, id, { email: address(), role: "reader" }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    expect(stated(await invite(admin.token, id, { email: address(), role: "owner", appId }))).to.deep.equal([
      403,
      "FORBIDDEN",
    ]);
    const ofAll = await invite(administrator.token, id, { email: address(), role: "reader" });
    const revoked = await as(admin.token, "DELETE", `/v1/organizations/${id}/invitations/${ofAll.body.invitation.id}`);
    expect(stated(revoked)).to.deep.equal([403, "FORBIDDEN"]);
    const own = await as(admin.token, "DELETE", `/v1/organizations/${id}/invitations/${invited.body.invitation.id}`);
    expect(own.http).to.equal(200);
  });

  it("an organization keeps an owner, also when two owners remove each other at once", async () => {
    const { id } = await organization();
    const alone = await as(administrator.token, "DELETE", `${members(id)}/${administrator.id}`);
    expect(stated(alone)).to.deep.equal([409, "LAST_OWNER"]);
    const lower = await as(administrator.token, "PUT", `${members(id)}/${administrator.id}`, { role: "admin" });
    expect(stated(lower)).to.deep.equal([409, "LAST_OWNER"]);
    const race = async () => {
      const own = await organization();
      const [one, two] = await Promise.all([join(own.id, "owner"), join(own.id, "owner")]);
      expect((await as(one.token, "DELETE", `${members(own.id)}/${administrator.id}`)).http).to.equal(200);
      return { path: members(own.id), one, two };
    };
    const races = await Promise.all(Array.from({ length: 8 }, race));
    const answers = await Promise.all(
      races.map(({ path, one, two }) =>
        Promise.all([
          as(one.token, "DELETE", `${path}/${two.id}`),
          as(two.token, "PUT", `${path}/${one.id}`, { role: "reader" }),
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
    expect(stated(await as(person.token, "GET", "/v1/auth/session"))).to.deep.equal([401, "UNAUTHORIZED"]);
    expect((await as(runtime.body.token, "GET", `/v1/apps/${appId}/env.js`)).http).to.equal(401);
    expect(await endOf(changes)).to.equal("UNAUTHORIZED");
    await client.dispose();
    expect(stated(await accept(pending.body.link))).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("removal from one organization leaves the roles of another", async () => {
    const one = await organization("One");
    const two = await organization("Two");
    const person = await join(one.id, "editor");
    const { body } = await invite(administrator.token, two.id, {
      email: person.email,
      role: "reader",
      appId: two.appId,
    });
    await accept(body.link, {}, person.token);
    expect((await as(person.token, "GET", `/v3/apps/${one.appId}/actions`)).http).to.equal(200);
    await as(administrator.token, "DELETE", `${members(one.id)}/${person.id}`);
    expect((await as(person.token, "GET", `/v3/apps/${one.appId}/actions`)).http).to.equal(403);
    expect((await as(person.token, "GET", `/v3/apps/${two.appId}/actions`)).http).to.equal(200);
    const gone = await as(administrator.token, "DELETE", `${appMembers(two.appId)}/${person.id}`);
    expect(gone.body.members).to.deep.equal([]);
    expect((await as(person.token, "GET", `/v3/apps/${two.appId}/actions`)).http).to.equal(401);
  });

  it("a lower role revokes invitations that it could not make", async () => {
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

  it("a changed role counts from the next request on, in a running subscription too", async () => {
    const { id, appId } = await organization();
    const person = await join(id, "editor");
    const client = service.socket(person.token);
    const logs = client.iterate({ query: `subscription { actionLogAdded(appId: ${appId}) { id } }` });
    const end = endOf(logs);
    const settings = () => as(person.token, "GET", `/v1/apps/${appId}/settings`);
    expect((await settings()).http).to.equal(200);
    await as(administrator.token, "PUT", `${members(id)}/${person.id}`, { role: "operator" });
    expect((await settings()).http).to.equal(403);
    expect((await as(person.token, "GET", `/v3/apps/${appId}/actions`)).http).to.equal(200);
    await as(administrator.token, "DELETE", `${members(id)}/${person.id}`);
    expect(await end).to.equal("UNAUTHORIZED");
    await client.dispose();
  });

  it("a reset link is for callers who outrank the person in every organization of theirs", async () => {
    const one = await organization("One");
    const two = await organization("Two");
    const owner = await join(one.id, "owner");
    const second = await join(one.id, "owner");
    const editor = await join(one.id, "editor");
    const link = (by: string, id: number, userId: number) => as(by, "POST", `${members(id)}/${userId}/reset-link`);
    const made = await link(owner.token, one.id, editor.id);
    expect(made.http).to.equal(201);
    expect(made.body.link).to.contain("/studio/reset#token=");
    const confirmed = await as(null, "POST", "/v1/auth/reset/confirm", {
      token: tokenIn(made.body.link),
      passphrase: "nine lamps of the harbour",
    });
    expect(confirmed.http).to.equal(200);
    expect(stated(await link(owner.token, one.id, second.id))).to.deep.equal([403, "FORBIDDEN"]);
    expect(stated(await link(editor.token, one.id, owner.id)).at(0)).to.be.oneOf([401, 403]);
    const { body } = await invite(administrator.token, two.id, { email: editor.email, role: "reader" });
    const again = await as(null, "POST", "/v1/auth/sign-in", {
      email: editor.email,
      passphrase: "nine lamps of the harbour",
    });
    await accept(body.link, {}, cookieOf(again));
    expect(stated(await link(owner.token, one.id, editor.id))).to.deep.equal([403, "FORBIDDEN"]);
    expect((await link(administrator.token, one.id, editor.id)).http).to.equal(201);
    const { user } = await signedInPerson(service);
    const other = await link(administrator.token, user.organizationId, user.id);
    expect(stated(other)).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("a reset link ends when the role of its maker or of its person changes", async () => {
    const { id } = await organization();
    const owner = await join(id, "owner");
    const [promoted, other] = [await join(id, "reader"), await join(id, "reader")];
    const link = async (userId: number) =>
      tokenIn((await as(owner.token, "POST", `${members(id)}/${userId}/reset-link`)).body.link);
    const ofPromoted = await link(promoted.id);
    await as(administrator.token, "PUT", `${members(id)}/${promoted.id}`, { role: "owner" });
    const ofOther = await link(other.id);
    expect((await as(administrator.token, "DELETE", `${members(id)}/${owner.id}`)).http).to.equal(200);
    for (const token of [ofPromoted, ofOther]) {
      const body = { token, passphrase: "nine lamps of the harbour" };
      const answer = await as(null, "POST", "/v1/auth/reset/confirm", body);
      expect(stated(answer)).to.deep.equal([410, "LINK_EXPIRED"]);
    }
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
    const own = await ask("{ organizations { id name role } }", {}, person);
    expect(own.data.organizations).to.deep.equal([{ id, name: "Harbour", role: "operator" }]);
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
