/** Tests accounts of people: the first administrator, sign-in with a passphrase, sessions, and reset links. */
import { request } from "node:http";
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import type { AccountModules } from "../../src/operations/accounts/people-accounts.js";
import { overlap, untilLockWait } from "../harness/lock-waits.js";
import { type MailServer, startMailServer } from "../harness/mail-server.js";
import { createAccounts, createSignedInPerson, PASSPHRASE } from "../harness/people.js";
import { longTest } from "../harness/samples.js";
import { type Answer, startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";

const cookieOf = ({ headers }: Answer): string => /auth_token=([^;]*)/.exec(headers.get("set-cookie") ?? "")?.[1] ?? "";

describe("accounts of people", () => {
  let service: TestService;
  let made: AccountModules;
  let mail: MailServer;
  before(async () => {
    mail = await startMailServer();
    service = await startTestService({
      ROLES: "api",
      TRUST_PROXY: "1",
      SMTP_URL: `smtp://127.0.0.1:${mail.port}`,
      MAIL_FROM: "Service <service@example.com>",
    });
    made = createAccounts(service);
  });
  after(async () => {
    await service.stop();
    await mail.stop();
  });

  const from = (address: string) => ({ "x-forwarded-for": address });
  let addresses = 0;
  /** Sends a request without a credential. Each call has a new client address, unless `headers` sets one by `from`. */
  const post = (path: string, body: object, headers: Record<string, string> = {}) => {
    addresses += 1;
    return service.rest("POST", `/v1/auth/${path}`, {
      as: null,
      body,
      headers: { ...from(`10.1.0.${addresses}`), ...headers },
    });
  };
  let people = 0;
  async function setup(extra: object = {}): Promise<Answer & { email: string }> {
    people += 1;
    const token = "token" in extra ? extra.token : (await made.accounts.createSetupLink()).token;
    const email = `person${people}@example.com`;
    const body = { token, email, firstName: "Ada", lastName: "Lovelace", passphrase: PASSPHRASE, ...extra };
    return { ...(await post("setup", body)), email };
  }
  const as = (token: string, path: string, method = "GET", body?: object) =>
    service.rest(method, `/v1/auth/${path}`, { as: token, body });

  it("a set-up link makes an administrator once, with a session in an HttpOnly cookie", async () => {
    const { token, link } = await made.accounts.createSetupLink();
    expect(link).to.equal(`${service.url.replace("127.0.0.1", "localhost")}/studio/setup#token=${token}`);
    const body = { token, email: "First@example.com", firstName: "Ada", lastName: "Lovelace", passphrase: PASSPHRASE };
    const first = await post("setup", body);
    expect(first.http).to.equal(201);
    expect(first.body).to.have.keys("user", "expiresAt");
    expect(first.body.user).to.include({ email: "First@example.com", firstName: "Ada" });
    expect(first.headers.get("set-cookie")).to.match(/^auth_token=svc_\w+.*; HttpOnly; SameSite=Lax$/);
    const session = await as(cookieOf(first), "session");
    expect(session.body.user).to.deep.equal(first.body.user);
    expect((await service.rest("GET", "/v1/apps", { as: cookieOf(first) })).body.apps).to.have.length(1);
    const again = await post("setup", { ...body, email: "second@example.com" });
    expect([again.http, again.body.status]).to.deep.equal([410, "LINK_EXPIRED"]);
  });

  it("rejects a link that was replaced, is of another kind, too old or invented (410)", async () => {
    const revoked = await made.accounts.createSetupLink();
    await made.accounts.createSetupLink();
    const old = await made.links.issue({ kind: "setup", lifetimeMs: -1 });
    const other = await made.links.issue({ kind: "invitation", lifetimeMs: 60_000 });
    for (const token of [revoked.token, old.token, other.token, "made-up"]) {
      const { http, body } = await setup({ token });
      expect([http, body.status], token).to.deep.equal([410, "LINK_EXPIRED"]);
    }
  });

  it("a set-up that fails leaves the link valid", async () => {
    const { token } = await made.accounts.createSetupLink();
    expect((await setup({ token, passphrase: "short" })).body.status).to.equal("PASSPHRASE_TOO_WEAK");
    expect((await setup({ token, email: "first@EXAMPLE.com" })).body.status).to.equal("EMAIL_IN_USE");
    expect((await setup({ token, nickname: "x" })).body.status).to.equal("REQUEST_INVALID");
    expect((await setup({ token })).http).to.equal(201);
  });

  it("a set-up ends the earlier session of the browser", async () => {
    const earlier = cookieOf(await setup());
    const { token } = await made.accounts.createSetupLink();
    const body = { token, email: "later@example.com", firstName: "Ada", lastName: "Later", passphrase: PASSPHRASE };
    const later = await post("setup", body, { cookie: `auth_token=${earlier}`, origin: service.url });
    expect((await as(cookieOf(later), "session")).http).to.equal(200);
    expect((await as(earlier, "session")).http).to.equal(401);
  });

  for (const passphrase of [
    "short",
    "elevenchars",
    "passwordpassword",
    "Passwordpassword",
    "abcabcabcabc",
    "123456789012",
  ]) {
    it(`${JSON.stringify(passphrase)} is too weak a passphrase`, async () => {
      const { http, body } = await setup({ passphrase });
      expect([http, body.status]).to.deep.equal([400, "PASSPHRASE_TOO_WEAK"]);
    });
  }

  it("lets a session without a passphrase only register a passkey", async () => {
    const { http, headers, body } = await setup({ passphrase: null });
    expect(http).to.equal(201);
    const token = cookieOf({ http, headers, body });
    expect((await as(token, "session")).http).to.equal(200);
    expect((await service.rest("GET", "/v1/apps", { as: token })).body.apps).to.deep.equal([]);
    expect((await service.rest("GET", `/v3/apps/${service.appId}/actions`, { as: token })).http).to.equal(403);
  });

  it("signs in by e-mail, ignoring case, and passphrase, and replaces the session of the browser", async () => {
    const { email } = await setup();
    const first = await post("sign-in", { email: email.toUpperCase(), passphrase: PASSPHRASE });
    expect(first.http).to.equal(200);
    expect(first.body).to.have.keys("user", "expiresAt");
    const token = cookieOf(first);
    const cookie = { cookie: `auth_token=${token}`, origin: service.url };
    const second = await post("sign-in", { email, passphrase: PASSPHRASE }, cookie);
    expect(cookieOf(second)).to.not.equal(token);
    expect((await as(token, "session")).http).to.equal(401);
    expect((await as(cookieOf(second), "session")).http).to.equal(200);
  });

  it("gives the same response for an unknown account, one without a passphrase and a wrong passphrase", async () => {
    const { email } = await setup();
    const answers = [
      await post("sign-in", { email: "nobody@example.com", passphrase: PASSPHRASE }),
      await post("sign-in", { email: "editor@example.com", passphrase: PASSPHRASE }),
      await post("sign-in", { email, passphrase: `${PASSPHRASE}!` }),
    ];
    for (const { http, body, headers } of answers) {
      expect([http, body]).to.deep.equal([401, answers[0]!.body]);
      expect(body.status).to.equal("SIGN_IN_FAILED");
      expect(headers.get("set-cookie")).to.equal(null);
    }
  });

  it("makes an account wait after ten failures, only at that address, and even for the right passphrase", async () => {
    const { email } = await setup();
    const fromSameAddress = from("192.0.2.1");
    for (let at = 0; at < 10; at += 1) {
      expect((await post("sign-in", { email, passphrase: `wrong ${at}` }, fromSameAddress)).http).to.equal(401);
    }
    const refused = await post("sign-in", { email, passphrase: PASSPHRASE }, fromSameAddress);
    expect([refused.http, refused.body.status]).to.deep.equal([429, "RATE_LIMIT_EXCEEDED"]);
    expect(Number(refused.headers.get("retry-after"))).to.be.within(1, 60);
    expect((await post("sign-in", { email, passphrase: PASSPHRASE }, from("192.0.2.2"))).http).to.equal(200);
  });

  it("makes an address wait after ten failures with different accounts", async () => {
    const fromSameAddress = from("192.0.2.9");
    for (let at = 0; at < 10; at += 1) {
      await post("sign-in", { email: `unknown${at}@example.com`, passphrase: PASSPHRASE }, fromSameAddress);
    }
    const { email } = await setup();
    expect((await post("sign-in", { email, passphrase: PASSPHRASE }, fromSameAddress)).http).to.equal(429);
  });

  longTest("compares at most ten of twenty concurrent attempts", async () => {
    const { email } = await setup();
    const fromSameAddress = from("192.0.2.77");
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post("sign-in", { email, passphrase: "wrong" }, fromSameAddress)),
    );
    const count = (status: number) => answers.filter(({ http }) => http === status).length;
    expect([count(401), count(429)]).to.deep.equal([10, 10]);
  });

  it("lists the person's sessions with device and address, and ends one, or all others", async () => {
    const { email } = await setup();
    const signIn = async (userAgent: string) =>
      cookieOf(
        await post("sign-in", { email, passphrase: PASSPHRASE }, { "user-agent": userAgent, ...from("198.51.100.7") }),
      );
    const linux = await signIn("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0");
    const unknown = await signIn("curl/8");
    const third = await signIn("");
    const { sessions } = (await as(linux, "sessions")).body;
    expect(sessions).to.have.length(4);
    const current = sessions.find(({ isCurrent }: { isCurrent: boolean }) => isCurrent);
    expect(current).to.include({ device: "Firefox on Linux", address: "198.51.100.7" });
    const other = await as(unknown, "sessions");
    const { id } = other.body.sessions.find(({ isCurrent }: { isCurrent: boolean }) => isCurrent);
    expect((await as(linux, `sessions/${id}`, "DELETE")).http).to.equal(200);
    expect((await as(unknown, "session")).http).to.equal(401);
    expect((await as(linux, `sessions/${id}`, "DELETE")).http).to.equal(404);
    expect((await as(linux, "sessions", "DELETE")).http).to.equal(200);
    expect((await as(third, "session")).http).to.equal(401);
    expect((await as(linux, "session")).http).to.equal(200);
  });

  it("lets no session end a session of another person", async () => {
    const mine = cookieOf(await setup());
    const theirs = cookieOf(await setup());
    const [{ id }] = (await as(theirs, "sessions")).body.sessions;
    expect((await as(mine, `sessions/${id}`, "DELETE")).http).to.equal(404);
    expect((await as(theirs, "session")).http).to.equal(200);
  });

  it("signing out ends the session and clears the cookie", async () => {
    const token = cookieOf(await setup());
    const { http, headers } = await service.rest("POST", "/v1/auth/sign-out", { as: token });
    expect(http).to.equal(200);
    expect(headers.get("set-cookie")).to.match(/^auth_token=; .*Max-Age=0/);
    expect((await as(token, "session")).http).to.equal(401);
    expect((await post("sign-out", {})).http).to.equal(200);
  });

  it("signs out while another tab signs out", async () => {
    const { user, token } = await createSignedInPerson(service);
    const signOut = (method: string, path: string) => () => service.rest(method, path, { as: token });
    const requests = [signOut("POST", "/v1/auth/sign-out"), signOut("DELETE", "/v1/session")] as const;
    const lock: [string, number] = ["SELECT FROM person WHERE id = $1 FOR UPDATE", user.id];
    for (const { http, headers } of await overlap(service.db, lock, ...requests))
      expect(`${http} ${headers.get("set-cookie")}`).to.match(/^200 auth_token=;/);
  });

  it("a session ends after 12 hours without use, and is renewed by use up to 30 days", async () => {
    /** Creates a session of this age, last use and remaining time (SQL intervals). It is not cached, because no request has used it. */
    async function createAgedSession(created: string, used: string, left: string): Promise<string> {
      const token = cookieOf(await setup());
      const [row] = await rows<{ id: number }>(service.db, "SELECT max(credential_id) AS id FROM person_session");
      await service.db.query(
        "UPDATE person_session SET created_at = now() - $2::interval, last_used_at = now() - $3::interval WHERE credential_id = $1",
        [row!.id, created, used],
      );
      await service.db.query("UPDATE credential SET expires_at = now() + $2::interval WHERE id = $1", [row!.id, left]);
      return token;
    }
    const left = async (token: string) =>
      Date.parse((await as(token, "sessions")).body.sessions[0].expiresAt) - Date.now();
    const hour = 3_600_000;
    expect(await left(await createAgedSession("2 hours", "2 minutes", "1 hour"))).to.be.within(11.9 * hour, 12 * hour);
    expect(await left(await createAgedSession("29 days 23 hours", "2 minutes", "10 minutes"))).to.be.within(
      0.9 * hour,
      hour,
    );
    expect((await as(await createAgedSession("13 hours", "12 hours", "-1 second"), "session")).http).to.equal(401);
  });

  it("a reset link sets a new passphrase once and ends all sessions; a request never says whether the account exists", async () => {
    const account = await setup();
    const { email } = account;
    const answers = [await post("reset", { email }), await post("reset", { email: "nobody@example.com" })];
    for (const { http, body } of answers) expect([http, body]).to.deep.equal([202, answers[0]!.body]);
    const { token } = await made.accounts.createResetLink(
      account.body.user.id,
      { personId: null },
      async () => undefined,
    );
    expect((await post("reset/confirm", { token, passphrase: "weak" })).body.status).to.equal("PASSPHRASE_TOO_WEAK");
    const next = "a different long passphrase";
    expect((await post("reset/confirm", { token, passphrase: next })).http).to.equal(200);
    expect((await as(cookieOf(account), "session")).http).to.equal(401);
    expect((await post("sign-in", { email, passphrase: PASSPHRASE })).http).to.equal(401);
    expect((await post("sign-in", { email, passphrase: next })).http).to.equal(200);
    expect((await post("reset/confirm", { token, passphrase: next })).http).to.equal(410);
  });

  it("mails a link with the service's own address, whatever Host and Origin are, and only to the account's address", async () => {
    const { email } = await setup();
    const before = mail.acceptedMessages.length;
    const headers = { "content-type": "application/json", host: "evil.example", "x-forwarded-host": "evil.example" };
    const status = await new Promise<number>((resolve, reject) => {
      const sent = request(`${service.url}/v1/auth/reset`, { method: "POST", headers }, (answer) =>
        resolve(answer.resume().statusCode ?? 0),
      );
      sent.on("error", reject).end(JSON.stringify({ email: email.toUpperCase() }));
    });
    expect(status).to.equal(202);
    await mail.waitForMessages(before + 1);
    const { to, from, text } = mail.acceptedMessages.at(-1)!;
    expect([from, to]).to.deep.equal(["service@example.com", [email]]);
    const plain = text.replace(/=\r\n/g, "").replaceAll("=3D", "=");
    const link = /http\S+/.exec(plain)![0];
    expect(link).to.match(
      new RegExp(`^${service.url.replace("127.0.0.1", "localhost")}/studio/reset#token=svc_reset_`),
    );
    expect(plain).to.not.include("evil.example");
    const token = link.split("#token=")[1];
    expect((await post("reset/confirm", { token, passphrase: "a different long passphrase" })).http).to.equal(200);
  });

  it("sends an account at most three reset links in ten minutes, and lets an address ask ten times", async () => {
    const { email, body } = await setup();
    const fromSameAddress = from("192.0.2.200");
    for (let at = 0; at < 10; at += 1) expect((await post("reset", { email }, fromSameAddress)).http).to.equal(202);
    expect((await post("reset", { email }, fromSameAddress)).http).to.equal(429);
    await mail.waitForMessages(1);
    const sql = "SELECT count(*) AS count FROM one_time_link WHERE person_id = $1 AND kind = 'reset'";
    await until(async () => (await rows<{ count: number }>(service.db, sql, [body.user.id]))[0]!.count > 0);
    const [row] = await rows<{ count: number }>(service.db, sql, [body.user.id]);
    expect(row!.count).to.be.at.most(3);
  });

  it("records sign-ins, failures, new passphrases and resets with their address", async () => {
    const account = await setup();
    const { id } = account.body.user;
    const { email } = account;
    await post("sign-in", { email, passphrase: "wrong" }, from("203.0.113.5"));
    await post("sign-in", { email, passphrase: PASSPHRASE }, from("203.0.113.5"));
    const next = { passphrase: "a different long passphrase", currentPassphrase: PASSPHRASE };
    await as(cookieOf(account), "account", "PUT", next);
    const { token } = await made.accounts.createResetLink(id, { personId: null }, async () => undefined);
    await post("reset/confirm", { token, passphrase: PASSPHRASE });
    const events = await rows<{ type: string; address: string; text: string }>(
      service.db,
      "SELECT type, address, e::text AS text FROM access_event e WHERE subject_id = $1 OR data->>'email' = $2 ORDER BY id",
      [id, email],
    );
    expect(events.map(({ type }) => type)).to.deep.equal([
      "person.setup",
      "person.signInFailed",
      "person.signIn",
      "person.passphrase",
      "person.resetLink",
      "person.reset",
    ]);
    expect(events[1]!.address).to.equal("203.0.113.5");
    for (const { text } of events) expect(text).to.not.include(PASSPHRASE).and.not.include(token);
    const audit = (actor: string, query = "") =>
      service.rest("GET", `/v1/organizations/${service.organizationId}/audit${query}`, { as: actor });
    const types = ({ body }: Answer) => body.entries.map(({ type }: { type: string }) => type);
    expect(types(await audit("admin"))).to.include.members(["person.signInFailed", "person.signIn"]);
    const [first, second] = [await audit("admin", "?limit=2"), await audit("admin", "?limit=1")];
    const cursor = second.body.pagination.nextCursor;
    expect(types(await audit("admin", `?limit=1&cursor=${cursor}`))[0]).to.equal(types(first)[1]);
    const empty = await audit("admin", "?limit=0");
    expect([empty.http, empty.body]).to.deep.equal([200, { entries: [], pagination: { hasMore: true } }]);
    expect((await audit("editor")).http).to.equal(403);
  });

  it("a new passphrase needs the current one and ends all other sessions", async () => {
    const account = await setup();
    const { email } = account;
    const other = cookieOf(await post("sign-in", { email, passphrase: PASSPHRASE }));
    const token = cookieOf(account);
    const next = "a different long passphrase";
    const wrong = await as(token, "account", "PUT", { passphrase: next, currentPassphrase: "wrong" });
    expect((await as(token, "account", "PUT", { passphrase: next })).body.error).to.match(/^currentPassphrase must/);
    expect(wrong.body.status).to.equal("SIGN_IN_FAILED");
    const right = await as(token, "account", "PUT", {
      passphrase: next,
      currentPassphrase: PASSPHRASE,
      firstName: "Grace",
    });
    expect(right.body.user).to.include({ firstName: "Grace", lastName: "Lovelace" });
    expect((await as(other, "session")).http).to.equal(401);
    expect((await as(token, "session")).http).to.equal(200);
  });

  it("a change of the first name keeps a last name that another request changes at the same time", async () => {
    const { user, token } = await createSignedInPerson(service);
    const { sent } = await service.db.transaction(async (manager) => {
      await manager.query("SELECT FROM person WHERE id = $1 FOR NO KEY UPDATE", [user.id]);
      const sent = service.rest("PUT", "/v1/auth/account", { as: token, body: { firstName: "Changed" } });
      await untilLockWait(manager, sent);
      await manager.query("UPDATE person SET last_name = 'Kept' WHERE id = $1", [user.id]);
      return { sent };
    });
    const { http, body } = await sent;
    expect([http, body.user.firstName, body.user.lastName], JSON.stringify(body)).to.deep.equal([
      200,
      "Changed",
      "Kept",
    ]);
    const { user: stored } = (await service.rest("GET", "/v1/auth/session", { as: token })).body;
    expect(stored).to.include({ firstName: "Changed", lastName: "Kept" });
  });

  it("lets no token manage an account", async () => {
    expect((await as(service.tokens.editor, "session")).http).to.equal(200);
    expect((await as(service.tokens.editor, "sessions")).http).to.equal(403);
    expect((await as(service.tokens.editor, "account", "PUT", { firstName: "X" })).http).to.equal(403);
  });

  it("shows no token or passphrase in a response or a row", async () => {
    const tables = ["person", "person_session", "one_time_link", "sign_in_failure", "access_event", "credential"];
    const token = cookieOf(await setup());
    for (const table of tables) {
      const [row] = await rows<{ text: string }>(service.db, `SELECT json_agg(t)::text AS text FROM ${table} t`);
      expect(row!.text ?? "", table)
        .to.not.include(token)
        .and.not.include(PASSPHRASE);
    }
  });
});
