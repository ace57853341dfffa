/** Tests access of authorized programs: rights, grants, devices, and refusals. */
import { expect } from "chai";
import { CREDENTIAL_CHANNEL } from "../../src/operations/access/credentials.js";
import { hashToken } from "../../src/operations/access/tokens.js";
import { overlap } from "../harness/lock-waits.js";
import { createSignedInPerson } from "../harness/people.js";
import { startTestService, type TestService } from "../harness/service.js";
import { until } from "../harness/until.js";
import { createMemberCalls, type Person } from "../members/support.js";
import { DEVICE_GRANT_TYPE, oauthCalls, REDIRECT_URI } from "./oauth-support.js";

describe("access of programs that people allowed", () => {
  let service: TestService;
  let administrator: Person;

  before(async () => {
    service = await startTestService({ ROLES: "api" });
    const { user, email, token } = await createSignedInPerson(service);
    administrator = { id: user.id, email, token };
  });
  after(() => service?.stop());

  const { form, newClient, newRequest, decide, authorizeClient, may, refresh } = oauthCalls(() => service);
  const { as, organization, join, members, appMembers } = createMemberCalls(() => ({ service, administrator }));

  it("has no more rights than its scopes and its person, and ends with the person's role", async () => {
    const { tokens } = await authorizeClient(["read"]);
    const create = (as: string) =>
      service.rest("POST", `/v3/apps/${service.appId}/actions`, {
        as,
        body: { name: "x", code: "async function execute() {}" },
      });
    expect([await may(tokens.access_token), (await create(tokens.access_token)).http]).to.deep.equal([200, 403]);
    const { body: made } = await service.rest("POST", "/v1/admin/apps", { as: "admin", body: { name: "theirs" } });
    expect((await service.rest("GET", `/v3/apps/${made.app.id}/actions`, { as: tokens.access_token })).http).to.equal(
      403,
    );

    const { body } = await service.rest("POST", "/v1/admin/users", {
      as: "admin",
      body: { firstName: "Re", lastName: "Ader", email: "reader@example.com" },
    });
    const path = `/v1/apps/${service.appId}/members/${body.user.id}`;
    const setRole = await service.rest("PUT", path, { as: "admin", body: { role: "editor" } });
    expect(setRole.http, JSON.stringify(setRole.body)).to.equal(200);
    const theirs = await authorizeClient(["read", "manage"], body.token);
    expect((await create(theirs.tokens.access_token)).http).to.equal(201);
    await service.rest("PUT", path, { as: "admin", body: { role: "reader" } });
    expect([await may(theirs.tokens.access_token), (await create(theirs.tokens.access_token)).http]).to.deep.equal([
      200, 403,
    ]);
    const clientId = await newClient();
    expect((await decide(newRequest(clientId).query, {}, body.token)).http).to.equal(403);
    await service.rest("DELETE", path, { as: "admin" });
    expect(await may(theirs.tokens.access_token)).to.equal(401);
  });

  /**
   * Sends three requests as this program: lists the tools, lists the apps, and refreshes the tokens. Returns the HTTP statuses of the two
   * lists, and the error of the refresh.
   */
  async function sendRequestsAs({ clientId, tokens }: Awaited<ReturnType<typeof authorizeClient>>) {
    const response = await fetch(`${service.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${tokens.access_token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
    });
    await response.body?.cancel();
    const apps = await service.rest("GET", "/v1/apps", { as: tokens.access_token });
    return [response.status, apps.http, (await refresh(clientId, tokens.refresh_token)).body.error];
  }

  it("ends with each way in which its person loses the role, and does not come back with the role", async () => {
    const { token } = administrator;
    const { id, appId } = await organization();
    const body = { name: "Second", organizationId: id };
    const secondApp = (await as(token, "POST", "/v1/admin/apps", body)).body.app.id;
    const atPath = (path: string, body: object = { role: "editor" }) => ({
      give: (userId: number) => as(token, "PUT", `${path}/${userId}`, body),
      end: (userId: number) => as(token, "DELETE", `${path}/${userId}`),
    });
    const editors = `/v1/apps/${appId}/editors`;
    const asEditor = {
      give: (userId: number) => as(token, "POST", editors, { userId }),
      end: (userId: number) => as(token, "DELETE", editors, { userId }),
    };
    for (const [name, { give, end }] of [
      ["member of the app", atPath(appMembers(appId))],
      ["member of the organization", atPath(members(id))],
      ["editor", asEditor],
      ["administrator", atPath("/v1/admin/administrators", {})],
    ] as const) {
      const person = await join(id, "reader", secondApp);
      expect((await give(person.id)).http, name).to.equal(200);
      const program = await authorizeClient(["read"], person.token, appId);
      const other = await authorizeClient(["read"], person.token, appId);
      expect(await sendRequestsAs(other), name).to.deep.equal([200, 200, undefined]);
      expect((await end(person.id)).http, name).to.equal(200);
      expect((await give(person.id)).http, name).to.equal(200);
      expect(await sendRequestsAs(program), name).to.deep.equal([401, 401, "invalid_grant"]);
    }
  });

  it("ends at once with the role: the program can send no request", async () => {
    const { token } = administrator;
    const { id, appId } = await organization();
    const person = await join(id, "reader", appId);
    const program = await authorizeClient(["read"], person.token, appId);
    expect((await as(token, "DELETE", `${appMembers(appId)}/${person.id}`)).http).to.equal(200);
    expect(await sendRequestsAs(program)).to.deep.equal([401, 401, "invalid_grant"]);

    // The SQL statement removes the role without ending the grant, as in data of an older release. This grant gives no access either.
    const second = await join(id, "reader", appId);
    const late = await authorizeClient(["read"], second.token, appId);
    await service.db.query("DELETE FROM app_member WHERE person_id = $1", [second.id]);
    await service.db.query(`SELECT pg_notify('${CREDENTIAL_CHANNEL}', '')`);
    await until(async () => (await sendRequestsAs(late))[0] !== 200);
    expect((await sendRequestsAs(late)).slice(0, 2)).to.deep.equal([403, 403]);
  });

  it("does not end if its person loses the role but is an administrator", async () => {
    const { token } = administrator;
    const { id, appId } = await organization();
    const person = await join(id, "reader", appId);
    expect((await as(token, "PUT", `/v1/admin/administrators/${person.id}`)).http).to.equal(200);
    const program = await authorizeClient(["read"], person.token, appId);
    expect((await as(token, "DELETE", `${appMembers(appId)}/${person.id}`)).http).to.equal(200);
    const [, , error] = await sendRequestsAs(program);
    expect(error).to.equal(undefined);
  });

  it("cannot be allowed while the person loses the role", async () => {
    const { token } = administrator;
    const { id, appId } = await organization();
    const body = { name: "Second", organizationId: id };
    const secondApp = (await as(token, "POST", "/v1/admin/apps", body)).body.app.id;
    const person = await join(id, "reader", secondApp);
    const path = `${appMembers(appId)}/${person.id}`;
    expect((await as(token, "PUT", path, { role: "reader" })).http).to.equal(200);
    const { query } = newRequest(await newClient(), { scope: "read" });
    const [removed, decision] = await overlap(
      service.db,
      ["LOCK TABLE access_event IN ACCESS EXCLUSIVE MODE"],
      () => as(token, "DELETE", path),
      () => decide(query, { appId, scopes: ["read"] }, person.token),
    );
    expect([removed.http, decision.http], JSON.stringify(decision.body)).to.deep.equal([200, 403]);
  });

  it("that a token allowed ends with that token; access that a session allowed stays", async () => {
    const made = async (email: string) => {
      const { body } = await service.rest("POST", "/v1/admin/users", {
        as: "admin",
        body: { firstName: "To", lastName: "Ken", email },
      });
      const path = `/v1/apps/${service.appId}/members/${body.user.id}`;
      await service.rest("PUT", path, { as: "admin", body: { role: "editor" } });
      return body.token as string;
    };
    const set = (token: string, change: string) =>
      service.db.query(`UPDATE credential SET ${change} WHERE hash = $1`, [hashToken(token)]);
    const ended = async (token: string) => {
      await service.db.query(`SELECT pg_notify('${CREDENTIAL_CHANNEL}', '')`);
      await until(async () => (await may(token)) === 401);
    };

    const revoked = await made("revoked@example.com");
    const first = await authorizeClient(["read"], revoked);
    expect(await may(first.tokens.access_token)).to.equal(200);
    await set(revoked, "revoked_at = now()");
    await ended(first.tokens.access_token);
    expect((await refresh(first.clientId, first.tokens.refresh_token)).body.error).to.equal("invalid_grant");

    const expiring = await made("expiring@example.com");
    await set(expiring, "expires_at = now() + interval '10 minutes'");
    const second = await authorizeClient(["read"], expiring);
    expect(second.tokens.expires_in).to.be.within(1, 600);
    await set(expiring, "expires_at = now() - interval '1 second'");
    await ended(second.tokens.access_token);
    expect((await refresh(second.clientId, second.tokens.refresh_token)).body.error).to.equal("invalid_grant");

    const person = await createSignedInPerson(service);
    const third = await authorizeClient(["read"], person.token);
    await set(person.token, "revoked_at = now()");
    expect((await refresh(third.clientId, third.tokens.refresh_token)).http).to.equal(200);
  });

  it("can be listed and ended by its person, and by the program", async () => {
    const { clientId, tokens } = await authorizeClient();
    const { body } = await service.rest("GET", "/oauth/grants");
    expect(body.grants[0]).to.deep.include({
      client: "Test program",
      appId: service.appId,
      scopes: ["read", "run", "manage"],
    });
    expect((await service.rest("DELETE", `/oauth/grants/${body.grants[0].id}`, { as: "admin" })).http).to.equal(404);
    expect((await service.rest("DELETE", `/oauth/grants/${body.grants[0].id}`)).http).to.equal(200);
    expect(await may(tokens.access_token)).to.equal(401);
    expect((await refresh(clientId, tokens.refresh_token)).body.error).to.equal("invalid_grant");

    const second = await authorizeClient();
    expect((await form("/oauth/revoke", { client_id: clientId, token: second.tokens.refresh_token })).http).to.equal(
      200,
    );
    expect(await may(second.tokens.access_token)).to.equal(200);
    expect(
      (await form("/oauth/revoke", { client_id: second.clientId, token: second.tokens.refresh_token })).http,
    ).to.equal(200);
    expect(await may(second.tokens.access_token)).to.equal(401);
    const stored = await service.db.query(
      "SELECT (SELECT json_agg(s) FROM oauth_secret s)::text AS secrets, (SELECT json_agg(c) FROM credential c)::text AS tokens",
    );
    for (const token of [tokens.access_token, tokens.refresh_token])
      expect(JSON.stringify(stored)).not.to.contain(token.slice(10));
  });

  it("can be given to a program without a browser by a code that its person confirms, once", async () => {
    const clientId = await newClient({ redirect_uris: [], grant_types: [DEVICE_GRANT_TYPE, "refresh_token"] });
    const requestDeviceCode = async () =>
      (await form("/oauth/device_authorization", { client_id: clientId, scope: "read" })).body;
    const pollDeviceCode = (deviceCode: string) =>
      form("/oauth/token", { grant_type: DEVICE_GRANT_TYPE, client_id: clientId, device_code: deviceCode });
    /** Changes the time of the program's last poll, so that the test depends neither on waiting nor on the speed of the machine. */
    const setPolledAt = (from: string) =>
      service.db.query(`UPDATE oauth_device SET polled_at = ${from} interval '1 minute'`);
    const started = await requestDeviceCode();
    expect(started.user_code).to.match(/^[B-Z]{4}-[B-Z]{4}$/);
    expect(started.verification_uri_complete).to.equal(`${service.url}/oauth/device?user_code=${started.user_code}`);
    expect((await pollDeviceCode(started.device_code)).body.error).to.equal("authorization_pending");
    await setPolledAt("polled_at +");
    expect((await pollDeviceCode(started.device_code)).body.error).to.equal("slow_down");
    const path = `/oauth/devices/${started.user_code.toLowerCase().replace("-", "")}`;
    expect((await service.rest("GET", path)).body).to.deep.include({ client: "Test program", scopes: ["read"] });
    const allow = { allow: true, appId: service.appId, scopes: ["read"] };
    expect((await service.rest("POST", path, { as: "api", body: allow })).http).to.equal(403);
    expect((await service.rest("POST", path, { body: { ...allow, scopes: ["publish"] } })).http).to.equal(400);
    expect((await service.rest("POST", path, { body: allow })).http).to.equal(200);
    expect((await service.rest("POST", path, { body: allow })).http).to.equal(404);
    await setPolledAt("now() -");
    const answer = await pollDeviceCode(started.device_code);
    expect(await may(answer.body.access_token)).to.equal(200);
    expect((await pollDeviceCode(started.device_code)).body.error).to.equal("invalid_grant");
    expect((await refresh(clientId, answer.body.refresh_token)).http).to.equal(200);

    const denied = await requestDeviceCode();
    await service.rest("POST", `/oauth/devices/${denied.user_code}`, { body: { allow: false } });
    expect((await pollDeviceCode(denied.device_code)).body.error).to.equal("access_denied");
    const late = await requestDeviceCode();
    await service.db.query("UPDATE oauth_device SET expires_at = now() - interval '1 second'");
    expect((await pollDeviceCode(late.device_code)).body.error).to.equal("expired_token");
    expect((await service.rest("GET", `/oauth/devices/${late.user_code}`)).http).to.equal(404);
  });

  it("can be given for each app of a person who has more apps than the list of apps shows", async () => {
    const [last] = await service.db
      .query(
        `INSERT INTO app (organization_id, name) SELECT 1, 'app ' || n FROM generate_series(1, 501) AS n RETURNING id`,
      )
      .then((made: { id: number }[]) => made.slice(-1));
    const appId = last!.id;
    const clientId = await newClient({ grant_types: ["authorization_code", DEVICE_GRANT_TYPE] });
    const { body: device } = await form("/oauth/device_authorization", { client_id: clientId, app: String(appId) });
    const { token } = administrator;
    const { body } = await service.rest("GET", `/oauth/devices/${device.user_code}`, { as: token });
    expect([body.apps.length, body.apps[0].id]).to.deep.equal([500, appId]);
    const consent = await service.rest("GET", `/oauth/consent?${newRequest(clientId).query}&app=${appId}`, {
      as: token,
    });
    expect([consent.body.apps.length, consent.body.apps[0].id]).to.deep.equal([500, appId]);
    const decision = { appId, scopes: ["read"] };
    expect((await decide(newRequest(clientId).query, decision, token)).http).to.equal(200);
    await service.db.query("DELETE FROM oauth_grant WHERE app_id = $1", [appId]);
    await service.db.query("DELETE FROM app WHERE name LIKE 'app %'");
  });

  it("uses up no code or token if the new tokens cannot be stored", async () => {
    const allow = { allow: true, appId: service.appId, scopes: ["read"] };
    const clientId = await newClient();
    const { verifier, query } = newRequest(clientId);
    const { body } = await decide(query, { scopes: ["read"] });
    const code = new URL(body.redirectTo).searchParams.get("code")!;
    const exchange = { code, redirect_uri: REDIRECT_URI, code_verifier: verifier };
    const device = await newClient({ redirect_uris: [], grant_types: [DEVICE_GRANT_TYPE] });
    const started = (await form("/oauth/device_authorization", { client_id: device, scope: "read" })).body;
    await service.rest("POST", `/oauth/devices/${started.user_code}`, { body: allow });
    const refreshed = await authorizeClient();
    const requests: Record<string, string>[] = [
      { grant_type: "authorization_code", client_id: clientId, ...exchange },
      { grant_type: "refresh_token", client_id: refreshed.clientId, refresh_token: refreshed.tokens.refresh_token },
      { grant_type: DEVICE_GRANT_TYPE, client_id: device, device_code: started.device_code },
    ];
    const answers = async () => {
      await service.db.query("UPDATE oauth_device SET polled_at = now() - interval '1 minute'");
      return Promise.all(requests.map((fields) => form("/oauth/token", fields)));
    };
    await service.db.query(`
      CREATE FUNCTION reject_token() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'rejected'; END $$;
      CREATE TRIGGER reject_token BEFORE INSERT ON oauth_secret FOR EACH ROW EXECUTE FUNCTION reject_token()`);
    try {
      expect((await answers()).map(({ http }) => http)).to.deep.equal([500, 500, 500]);
    } finally {
      await service.db.query("DROP FUNCTION reject_token CASCADE");
    }
    for (const { http, body } of await answers()) {
      expect(http, JSON.stringify(body)).to.equal(200);
      expect(await may(body.access_token)).to.equal(200);
    }
    expect((await answers()).map(({ body }) => body.error)).to.deep.equal(Array(3).fill("invalid_grant"));
  });

  it("has server metadata only at the address of its issuer", async () => {
    for (const path of ["/mcp", "/oauth", "/x"]) {
      const { http } = await service.rest("GET", `/.well-known/oauth-authorization-server${path}`, { as: null });
      expect(http, path).to.equal(404);
    }
  });

  it("gives errors in OAuth's form, and never a 5xx", async () => {
    const { http, body } = await service.rest("GET", "/.well-known/oauth-authorization-server", { as: null });
    expect([http, body.issuer, body.code_challenge_methods_supported]).to.deep.equal([200, service.url, ["S256"]]);
    const resource = await service.rest("GET", "/.well-known/oauth-protected-resource/mcp", { as: null });
    expect(resource.body).to.deep.include({ resource: `${service.url}/mcp`, authorization_servers: [service.url] });
    for (const fields of [
      {},
      { grant_type: "password" },
      { grant_type: "x", client_id: "\u0000" },
      { client_id: await newClient(), grant_type: "password" },
    ] as Record<string, string>[]) {
      const answer = await form("/oauth/token", fields);
      expect(answer.http, JSON.stringify(fields)).to.be.within(400, 401);
      expect(answer.body.error).to.be.a("string");
    }
    for (const wrong of [
      [],
      1,
      { redirect_uris: "x" },
      { client_name: "x".repeat(1000) },
      { grant_types: ["password"] },
      { token_endpoint_auth_method: "client_secret_basic" },
    ]) {
      const answer = await service.rest("POST", "/oauth/register", { as: null, body: wrong });
      expect(answer.http, JSON.stringify(wrong).slice(0, 60)).to.equal(400);
      expect(answer.body.error).to.match(/^invalid_/);
    }
  });

  it("gives no token for another service, but one for this service or its /mcp (RFC 8707)", async () => {
    const clientId = await newClient();
    for (const resource of [
      "https://other.example/mcp",
      `${service.url}.evil.example`,
      service.url.replace("http://", "http://x@"),
      `${service.url}/mcp#x`,
      `${service.url}/v1/apps/1`,
      "mcp",
    ]) {
      expect((await decide(newRequest(clientId, { resource }).query)).http, resource).to.equal(400);
      const answer = await form("/oauth/token", { grant_type: "refresh_token", client_id: clientId, resource });
      expect([answer.http, answer.body.error], resource).to.deep.equal([400, "invalid_target"]);
      const started = await form("/oauth/device_authorization", { client_id: clientId, resource });
      expect([started.http, started.body.error], resource).to.deep.equal([400, "invalid_target"]);
    }
    for (const resource of [service.url, `${service.url}/`, `${service.url}/mcp`, `${service.url}/mcp/`])
      expect((await decide(newRequest(clientId, { resource }).query)).http, resource).to.equal(200);
  });

  it("can be seen, given and ended only in the session of a person", async () => {
    const { query } = newRequest(await newClient());
    const routes: [method: string, path: string][] = [
      ["GET", `/oauth/consent?${query}`],
      ["POST", `/oauth/consent?${query}`],
      ["GET", "/oauth/devices/BCDF-GHJK"],
      ["POST", "/oauth/devices/BCDF-GHJK"],
      ["GET", "/oauth/grants"],
      ["DELETE", "/oauth/grants/999999"],
    ];
    const { tokens } = await authorizeClient();
    const callers = [null, "api", "viewer", "live", tokens.access_token, "svc_editor_unknown"];
    const before = (await service.rest("GET", "/oauth/grants")).body.grants.length;
    for (const [method, path] of routes) {
      for (const as of callers) {
        const body = method === "POST" ? { allow: true, appId: service.appId, scopes: ["read"] } : undefined;
        const { http } = await service.rest(method, path, { as, ...(body && { body }) });
        const expected = as === null || as === "svc_editor_unknown" ? 401 : 403;
        expect(http, `${method} ${path} as ${as}`).to.equal(expected);
      }
    }
    expect((await service.rest("GET", "/oauth/grants")).body.grants).to.have.length(before);
  });
});
