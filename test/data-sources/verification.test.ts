/**
 * Tests app users who verify an address by a code. Only the owner of the address gets the code. The code is valid once and for a short
 * time. The response does not show whether the address is known.
 */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { longTest } from "../harness/samples.js";
import { startTestService, type TestService } from "../harness/service.js";

const HOOKS = [
  { type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"], Email: ["trim", "lower"] } },
];

describe("verification by code", () => {
  let service: TestService;
  let app: string;
  let made = 0;

  before(async () => {
    service = await startTestService({ ROLES: "api", TRUST_PROXY: "1" });
    app = `/v1/apps/${service.appId}`;
    await service.rest("POST", `${app}/data-sources`, { body: { name: "Users", hooks: HOOKS, isUsers: true } });
    await use({ dataSource: "Users", email: "Email", sms: "Phone" });
  });
  after(() => service.stop());

  const use = (_verify: unknown) => service.rest("POST", `${app}/settings`, { body: { _verify } });
  const newPage = async (): Promise<string> =>
    (await service.rest("POST", `${app}/tokens`, { body: { kind: "live" } })).body.token;
  const newUser = async () => {
    made += 1;
    const data = { Email: `user${made}@example.org`, Phone: `+155501${100 + made}`, Password: `secret ${made}` };
    const { body } = await service.rest("POST", `${app}/data-sources/Users/entries`, { body: { data } });
    return { id: body.id as number, ...data };
  };
  const from = () => ({ "x-forwarded-for": `198.51.100.${(made % 250) + 1}` });
  const verify = (as: string, body: unknown) =>
    service.rest("POST", `${app}/session/verify`, { as, body, headers: from() });
  const signIn = (as: string, { Email, Password }: { Email: string; Password: string }) =>
    service.rest("POST", `${app}/session`, {
      as,
      body: { passport: "dataSource", dataSourceId: "Users", where: { Email, Password } },
      headers: from(),
    });
  const refusal = ({ http, body }: { http: number; body: { status: string } }) => `${http} ${body.status}`;

  /** Returns the six-digit code in the newest message to the address; null if there is none. */
  async function readCodeFor(address: string): Promise<string | null> {
    const [found] = await rows<{ text: string }>(
      service.db,
      `SELECT coalesce(content->>'text', content->>'body') AS text FROM message
        WHERE recipients @> jsonb_build_array(jsonb_build_object('address', $1::text)) ORDER BY id DESC LIMIT 1`,
      [address],
    );
    return /\d{6}/.exec(found?.text ?? "")?.[0] ?? null;
  }
  const eventsOf = async (type: string) =>
    rows<{ data: Record<string, unknown> }>(service.db, "SELECT data FROM log_event WHERE type = $1 ORDER BY id", [
      type,
    ]);
  const wrongCodeFor = (code: string) => String((Number(code) + 1) % 1_000_000).padStart(6, "0");

  it("by e-mail and by text message signs in the page's user, and the session has the verified addresses", async () => {
    for (const by of ["email", "sms"] as const) {
      const user = await newUser();
      const address = by === "email" ? user.Email : user.Phone;
      const [page, other] = [await newPage(), await newPage()];
      const codeRequest = await verify(page, { [by]: address });
      expect([codeRequest.http, codeRequest.body.status], JSON.stringify(codeRequest.body)).to.deep.equal([
        200,
        "CODE_SENT",
      ]);
      expect(Date.parse(codeRequest.body.expiresAt)).to.be.within(Date.now() + 500_000, Date.now() + 610_000);
      const code = (await readCodeFor(address))!;
      // Only the page that requested a code can use the code.
      expect(refusal(await verify(other, { [by]: address, code }))).to.equal("401 UNAUTHORIZED");
      const { http, body } = await verify(page, { [by]: address, code });
      expect(http, JSON.stringify(body)).to.equal(200);
      const { dataSource } = body.session.entries;
      expect([dataSource.id, Object.keys(dataSource.verified)]).to.deep.equal([user.id, [by]]);
      expect(dataSource.data).to.not.have.property("Password");
      expect(refusal(await verify(page, { [by]: address, code })), "a second time").to.equal("401 UNAUTHORIZED");
      const [event] = (await eventsOf(`${by}.validate`)).slice(-1);
      expect(event!.data).to.include({ recipients: 1 }).and.not.have.property("subject");
      expect(JSON.stringify(event!.data)).to.not.contain(code);
    }
    expect(await eventsOf("email.communicate")).to.deep.equal([]);
  });

  it("changes what an open subscription of the page shows", async () => {
    const accessRules = [
      { type: ["select"], allow: "loggedIn" },
      { type: ["select"], allow: "all", exclude: ["Secret"] },
    ];
    await service.rest("POST", `${app}/data-sources`, { body: { name: "Notes", accessRules } });
    const [page, user] = [await newPage(), await newUser()];
    const client = service.socket(page);
    const news = client.iterate<{ dataSourceChanged: { reset: boolean } }>({
      query: 'subscription ($app: Int!) { dataSourceChanged(appId: $app, dataSourceId: "Notes", by: name) { reset } }',
      variables: { app: service.appId },
    });
    const next = async () => (await news.next()).value;
    expect((await next())?.errors).to.equal(undefined);
    await verify(page, { email: user.Email });
    await verify(page, { email: user.Email, code: await readCodeFor(user.Email) });
    expect((await next())?.data?.dataSourceChanged.reset).to.equal(true);
    await client.dispose();
  });

  it("of an unknown address gives the page the same response, and sends nothing", async () => {
    const user = await newUser();
    const page = await newPage();
    const [known, unknown] = [
      await verify(page, { email: user.Email }),
      await verify(page, { email: "none@example.org" }),
    ];
    const shape = ({ http, body }: typeof known) => [http, body.status, Object.keys(body)];
    expect(shape(unknown)).to.deep.equal(shape(known));
    expect(await readCodeFor("none@example.org")).to.equal(null);
    expect(refusal(await verify(page, { email: "none@example.org", code: "123456" }))).to.equal("401 UNAUTHORIZED");
  });

  it("ends a code after five failures, with its time limit, and with the address", async () => {
    const page = await newPage();
    const first = await newUser();
    await verify(page, { email: first.Email });
    const code = (await readCodeFor(first.Email))!;
    for (let turn = 0; turn < 5; turn += 1) {
      expect(refusal(await verify(page, { email: first.Email, code: wrongCodeFor(code) }))).to.equal(
        "401 UNAUTHORIZED",
      );
    }
    expect(refusal(await verify(page, { email: first.Email, code })), "after five").to.equal("401 UNAUTHORIZED");

    const second = await newUser();
    await verify(page, { email: second.Email });
    await service.db.query("UPDATE verification_code SET expires_at = now()");
    expect(refusal(await verify(page, { email: second.Email, code: (await readCodeFor(second.Email))! }))).to.equal(
      "401 UNAUTHORIZED",
    );

    const third = await newUser();
    await verify(page, { email: third.Email });
    await service.rest("PUT", `${app}/data-sources/Users/entries/${third.id}`, {
      body: { Email: "moved@example.org" },
    });
    expect(refusal(await verify(page, { email: third.Email, code: (await readCodeFor(third.Email))! }))).to.equal(
      "401 UNAUTHORIZED",
    );
  });

  const verifyOnNewPage = async (email: string, address: string, code?: string) => {
    const body = { email, ...(code && { code }) };
    const headers = { "x-forwarded-for": address };
    return refusal(await service.rest("POST", `${app}/session/verify`, { as: await newPage(), body, headers }));
  };

  it("counts wrong codes for one user by address: ten are enough, and lock out no other address", async () => {
    const user = await newUser();
    const wrong: string[] = [];
    for (let turn = 0; turn < 11; turn += 1) wrong.push(await verifyOnNewPage(user.Email, "203.0.113.1", "000000"));
    expect(wrong).to.deep.equal([...Array(10).fill("401 UNAUTHORIZED"), "429 RATE_LIMIT_EXCEEDED"]);
    const page = await newPage();
    expect(refusal(await verify(page, { email: user.Email }))).to.equal("200 CODE_SENT");
    const signedIn = await verify(page, { email: user.Email, code: await readCodeFor(user.Email) });
    expect(signedIn.http, JSON.stringify(signedIn.body)).to.equal(200);
  });

  longTest("leaves each of many addresses one attempt with wrong codes for one user", async () => {
    const user = await newUser();
    // Sends two wrong codes from each address: 120 codes, which are more than the total limit of 100.
    const addresses = Array.from({ length: 60 }, (_, at) => `203.0.114.${at + 1}`);
    const answers: string[] = [];
    for (const address of addresses) {
      answers.push(await verifyOnNewPage(user.Email, address, "000000"));
      answers.push(await verifyOnNewPage(user.Email, address, "000000"));
    }
    expect(answers.slice(0, 100)).to.deep.equal(Array(100).fill("401 UNAUTHORIZED"));
    expect(answers.slice(100, 104)).to.deep.equal([
      ...["401 UNAUTHORIZED", "429 RATE_LIMIT_EXCEEDED", "401 UNAUTHORIZED", "429 RATE_LIMIT_EXCEEDED"],
    ]);
    const page = await newPage();
    await verify(page, { email: user.Email });
    expect((await verify(page, { email: user.Email, code: await readCodeFor(user.Email) })).http).to.equal(200);
  });

  it("sends five codes in ten minutes to one recipient from one address, whether or not a user has it", async () => {
    const user = await newUser();
    for (const [at, email] of [user.Email, "nobody@example.org"].entries()) {
      const answers: string[] = [];
      for (let turn = 0; turn < 6; turn += 1) answers.push(await verifyOnNewPage(email, `192.0.2.${at + 1}`));
      expect(answers, email).to.deep.equal([...Array(5).fill("200 CODE_SENT"), "429 RATE_LIMIT_EXCEEDED"]);
      expect(await verifyOnNewPage(email, "192.0.2.100"), "another address").to.equal("200 CODE_SENT");
    }
    expect(
      await rows(service.db, "SELECT FROM message WHERE recipients::text LIKE $1", [`%${user.Email}%`]),
    ).to.have.length(6);
  });

  longTest("leaves each of many addresses one code to one recipient", async () => {
    const { Email } = await newUser();
    const answers: string[] = [];
    for (let at = 1; at <= 12; at += 1)
      answers.push(await verifyOnNewPage(Email, `192.0.3.${at}`), await verifyOnNewPage(Email, `192.0.3.${at}`));
    expect(answers.slice(0, 20)).to.deep.equal(Array(20).fill("200 CODE_SENT"));
    expect(answers.slice(20)).to.deep.equal([
      ...["200 CODE_SENT", "429 RATE_LIMIT_EXCEEDED", "200 CODE_SENT", "429 RATE_LIMIT_EXCEEDED"],
    ]);
  });

  longTest("answers many concurrent requests: none holds a connection while it waits for another", async () => {
    const pages = await Promise.all(Array.from({ length: 30 }, newPage));
    const answers = await Promise.all(
      pages.map((as, n) => {
        const headers = { "x-forwarded-for": `198.18.${n}.1` };
        return service.rest("POST", `${app}/session/verify`, { as, body: { email: `crowd${n}@example.org` }, headers });
      }),
    );
    expect(new Set(answers.map(refusal))).to.deep.equal(new Set(["200 CODE_SENT"]));
  });

  it("with a second factor signs in the user only after the second code", async () => {
    await use({ dataSource: "Users", email: "Email", sms: "Phone", secondFactor: true });
    await service.rest("PUT", `${app}/data-sources/Users`, {
      body: { accessRules: [{ type: ["select"], allow: "loggedIn" }] },
    });
    const user = await newUser();
    const page = await newPage();
    const read = async () =>
      (await service.rest("POST", `${app}/data-sources/Users/query`, { as: page, body: { where: {} } })).http;
    expect(refusal(await verify(page, { secondFactor: "sms" }))).to.equal("401 UNAUTHORIZED");
    const { body } = await signIn(page, user);
    expect([body.session.awaits, body.session.entries]).to.deep.equal(["secondFactor", undefined]);
    expect(await read()).to.equal(403);
    expect((await verify(page, { secondFactor: "sms" })).body.status).to.equal("CODE_SENT");
    const code = (await readCodeFor(user.Phone))!;
    expect(refusal(await verify(page, { secondFactor: "sms", code: wrongCodeFor(code) }))).to.equal("401 UNAUTHORIZED");
    expect(await read()).to.equal(403);
    const proven = await verify(page, { secondFactor: "sms", code });
    expect(Object.keys(proven.body.session.entries.dataSource.verified)).to.deep.equal(["sms"]);
    expect(await read()).to.equal(200);
    expect((await eventsOf("sms.2fa")).length).to.equal(1);
    // After another sign-in, the page must prove the second factor again.
    expect((await signIn(page, user)).body.session.awaits).to.equal("secondFactor");
    expect(await read()).to.equal(403);
    expect(refusal(await verify(page, { sms: user.Phone }))).to.equal("400 REQUEST_INVALID");
    await use({ dataSource: "Users", email: "Email", sms: "Phone" });
  });

  it("with a second factor rejects a code that was sent to an earlier phone number of the user", async () => {
    await use({ dataSource: "Users", email: "Email", sms: "Phone", secondFactor: true });
    const user = await newUser();
    const page = await newPage();
    await signIn(page, user);
    await verify(page, { secondFactor: "sms" });
    const code = (await readCodeFor(user.Phone))!;
    await service.rest("PUT", `${app}/data-sources/Users/entries/${user.id}`, {
      body: { Phone: "+15550199" },
    });
    expect(refusal(await verify(page, { secondFactor: "sms", code }))).to.equal("401 UNAUTHORIZED");
    await verify(page, { secondFactor: "sms" });
    const proven = await verify(page, { secondFactor: "sms", code: await readCodeFor("+15550199") });
    expect(proven.body.session.entries.dataSource.data.Phone).to.equal("+15550199");
    await use({ dataSource: "Users", email: "Email", sms: "Phone" });
  });

  it("rejects an invalid request by its field, and every request of an app without the setting", async () => {
    const page = await newPage();
    for (const [body, field] of [
      [{}, "email"],
      [{ email: "a@b.c", sms: "+1555" }, "one of"],
      [{ email: "x\r\nBcc: eve@example.com" }, "email"],
      [{ email: 7 }, "email"],
      [{ sms: "not a number" }, "sms"],
      [{ secondFactor: "email" }, "secondFactor"],
      [{ email: "a@b.c", code: "12345" }, "code"],
      [{ email: "a@b.c", code: { $ne: 1 } }, "code"],
    ] as const) {
      const answer = await verify(page, body);
      expect(refusal(answer), JSON.stringify(body)).to.equal("400 REQUEST_INVALID");
      expect(answer.body.error).to.contain(field);
    }
    for (const [setting, field] of [
      [{ email: "Email" }, "dataSource"],
      [{ dataSource: "Users" }, "email"],
      [{ dataSource: "Users", email: "Email", text: "no place" }, "{{code}}"],
      ["Users", "an object"],
    ] as const) {
      await use(setting);
      const { http, body } = await verify(page, { email: "a@b.c" });
      expect([http, body.status], JSON.stringify(setting)).to.deep.equal([400, "SETTINGS_INVALID"]);
      expect(body.error).to.contain(field);
    }
    await use({ dataSource: "Renamed", email: "Email" });
    const unknown = await verify(page, { email: "user@example.org" });
    expect(refusal(unknown)).to.equal("404 DATA_SOURCE_NOT_FOUND");
    expect(unknown.body.error).to.include("_verify.dataSource");
    await service.rest("DELETE", `${app}/settings`, { body: { keys: ["_verify"] } });
    expect(refusal(await verify(page, { email: "a@b.c" }))).to.equal("400 REQUEST_INVALID");
    for (const as of ["editor", "api"] as const)
      expect((await service.rest("POST", `${app}/session/verify`, { as, body: {} })).http).to.equal(403);
  });
});
