/**
 * Tests hooks that send an e-mail or a text message for a written entry: in the entry's transaction, and only to recipients that the entry
 * names.
 */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { startTestService, type TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

const WELCOME_HOOK = {
  type: "email",
  runOn: ["insert"],
  to: [{ email: "{{Email}}", name: "{{Name}}" }],
  subject: "Welcome {{Name}}",
  html: "<p>Dear {{Name}}, your word is {{Password}}.</p>",
};
const REMINDER_HOOK = {
  type: "sms",
  runOn: ["update"],
  where: { Late: true },
  to: "{{Phone}}",
  body: "{{Name}}, come!",
};
const HASH = { type: "operations", runOn: ["insert", "update"], fields: { Password: ["hash"] } };

interface HookEvent {
  type: string;
  entry: number;
  data: { messageId: number | null; to: string[]; subject?: string; detail: string | null };
}

describe("hooks of data sources that send", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = async (name: string, hooks: object[], more: object = {}): Promise<number> =>
    (await service.rest("POST", base, { body: { name, hooks, ...more } })).body.dataSource.id;
  const insert = (name: string, data: object, as?: string) =>
    service.rest("POST", `${base}/${name}/entries`, { body: { data }, ...(as && { as }) });
  const received = (dataSourceId: number) =>
    rows<HookEvent>(
      service.db,
      `SELECT type, data_source_entry_id AS entry, data FROM log_event
        WHERE data_source_id = $1 AND type LIKE '%.dataSourceHook' ORDER BY id`,
      [dataSourceId],
    );
  const outbox = async (): Promise<{ id: number; subject?: string }[]> =>
    (await service.rest("GET", `/v1/apps/${service.appId}/communicate/messages`)).body.messages;

  it("put an e-mail into the outbox for an inserted entry, filled and escaped, without hashed values", async () => {
    const id = await make("Guests", [HASH, WELCOME_HOOK]);
    const made = await insert("Guests", { Name: "<Ann>", Email: "ann@example.com", Password: "a secret" });
    const [event] = await received(id);
    expect(event).to.include({ type: "email.dataSourceHook", entry: made.body.id });
    expect(event!.data).to.deep.include({ to: ["ann@example.com"], subject: "Welcome <Ann>", recipients: 1 });
    const path = `/v1/apps/${service.appId}/communicate/messages/${event!.data.messageId}`;
    const text = JSON.stringify((await service.rest("GET", path)).body);
    expect(text).to.contain("<p>Dear &lt;Ann&gt;, your word is .</p>");
    expect(text).to.not.match(/secret|argon2/);
  });

  it("fill placeholders of any column: with spaces, letters of every script, dots, and paths", async () => {
    const hook = {
      type: "email",
      runOn: ["insert"],
      to: [{ email: "{{ E-mail address }}", name: "{{First Name}}" }],
      from_name: "{{Команда}}",
      subject: "Hi {{First Name}} {{Größe}}",
      text: "{{a.b}} {{Address.Street name}} {{名前}} {{}} {{{First Name}}}",
    };
    const id = await make("Any names", [hook]);
    const Address = { "Street name": "Main St" };
    const data = {
      "First Name": "Ann",
      "E-mail address": "ann@example.com",
      Größe: 5,
      "a.b": "dotted",
      Address,
      名前: "杏",
    };
    await insert("Any%20names", { ...data, Команда: "Мы" });
    const [event] = await received(id);
    expect(event!.data).to.deep.include({ to: ["ann@example.com"], subject: "Hi Ann 5" });
    const path = `/v1/apps/${service.appId}/communicate/messages/${event!.data.messageId}`;
    const message = JSON.stringify((await service.rest("GET", path)).body);
    expect(message).to.contain("dotted Main St 杏 {{}} {Ann}");
    expect(message).to.contain("Мы");
  });

  it("are rejected on save if a placeholder names an unknown column", async () => {
    const columns = ["Email", "First Name", "Address"];
    const hook = {
      ...WELCOME_HOOK,
      subject: "Hi {{First Nmae}}",
      to: [{ email: "{{Email}}" }],
      html: "{{Address.Street}}",
    };
    const message =
      'hooks[0].subject has a placeholder for a column that the data source does not have (got "First Nmae"); its columns are "Email", "First Name", "Address"';
    const refused = await service.rest("POST", base, { body: { name: "Typo", columns, hooks: [hook] } });
    expect([refused.http, refused.body.status, refused.body.error]).to.deep.equal([400, "REQUEST_INVALID", message]);
    const made = await service.rest("POST", base, { body: { name: "Typo", columns } });
    const path = `${base}/${made.body.dataSource.id}`;
    const put = async (body: object) => (await service.rest("PUT", path, { body })).body;
    expect((await put({ hooks: [hook] })).error).to.equal(message);
    const sms = { type: "sms", runOn: ["insert"], to: "{{Phone}}", body: "x" };
    expect((await put({ hooks: [sms] })).error).to.match(
      /^hooks\[0\]\.to has a placeholder for a column .* \(got "Phone"\)/,
    );
    const recipient = {
      ...hook,
      subject: "Hi",
      to: [{ email: "{{Email}}" }, { email: "a@example.com", name: "{{Nmae}}" }],
    };
    expect((await put({ hooks: [recipient] })).error).to.match(
      /^hooks\[0\]\.to\[1\]\.name has a placeholder for a column/,
    );
    expect((await put({ hooks: [sms], columns: [...columns, "Phone"] })).dataSource.hooks).to.deep.equal([sms]);
    // A stored hook stays valid without its column, so that the data source can be sent back as it was read.
    const { dataSource } = await put({ columns: ["Email"] });
    expect((await put(dataSource)).dataSource.hooks).to.deep.equal([sms]);
    expect((await put({ hooks: [sms, { ...sms, body: "y" }] })).error).to.match(/^hooks\[1\]\.to has a placeholder/);
    const entries = [{ Email: "a@example.com" }];
    const body = { name: "With entries", entries, hooks: [{ ...hook, subject: "{{Nmae}}" }] };
    expect((await service.rest("POST", base, { body })).http).to.equal(400);
  });

  it("do not prevent writes if their stored where is invalid, and log the reason", async () => {
    const id = await make("Stored before", [{ ...WELCOME_HOOK, where: { $filters: [] } }]);
    const where = { $filters: [{ column: "Age", condition: ">", value: null }] };
    await service.db.query("UPDATE data_source SET hooks = $1 WHERE id = $2", [
      JSON.stringify([{ ...WELCOME_HOOK, where }]),
      id,
    ]);
    await service.rest("PUT", `${base}/${id}`, { body: { accessRules: [] } });
    expect((await insert("Stored before", { Email: "a@example.com", Age: 5 })).http).to.equal(201);
    const [event] = await received(id);
    expect(event!.data).to.include({
      messageId: null,
      detail: "hooks[0]: where.$filters[0].value must be a number or a text (got null)",
    });
  });

  it("send a text message for an update that the where finds, and for no other", async () => {
    const id = await make("Late", [REMINDER_HOOK]);
    const { body } = await insert("Late", { Name: "Bea", Phone: "+15550100" });
    await service.rest("PUT", `${base}/Late/entries/${body.id}`, { body: { data: { Late: false } } });
    expect(await received(id)).to.deep.equal([]);
    await service.rest("PUT", `${base}/Late/entries/${body.id}`, { body: { data: { Late: true } } });
    const [event, ...more] = await received(id);
    expect(more).to.deep.equal([]);
    expect(event).to.include({ type: "sms.dataSourceHook", entry: body.id });
    expect(event!.data.to).to.deep.equal(["+15550100"]);
  });

  it("send for each entry of a commit with the operations of runHooks, and nothing for an import", async () => {
    const id = await make("Many", [WELCOME_HOOK]);
    const entries = ["a", "b"].map((name) => ({ data: { Email: `${name}@example.com` } }));
    await service.rest("POST", `${base}/Many/commit`, { body: { entries } });
    expect((await received(id)).map(({ data }) => data.to[0])).to.deep.equal(["a@example.com", "b@example.com"]);
    await service.rest("POST", `${base}/Many/commit`, { body: { entries, runHooks: ["update"] } });
    await service.rest("POST", `${base}/Many/import?append=true`, { body: [{ Email: "c@example.com" }] });
    expect(await received(id)).to.have.length(2);
    const refused = await service.rest("POST", `${base}/Many/commit`, { body: { entries, runHooks: ["send"] } });
    expect([refused.http, refused.body.error]).to.deep.equal([
      400,
      'runHooks[0] must be one of insert, update (got "send")',
    ]);
    const hooks = [{ ...HASH, fields: { Password: ["hash", "bcrypt"] } }];
    expect((await service.rest("PUT", `${base}/Many`, { body: { hooks } })).body.error).to.equal(
      'hooks[0].fields.Password[1] must be one of trim, lower, upper, hash (got "bcrypt")',
    );
  });

  it("send nothing if the write is rejected, and lose no write if a message cannot be created", async () => {
    const before = (await outbox()).length;
    const id = await make("Kept", [WELCOME_HOOK], { indexes: [{ columns: ["Name"], unique: true }] });
    expect((await insert("Kept", { Name: "one\r\nBcc: all@example.com", Email: "a@example.com" })).http).to.equal(201);
    const [fault] = await received(id);
    expect(fault!.data.messageId).to.equal(null);
    expect(fault!.data.detail).to.match(/one line/);
    expect((await insert("Kept", { Name: "two" })).http).to.equal(201);
    expect((await insert("Kept", { Name: "two", Email: "b@example.com" })).http).to.equal(409);
    expect([(await outbox()).length, (await received(id)).length]).to.deep.equal([before, 1]);
  });

  it("log the column of an invalid address without its value, and nothing for an empty address", async () => {
    const id = await make("Addresses", [
      HASH,
      { ...WELCOME_HOOK, to: [{ email: "{{Email}}" }, { email: "{{ Partner.e-mail }}", type: "cc" }] },
      { ...REMINDER_HOOK, runOn: ["insert"] },
    ]);
    const logged = async (data: object) => {
      const { http, body } = await insert("Addresses", { Late: true, ...data });
      expect(http).to.equal(201);
      const events = (await received(id)).filter(({ entry }) => entry === body.id);
      return events.map(({ type, data: event }) => [type, event.messageId !== null, event.to, event.detail]);
    };
    const fault = (field: string, kind: string, column: string) =>
      `${field} must be ${kind} after its placeholders are replaced (columns: "${column}")`;
    const emailFault = fault("hooks[1]: to[0].email", "an e-mail address such as ann@example.com", "Email");
    const partnerFault = fault("hooks[1]: to[1].email", "an e-mail address such as ann@example.com", "Partner.e-mail");
    const phoneFault = fault("hooks[2]: to", "a phone number such as +15550100", "Phone");

    expect(await logged({ Email: " ", Partner: { "e-mail": "" }, Phone: "" })).to.deep.equal([]);
    expect(await logged({ Phone: null })).to.deep.equal([]);
    expect(await logged({ Email: "Ann's office" })).to.deep.equal([["email.dataSourceHook", false, [], emailFault]]);
    expect(await logged({ Phone: "Ann's phone" })).to.deep.equal([["sms.dataSourceHook", false, [], phoneFault]]);
    expect(await logged({ Email: "a@example.com", Partner: { "e-mail": "Bea's" } })).to.deep.equal([
      ["email.dataSourceHook", true, ["a@example.com"], null],
      ["email.dataSourceHook", false, [], partnerFault],
    ]);
    expect(await logged({ Email: "a@b", Partner: { "e-mail": "c@d" } })).to.deep.equal([
      ["email.dataSourceHook", false, [], `${emailFault}; 1 other address of this hook is invalid too`],
    ]);
  });

  it("limit what a page makes the app send", async () => {
    const accessRules = [{ type: ["insert"], allow: "all" }];
    const id = await make("Open", [WELCOME_HOOK], { accessRules });
    const entries = Array.from({ length: 6 }, (_, n) => ({ data: { Email: `v${n}@example.com` } }));
    const refused = await service.rest("POST", `${base}/Open/commit`, { as: "live", body: { entries } });
    expect([refused.http, refused.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
    expect(await received(id)).to.deep.equal([]);
    // Messages to an invalid address do not count towards the limit.
    const invalid = { entries: entries.map(() => ({ data: { Email: "none" } })) };
    expect((await service.rest("POST", `${base}/Open/commit`, { as: "live", body: invalid })).http).to.equal(200);
    const limited = await startTestService({ ROLES: "api", RATE_LIMIT_COMMUNICATE: "3" });
    try {
      const path = `/v1/apps/${limited.appId}/data-sources`;
      await limited.rest("POST", path, { body: { name: "Open", hooks: [WELCOME_HOOK], accessRules } });
      const answers = [];
      for (let n = 0; n < 4; n += 1) {
        const call = { as: "live" as const, body: { data: { Email: `v${n}@example.com` } } };
        answers.push((await limited.rest("POST", `${path}/Open/entries`, call)).http);
      }
      // Visitors may send 3 messages, but only two thirds of the limit (2 messages) count for people and API tokens. So an editor may
      // send one more.
      expect(answers).to.deep.equal([201, 201, 201, 429]);
      expect((await limited.rest("POST", `${path}/Open/entries`, { body: { data: {} } })).http).to.equal(201);
      expect((await limited.rest("POST", `${path}/Open/entries`, { body: { data: {} } })).http).to.equal(429);
    } finally {
      await limited.stop();
    }
  });

  it("are accepted as they are stored, also with an invalid address", async () => {
    const id = await make("Stored", [WELCOME_HOOK]);
    const stored = [{ ...WELCOME_HOOK, to: [...WELCOME_HOOK.to, { email: "Bea's office" }] }];
    await service.db.query("UPDATE data_source SET hooks = $2 WHERE id = $1", [id, JSON.stringify(stored)]);
    const manifestPath = `/v1/apps/${service.appId}/manifest`;
    const manifest = (await service.rest("GET", manifestPath, { as: "admin" })).body;
    const put = (hooks: object[]) => service.rest("PUT", `${base}/${id}`, { body: { hooks, accessRules: [] } });
    // This change removes the data source from the service's cache, so that the service reads the changed hook from the database.
    expect((await service.rest("PUT", `${base}/${id}`, { body: { isUsers: false } })).http).to.equal(200);
    expect((await put(stored)).http).to.equal(200);
    expect(await service.rest("PUT", manifestPath, { as: "admin", body: manifest })).to.include({ http: 200 });
    const { http, body } = await put([{ ...stored[0], subject: "Hello" }]);
    expect([http, body.error]).to.deep.equal([
      400,
      'hooks[0].to[1].email must be an e-mail address such as ann@example.com (got "Bea\'s office")',
    ]);
  });

  for (const [title, hook, named] of [
    [
      "an invalid address",
      { ...WELCOME_HOOK, to: [{ email: "ann" }] },
      /^hooks\[0\]\.to\[0\]\.email must be an e-mail address such as ann@example\.com \(got "ann"\)$/,
    ],
    [
      "an invalid address beside a column",
      { ...WELCOME_HOOK, to: [{ email: "{{Email}}" }, { email: "Bea's office" }] },
      /^hooks\[0\]\.to\[1\]\.email must be an e-mail address/,
    ],
    ["no text", { ...WELCOME_HOOK, html: undefined }, /hooks\[0\]: a message needs the field "html" or "text"/],
    ["an unknown field", { ...WELCOME_HOOK, cc: [] }, /hooks\[0\]\.cc is not a known field/],
    ["verbs that never send", { ...WELCOME_HOOK, runOn: ["delete"] }, /hooks\[0\].runOn/],
    ["an invalid where", { ...REMINDER_HOOK, where: { $or: 1 } }, /hooks\[0\]: where/],
    ["an invalid phone number", { ...REMINDER_HOOK, to: "Bea" }, /^hooks\[0\]\.to must be a phone number/],
  ] as const) {
    it(`are rejected with ${title}, and the error names the field`, async () => {
      const { http, body } = await service.rest("POST", base, { body: { name: `No ${title}`, hooks: [hook] } });
      expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(body.error).to.match(named);
    });
  }
});

describe("the audit log of an app", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  it("has which entries an editor changed, in which columns, and never their values", async () => {
    const accessRules = [{ type: ["insert"], allow: "all" }];
    const { id } = (await service.rest("POST", base, { body: { name: "Trail", accessRules } })).body.dataSource;
    const made = (await service.rest("POST", `${base}/Trail/entries`, { body: { data: { Word: "hush" } } })).body;
    await service.rest("PUT", `${base}/Trail/entries/${made.id}`, { body: { data: { Other: "hush" } } });
    await service.rest("POST", `${base}/Trail/import?append=true`, { body: [{ Word: "hush" }, { Word: "hush" }] });
    await service.rest("DELETE", `${base}/Trail/entries/${made.id}`);
    // A visitor's writes appear only in the log events, not in the audit log.
    await service.rest("POST", `${base}/Trail/entries`, { as: "live", body: { data: { Word: "hush" } } });
    const { entries } = (await service.rest("GET", `/v1/apps/${service.appId}/audit?limit=10`)).body;
    const trail = entries.filter(({ type }: { type: string }) => type === "dataSource.entries").reverse();
    expect(JSON.stringify(trail)).to.not.contain("hush");
    expect(trail.map(({ data }: { data: object }) => data)).to.deep.equal([
      { id, inserted: 1, updated: 0, deleted: 0, entries: [{ event: "create", id: made.id }], columns: ["Word"] },
      { id, inserted: 0, updated: 1, deleted: 0, entries: [{ event: "update", id: made.id }], columns: ["Other"] },
      trail[2].data,
      {
        id,
        inserted: 0,
        updated: 0,
        deleted: 1,
        entries: [{ event: "delete", id: made.id }],
        columns: ["Word", "Other"],
      },
    ]);
    expect(trail[2].data).to.deep.include({ id, operation: "append", inserted: 2, columns: ["Word"] });
    expect(new Set(trail.map(({ credentialId }: { credentialId: number }) => credentialId)).size).to.equal(1);
  });
});
