import { expect } from "chai";
import { longTest } from "../harness/samples.js";
import { rejectionCode, useClientPage } from "./client-page.js";

describe("the packages without a back end", () => {
  const client = useClientPage({ isOpened: false });
  const load = (name: string) => client.open(`/client/packages/svc-${name}.js`, "/client/svc.js");

  it("define their namespace with svc.js before or after them", async () => {
    await client.open("/client/packages/svc-csv.js", "/client/svc.js", "/client/packages/svc-encryption.js");
    const names = await client.run(`["CSV", "Encryption", "App"].map((name) => typeof Svc[name])`);
    expect(names).to.deep.equal(["object", "object", "object"]);
  });

  it("svc-csv converts text to rows and rows to text", async () => {
    await load("csv");
    const rows = [{ name: "Ann, B.", note: 'says "hi"\nthere' }];
    expect(await client.run(`Svc.CSV.parse(Svc.CSV.stringify(${JSON.stringify(rows)}))`)).to.deep.equal(rows);
    expect(await client.run(`Svc.CSV.parse("a;b\\n1;2", { header: false })`)).to.deep.equal([
      ["a", "b"],
      ["1", "2"],
    ]);
  });

  longTest(
    "svc-csv detects delimiters, ignores a byte order mark, skips empty lines and keeps a row of blank cells",
    async () => {
      await load("csv");
      const parse = (text: string) => client.run(`Svc.CSV.parse(${JSON.stringify(text)})`);
      const rows = [{ name: "Ann", seats: "2" }];
      for (const delimiter of [",", ";", "\t", "|"]) {
        const text = `\uFEFFname${delimiter}seats\r\n\r\nAnn${delimiter}2\r\n\r\n`;
        expect(await parse(text), JSON.stringify(delimiter)).to.deep.equal(rows);
      }
      expect(await parse("name,seats\n,\nAnn,2\n")).to.deep.equal([{ name: "", seats: "" }, ...rows]);
    },
  );

  it("svc-csv prevents a cell from becoming a formula of a spreadsheet", async () => {
    await load("csv");
    expect(await client.run(`Svc.CSV.stringify([{ a: "=1+1" }])`)).to.equal(`a\r\n"'=1+1"`);
  });

  longTest("svc-csv names the row of a text that is no CSV", async () => {
    await load("csv");
    const error = await client.run(rejectionCode(`(async () => Svc.CSV.parse('a,b\\n1,2\\n1,2,3'))()`));
    expect(error)
      .to.have.property("message")
      .that.matches(/^CSV row 2: /);
  });

  it("svc-encryption decrypts only unchanged texts, and only with the same key", async () => {
    await load("encryption");
    expect(
      await client.run(`(async () => {
        const { generateKey, encrypt, decrypt } = Svc.Encryption;
        const key = await generateKey();
        const sealed = await encrypt("grüße", key);
        const refused = (promise) => promise.then(() => false, () => true);
        const changed = (sealed[20] === "A" ? "B" : "A");
        return [
          await decrypt(sealed, key),
          sealed === (await encrypt("grüße", key)),
          await refused(decrypt(sealed, await generateKey())),
          await refused(decrypt(sealed.slice(0, 20) + changed + sealed.slice(21), key)),
        ];
      })()`),
    ).to.deep.equal(["grüße", false, true, true]);
  });

  it("svc-encryption hashes and signs as the standards define", async () => {
    await load("encryption");
    const [hash, mac, good, bad] = (await client.run(`Promise.all([
      Svc.Encryption.hash("abc"),
      Svc.Encryption.hmac("what do ya want for nothing?", "Jefe"),
      Svc.Encryption.hmac("m", "k", "SHA-512").then((mac) => Svc.Encryption.verifyHmac("m", "k", mac, "SHA-512")),
      Svc.Encryption.verifyHmac("m", "k", "00"),
    ])`)) as unknown[];
    expect(hash).to.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect(mac).to.equal("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    expect([good, bad]).to.deep.equal([true, false]);
  });

  it("svc-barcode draws a code as SVG and as PNG", async () => {
    await load("barcode");
    expect(await client.run(`Svc.Barcode.qr("hello")`)).to.match(/^<svg .*<path .*<\/svg>\s*$/s);
    const png = await client.run(`Svc.Barcode.png({ bcid: "ean13", text: "2112345678900" })`);
    expect(png).to.match(/^data:image\/png;base64,iVBOR/);
  });

  it("svc-session returns the injected session once, in copies, and leaves nothing behind", async () => {
    const session = { appId: 1, user: { id: 7, firstName: "A", lastName: "B", email: "a@b.c" }, environment: "master" };
    await client.page.evaluateOnNewDocument(`globalThis.__svcSession = ${JSON.stringify(session)}`);
    await load("session");
    const seen = await client.run(`(async () => {
      (await Svc.Session.get()).user.id = 8;
      Object.prototype.toJSON = function () { if (this.user) this.user.id = 9; return this };
      JSON.parse = () => ({ user: { id: 10 } });
      await Svc.Session.get();
      delete Object.prototype.toJSON;
      return [await Svc.Session.get(), await Svc.Session.user(), "__svcSession" in globalThis];
    })()`);
    expect(seen).to.deep.equal([session, session.user, false]);
  });

  longTest("svc-session returns null without a user", async () => {
    await load("session");
    expect(await client.run(`Promise.all([Svc.Session.get(), Svc.Session.user()])`)).to.deep.equal([null, null]);
  });

  longTest("svc-session requests the session in a page that has only a token", async () => {
    const person = { id: 7, firstName: "A", lastName: "B", email: "a@b.c" };
    const dataSource = { id: 3, dataSourceId: 2, data: { Name: null } };
    const answered = {
      ...{ appId: 1, user: person, environment: "master", awaits: null },
      entries: { dataSource: { ...dataSource, verified: { email: "2026-11-21T12:00:00.000Z", sms: null } } },
    };
    const session = {
      ...{ appId: 1, user: person, environment: "master" },
      entries: { dataSource: { ...dataSource, verified: { email: "2026-11-21T12:00:00.000Z" } } },
    };
    client.service.answers.set("POST /graphql", { body: { data: { runtimeEnv: { session: answered } } } });
    client.service.page.env = {};
    await load("session");
    await client.run(`Svc.configure({ appId: 1, token: "in-memory" })`);
    expect(await client.run("Svc.Session.get()")).to.deep.equal(session);
    expect(client.service.received[0]?.headers["auth-token"]).to.equal("in-memory");
    client.service.answers.set("POST /graphql", { status: 401, body: { status: "UNAUTHORIZED", error: "no" } });
    await client.run(`Svc.configure({ token: "another" })`);
    expect(await client.run("Svc.Session.get()")).to.equal(null);
  });

  it("svc-session requests the session again after the service could not return it", async () => {
    const session = { appId: 1, user: null, environment: "production" };
    const errors = [{ message: "the service is busy", extensions: { status: "OVERLOADED" } }];
    client.service.answers.set("POST /graphql", { body: { data: { runtimeEnv: null }, errors } });
    client.service.page.env = {};
    await load("session");
    await client.run(`Svc.configure({ appId: 1, token: "in-memory" })`);
    expect(await client.run("Svc.Session.get()")).to.equal(null);
    client.service.answers.set("POST /graphql", { body: { data: { runtimeEnv: { session } } } });
    expect(await client.run("Svc.Session.get()")).to.deep.equal(session);
  });

  longTest("svc-session returns the session of the page's ENV, until another token is configured", async () => {
    const session = { appId: 1, user: null, environment: "production" };
    client.service.page.env = { appId: 1, session };
    await load("session");
    expect(await client.run("Svc.Session.get()")).to.deep.equal(session);
    await client.run(`Svc.configure({ token: "another" })`);
    expect(await client.run("Svc.Session.get()")).to.equal(null);
  });

  longTest("svc-audio fails soon, with an explanation, if the browser blocks sound", async () => {
    await load("audio");
    // Puppeteer's `evaluate` counts as a user interaction, so the test uses the DevTools protocol.
    const session = await client.page.createCDPSession();
    const expression = rejectionCode("Svc.Audio.tone()");
    const { result } = await session.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    expect(result.value).to.have.property("message").that.contains("until the user interacts with the page");
  });

  it("svc-audio decodes sound", async () => {
    await load("audio");
    const received = await client.run(`(async () => {
      const rate = 8000, samples = 800, wav = new DataView(new ArrayBuffer(44 + samples));
      [..."RIFF"].forEach((c, i) => wav.setUint8(i, c.charCodeAt(0)));
      wav.setUint32(4, 36 + samples, true);
      [..."WAVEfmt "].forEach((c, i) => wav.setUint8(8 + i, c.charCodeAt(0)));
      wav.setUint32(16, 16, true); wav.setUint16(20, 1, true); wav.setUint16(22, 1, true);
      wav.setUint32(24, rate, true); wav.setUint32(28, rate, true); wav.setUint16(32, 1, true); wav.setUint16(34, 8, true);
      [..."data"].forEach((c, i) => wav.setUint8(36 + i, c.charCodeAt(0)));
      wav.setUint32(40, samples, true);
      const { duration, sampleRate, channels } = await Svc.Audio.decode(wav.buffer);
      return [Math.round(duration * 100) / 100, sampleRate, channels.length];
    })()`);
    expect(received).to.deep.equal([0.1, 48_000, 1]);
  });
});
