/** Tests the users of an app: an entry with a hashed column signs a user in to a page, and no caller can read this column. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { ActionError } from "../../src/errors.js";
import { hashToken } from "../../src/operations/access/tokens.js";
import { AppUserSignInAttempts } from "../../src/operations/data-sources/sign-in-attempts.js";
import { untilLockWait } from "../harness/lock-waits.js";
import { startTestService, type TestService } from "../harness/service.js";

const HOOKS = [
  { type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"], Email: ["trim", "lower"] } },
];

describe("users of an app", () => {
  let service: TestService;
  let base: string;
  let session: string;
  let sourceId: number;
  let made = 0;

  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
    base = `/v1/apps/${service.appId}/data-sources`;
    session = `/v1/apps/${service.appId}/session`;
    const { body } = await service.rest("POST", base, { body: { name: "Users", hooks: HOOKS, isUsers: true } });
    sourceId = body.dataSource.id;
  });
  after(() => service.stop());

  /** Creates a page token that no other test uses. */
  const createPageToken = async (kind: "live" | "viewer" = "live"): Promise<string> =>
    (await service.rest("POST", `/v1/apps/${service.appId}/tokens`, { body: { kind } })).body.token;
  const newUser = async (more: object = {}) => {
    made += 1;
    const data = { Email: ` User${made}@Example.org `, Password: `secret ${made}`, ...more };
    const { body } = await service.rest("POST", `${base}/Users/entries`, { body: { data } });
    return { ...body, password: data.Password };
  };
  const signIn = (as: string, Email: string, Password: unknown) =>
    service.rest("POST", session, {
      as,
      body: { passport: "dataSource", dataSourceId: sourceId, where: { Email, Password } },
    });
  const userOf = async (as: string) =>
    (await service.rest("GET", session, { as })).body.session.entries?.dataSource ?? null;
  const refusal = ({ http, body }: { http: number; body: { status: string } }) => `${http} ${body.status}`;

  it("have their texts changed by the hooks, and a password that no response contains", async () => {
    const user = await newUser({ Name: "Ada" });
    expect(user.data).to.deep.equal({ Email: `user${made}@example.org`, Name: "Ada" });
    const [stored] = await rows<{ text: string }>(
      service.db,
      "SELECT data->>'Password' AS text FROM data_source_entry WHERE id = $1",
      [user.id],
    );
    expect(stored!.text).to.match(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    const exits = [
      await service.rest("GET", `${base}/Users/entries/${user.id}`),
      await service.rest("POST", `${base}/Users/query`, { body: { where: { Email: user.data.Email } } }),
      await service.rest("POST", `${base}/Users/query`, { body: { attributes: ["Password"] } }),
      await service.rest("POST", `${base}/Users/query`, { body: { aggregate: [{ $project: { p: "$Password" } }] } }),
      await service.rest("POST", `${base}/Users/query`, { body: { aggregate: [{ $group: { _id: "$Password" } }] } }),
      await service.rest("GET", `${base}/Users/indexes/Password`),
      await service.rest("PUT", `${base}/Users/entries/${user.id}`, { body: { Name: "A" } }),
      await service.rest("POST", `${base}/Users/commit`, {
        body: { entries: [{ id: user.id, data: { Email: user.data.Email } }], returnEntries: true },
      }),
      await service.graphql(
        'query ($app: Int!) { dataSourceEntries(appId: $app, dataSourceId: "Users") { entries { data } } }',
        { app: service.appId },
      ),
    ];
    expect(JSON.stringify(exits)).to.not.include("argon2");
  });

  it("keep their password if an entry is replaced by what was read of it", async () => {
    const user = await newUser();
    const commit = { entries: [{ id: user.id, data: { Email: user.data.Email, Name: "new" } }] };
    await service.rest("POST", `${base}/Users/commit`, { body: commit });
    expect((await signIn(await createPageToken(), user.data.Email, user.password)).http).to.equal(200);
  });

  it("sign in to their page, and to no other", async () => {
    const user = await newUser({ Office: "London" });
    const [page, other] = [await createPageToken(), await createPageToken()];
    const answer = await signIn(page, ` ${user.data.Email.toUpperCase()}`, user.password);
    expect(answer.http).to.equal(200);
    const data = { Email: user.data.Email, Office: "London" };
    expect(answer.body.session.entries).to.deep.equal({ dataSource: { id: user.id, dataSourceId: sourceId, data } });
    expect(await userOf(page)).to.deep.equal({ id: user.id, dataSourceId: sourceId, data });
    expect(await userOf(other)).to.equal(null);
    expect((await service.rest("DELETE", session, { as: page })).body.session).to.not.have.property("entries");
    expect(await userOf(page)).to.equal(null);
  });

  it("also sign in over GraphQL", async () => {
    const user = await newUser();
    const page = await createPageToken();
    const text = `mutation ($app: Int!, $id: ID!, $where: JSON!) {
      authorizeAppUser(appId: $app, dataSourceId: $id, where: $where) { entries { dataSource { id } } }
    }`;
    const where = { Email: user.data.Email, Password: user.password };
    const { data } = await service.graphql(text, { app: service.appId, id: String(sourceId), where }, { as: page });
    expect(data.authorizeAppUser.entries.dataSource.id).to.equal(user.id);
    await service.graphql(
      "mutation ($app: Int!) { logoutAppUser(appId: $app) { appId } }",
      { app: service.appId },
      { as: page },
    );
    expect(await userOf(page)).to.equal(null);
  });

  it("get the same error if they are unknown and if the password is wrong", async () => {
    const user = await newUser();
    const page = await createPageToken();
    const wrong = await signIn(page, user.data.Email, "wrong");
    const unknown = await signIn(page, "nobody@example.org", "wrong");
    expect(refusal(wrong)).to.equal("401 UNAUTHORIZED");
    expect(unknown.body).to.deep.equal(wrong.body);
    expect([unknown.http, await userOf(page)]).to.deep.equal([401, null]);
  });

  for (const [title, where] of [
    ["an operator in the place of the password", { Email: "a", Password: { $ne: "" } }],
    ["nothing but a password", { Password: "a" }],
    ["null for a password", { Email: "a", Password: null }],
    ["an operator at the top", { $or: [{}], Password: "a" }],
    ["an array", []],
  ] as const) {
    it(`cannot sign in by ${title}`, async () => {
      const body = { dataSourceId: sourceId, where };
      const answer = await service.rest("POST", session, { as: await createPageToken(), body });
      expect(answer.http).to.be.oneOf([400, 401]);
    });
  }

  it("are only entries of a data source with isUsers, found with a hashed column", async () => {
    const create = (name: string, more: object) => service.rest("POST", base, { body: { name, ...more } });
    await create("Feedback", { accessRules: [{ type: ["insert"], allow: "all" }] });
    await create("Hashed", { hooks: HOOKS, accessRules: [{ type: ["insert"], allow: "all" }] });
    const page = await createPageToken();
    const forged = { Email: "a@example.org", Role: "staff", Password: "chosen" };
    for (const name of ["Feedback", "Hashed"]) {
      const { http } = await service.rest("POST", `${base}/${name}/entries`, { as: page, body: forged });
      expect(http, name).to.equal(201);
    }
    const { Email, Role, Password } = forged;
    const user = await newUser({ Role });
    for (const [source, where] of [
      ["Feedback", { Email, Role }],
      ["Feedback", { Email, Password }],
      ["Hashed", { Email, Password }],
      ["Hashed", { Email, Role }],
      ["There is none", { Email, Password }],
      ["Users", { Email: user.data.Email }],
      ["Users", { Email: user.data.Email, Role }],
      ["Users", {}],
    ] as const) {
      const body = { dataSourceId: source, where };
      const answer = await service.rest("POST", session, { as: page, body });
      expect(refusal(answer), `${source} ${Object.keys(where)}`).to.equal("403 DATA_SOURCE_ACCESS_DENIED");
      const text = `mutation ($app: Int!, $id: ID!, $where: JSON!) {
        authorizeAppUser(appId: $app, dataSourceId: $id, where: $where) { appId } }`;
      const received = await service.graphql(text, { app: service.appId, id: source, where }, { as: page });
      expect(received.errors?.[0].extensions.status).to.equal("DATA_SOURCE_ACCESS_DENIED");
    }
    const where = { Email: user.data.Email, Password: user.password };
    for (const body of [
      { passport: "google", dataSourceId: "Users", where },
      { passport: null, dataSourceId: "Users", where },
      { passport: "google" },
      { passport: "dataSource", dataSourceId: "Users" },
    ]) {
      const answer = await service.rest("POST", session, { as: page, body });
      expect(refusal(answer), JSON.stringify(body)).to.equal("403 DATA_SOURCE_ACCESS_DENIED");
    }
    expect(await userOf(page)).to.equal(null);
  });

  it("are not restored by a token if an editor removes isUsers at the same time", async () => {
    await service.rest("POST", base, { body: { name: "Formers", hooks: HOOKS, isUsers: true } });
    const { sent } = await service.db.transaction(async (manager) => {
      const where = "app_id = $1 AND name = 'Formers'";
      await manager.query(`SELECT FROM data_source WHERE ${where} FOR NO KEY UPDATE`, [service.appId]);
      const sent = service.rest("PUT", `${base}/Formers`, { as: "api", body: { isUsers: true } });
      await untilLockWait(manager, sent);
      await manager.query(`UPDATE data_source SET is_users = false WHERE ${where}`, [service.appId]);
      return { sent };
    });
    const { http, body } = await sent;
    expect([http, body.status]).to.deep.equal([403, "FORBIDDEN"]);
  });

  it("are signed out if their data source loses isUsers", async () => {
    await service.rest("POST", base, { body: { name: "Members", hooks: HOOKS, isUsers: true } });
    await service.rest("POST", base, {
      body: { name: "Secrets", accessRules: [{ type: ["select"], allow: "loggedIn" }] },
    });
    await service.rest("POST", `${base}/Members/entries`, { body: { Email: "m@example.org", Password: "m" } });
    const page = await createPageToken();
    const where = { Email: "m@example.org", Password: "m" };
    expect((await service.rest("POST", session, { as: page, body: { dataSourceId: "Members", where } })).http).to.equal(
      200,
    );
    const read = async () => (await service.rest("POST", `${base}/Secrets/query`, { as: page, body: {} })).http;
    expect(await read()).to.equal(200);
    await service.rest("PUT", `${base}/Members`, { body: { isUsers: false } });
    expect([await read(), await userOf(page)]).to.deep.equal([403, null]);
  });

  it("are marked by an editor, on a data source with a hashed column", async () => {
    const create = async (name: string, more: object, as?: string) =>
      service.rest("POST", base, { body: { name, ...more }, ...(as && { as }) });
    expect(refusal(await create("M1", { isUsers: true }))).to.equal("400 REQUEST_INVALID");
    expect(refusal(await create("M1", { isUsers: "yes", hooks: HOOKS }))).to.equal("400 REQUEST_INVALID");
    expect(refusal(await create("M1", { isUsers: true, hooks: HOOKS }, service.tokens.api))).to.equal("403 FORBIDDEN");
    const { body } = await create("M1", { hooks: HOOKS }, service.tokens.api);
    expect(body.dataSource.isUsers).to.equal(false);
    const put = (fields: object, as = service.tokens.editor) => service.rest("PUT", `${base}/M1`, { body: fields, as });
    expect(refusal(await put({ isUsers: true }, service.tokens.api))).to.equal("403 FORBIDDEN");
    expect((await put({ isUsers: true })).body.dataSource.isUsers).to.equal(true);
    expect((await put({ isUsers: true, name: "M2" }, service.tokens.api)).body.dataSource).to.include({
      isUsers: true,
    });
    const text = `mutation ($app: Int!) { updateDataSource(appId: $app, id: "M2", data: { isUsers: false }) { isUsers } }`;
    const { data } = await service.graphql(text, { app: service.appId });
    expect(data.updateDataSource.isUsers).to.equal(false);
  });

  it("have failures counted by address, whatever else a request contains; another address is not locked out", async () => {
    await service.db.query("DELETE FROM app_user_failure");
    const user = await newUser();
    const ask = (where: object, address: string) =>
      service.rest("POST", session, {
        as: "live",
        body: { dataSourceId: sourceId, where: { Email: user.data.Email, ...where } },
        headers: { "x-forwarded-for": address },
      });
    const answers = [];
    const startedAt = Date.now();
    for (let at = 0; at < 11; at += 1) {
      answers.push((await ask({ Password: "wrong", [`More${at}`]: "x" }, "10.0.0.1")).http);
    }
    expect(answers).to.deep.equal([...Array(10).fill(401), 429]);
    for (let at = 0; at < 12; at += 1) expect((await ask({ Password: "wrong" }, `10.0.1.${at}`)).http).to.equal(401);
    expect((await ask({ Password: user.password }, "10.0.0.2")).http).to.equal(200);
    const refused = await ask({ Password: user.password }, "10.0.0.1");
    expect([refused.http, refused.body.status]).to.deep.equal([429, "RATE_LIMIT_EXCEEDED"]);
    // The wait ends ten minutes after the first failure, and not after a later one.
    const waitEndsAt = new Date(refused.body.nextValidRequestDate).getTime();
    expect(waitEndsAt).to.be.within(startedAt + 599_000, Date.now() + 601_000);
  });

  it("have failures of one address counted over all entries, separately from other addresses", async () => {
    const attempts = new AppUserSignInAttempts({ db: service.db });
    const sender = (address: string) =>
      ({ kind: "live", credentialId: 1, personId: null, runId: null, address }) as const;
    const fail = (entry: number, address: string) =>
      attempts
        .runCountedAttempt(1, [[`entry ${entry}`]], sender(address), async () => false)
        .catch((error: ActionError) => error.status);
    for (let entry = 0; entry < 10; entry += 1) expect(await fail(entry, "10.0.3.1")).to.equal(false);
    expect(await fail(10, "10.0.3.1")).to.equal("RATE_LIMIT_EXCEEDED");
    expect(await fail(10, "10.0.4.1")).to.equal(false);
  });

  it("have no failure counted for an attempt that was rejected for capacity, or failed for another reason", async () => {
    const attempts = new AppUserSignInAttempts({ db: service.db });
    const sender = { kind: "live", credentialId: 1, personId: null, runId: null, address: "10.0.2.1" } as const;
    const attempt = (outcome: () => Promise<boolean>) => attempts.runCountedAttempt(1, [["entry"]], sender, outcome);
    const overloaded = async () => {
      throw new ActionError("OVERLOADED");
    };
    for (let time = 0; time < 20; time += 1) {
      expect(await attempt(overloaded).catch((error: ActionError) => error.status)).to.equal("OVERLOADED");
    }
    expect(await attempt(async () => true)).to.equal(true);
    for (let time = 0; time < 10; time += 1) expect(await attempt(async () => false)).to.equal(false);
    const refused = await attempt(async () => true).catch((error: ActionError) => error.status);
    expect(refused).to.equal("RATE_LIMIT_EXCEEDED");
  });

  it("lose their session with a changed password or with their entry", async () => {
    const [firstUser, secondUser] = [await newUser(), await newUser()];
    const [first, second] = [await createPageToken(), await createPageToken()];
    await signIn(first, firstUser.data.Email, firstUser.password);
    await signIn(second, secondUser.data.Email, secondUser.password);
    await service.rest("PUT", `${base}/Users/entries/${firstUser.id}`, { body: { Name: "kept" } });
    expect(await userOf(first)).to.not.equal(null);
    await service.rest("PUT", `${base}/Users/entries/${firstUser.id}`, { body: { Password: "another" } });
    expect(await userOf(first)).to.equal(null);
    await service.rest("DELETE", `${base}/Users/entries/${secondUser.id}`);
    expect(await userOf(second)).to.equal(null);
  });

  it("keep a column unreadable that is no longer hashed", async () => {
    await service.rest("POST", base, {
      body: { name: "Once", hooks: HOOKS, entries: [{ Email: "a", Password: "b" }] },
    });
    await service.rest("PUT", `${base}/Once`, { body: { hooks: [] } });
    const { body } = await service.rest("POST", `${base}/Once/query`, { body: {} });
    expect(body.entries.map(({ data }: { data: object }) => data)).to.deep.equal([{ Email: "a" }]);
  });

  it("are found by comparing their password, the only operator on a hashed column", async () => {
    const user = await newUser();
    const found = async (where: object) =>
      (await service.rest("POST", `${base}/Users/query`, { body: { where } })).body.entries?.map(
        ({ id }: { id: number }) => id,
      );
    const { Email } = user.data;
    expect(await found({ Email, Password: user.password })).to.deep.equal([user.id]);
    expect(await found({ "data.Email": Email, "data.Password": { $eq: user.password } })).to.deep.equal([user.id]);
    expect(await found({ Email, Password: "wrong" })).to.deep.equal([]);
    expect(await found({ $and: [{ Email }, { Password: user.password }] })).to.deep.equal([user.id]);
    expect(await found({ Email, $and: [{ Password: "wrong" }] })).to.deep.equal([]);
    expect(await found({ Email, $or: [{ Password: { $regex: "argon2" } }] })).to.deep.equal([]);
    const refused = await service.rest("POST", `${base}/Users/query`, {
      body: { where: { Email, Password: { $regex: "^\\$" } } },
    });
    expect(refusal(refused)).to.equal("400 REQUEST_INVALID");
    // Each comparison costs much CPU time, and counts as one guess.
    const repeated = await service.rest("POST", `${base}/Users/query`, {
      body: { where: { Email, Password: "a", $and: [{ $and: [{ Password: "b" }] }] } },
    });
    expect(refusal(repeated)).to.equal("400 REQUEST_INVALID");
    expect(repeated.body.error).to.match(/^where can compare the hashed column "Password" only once/);
    const nested = await fetch(`${service.url}${base}/Users/query`, {
      method: "POST",
      headers: { "auth-token": service.tokens.editor, "content-type": "application/json" },
      body: `{"where":${'{"$and":['.repeat(20_000)}{}${"]}".repeat(20_000)}}`,
    });
    expect(nested.status).to.equal(400);
  });

  it("set their language, stored as the log event session.locale.updated", async () => {
    const user = await newUser();
    const page = await createPageToken();
    await signIn(page, user.data.Email, user.password);
    expect((await service.rest("PUT", session, { as: page, body: { locale: "pt-br" } })).http).to.equal(200);
    expect(refusal(await service.rest("PUT", session, { as: page, body: { locale: "no language" } }))).to.equal(
      "400 REQUEST_INVALID",
    );
    const events = await rows<{ data: object; entry: number; sessionId: number }>(
      service.db,
      `SELECT data, data_source_entry_id AS entry, session_id AS "sessionId"
         FROM log_event WHERE type = 'session.locale.updated'`,
    );
    const [credential] = await rows<{ id: number }>(service.db, "SELECT id FROM credential WHERE hash = $1", [
      hashToken(page),
    ]);
    expect(events).to.deep.equal([{ data: { locale: "pt-BR" }, entry: user.id, sessionId: credential!.id }]);
  });

  it("have ten failures in ten minutes for one entry: then 429 without a comparison", async () => {
    await service.db.query("DELETE FROM app_user_failure");
    const user = await newUser();
    const page = await createPageToken();
    const answers = await Promise.all(Array.from({ length: 14 }, () => signIn(page, user.data.Email, "wrong")));
    expect(answers.map(({ http }) => http).sort()).to.deep.equal([...Array(10).fill(401), ...Array(4).fill(429)]);
    const refused = await signIn(page, user.data.Email, user.password);
    expect([refused.http, await userOf(page)]).to.deep.equal([429, null]);
    expect(Number(refused.headers.get("retry-after"))).to.be.within(500, 600);
    await service.db.query("UPDATE app_user_failure SET created_at = created_at - interval '10 minutes'");
    expect((await signIn(page, user.data.Email, user.password)).http).to.equal(200);
  });
});
