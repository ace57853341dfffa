import { syncBuiltinESMExports } from "node:module";
import { expect } from "chai";
import { SecretScan } from "../../src/engine/secret-scan/scan.js";
import { createScanThreadQueue } from "../../src/engine/secret-scan/thread-queue.js";
import type { SecretScanner } from "../../src/engine/secret-scan.js";
import { StreamedCompletionReader } from "../../src/operations/ai/completion-parts.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";

const SECRET = 'k3y/+ü"\\ of many?parts=1&2';
const scan = new SecretScan([{ name: "_key", value: SECRET, mustMatchWhole: false }]);
const bytes = Buffer.from(SECRET);
const encoded = encodeURIComponent(SECRET);

const FORMS: Record<string, string> = {
  plain: SECRET,
  JSON: JSON.stringify({ a: SECRET }),
  "JSON in JSON": JSON.stringify(JSON.stringify({ a: SECRET })),
  URL: encoded,
  "URL, lower case": encoded.replace(/%[0-9A-F]{2}/g, (match) => match.toLowerCase()),
  "URL twice": encodeURIComponent(encoded),
  "URL form": new URLSearchParams({ a: SECRET }).toString(),
  "URL, every byte": bytes.toString("hex").replace(/../g, "%$&"),
  hex: bytes.toString("hex"),
  "hex, upper case": bytes.toString("hex").toUpperCase(),
  reversed: Array.from(SECRET).reverse().join(""),
  base64: bytes.toString("base64"),
  "base64, shifted by one": Buffer.from(`x${SECRET}y`).toString("base64"),
  "base64, shifted by two": Buffer.from(`xx${SECRET}yy`).toString("base64"),
  base64url: bytes.toString("base64url"),
  "base64url, shifted by one": Buffer.from(`x${SECRET}`).toString("base64url"),
  "base64url, shifted by two": Buffer.from(`xx${SECRET}`).toString("base64url"),
};

describe("the secret scan", () => {
  for (const [form, text] of Object.entries(FORMS)) {
    it(`finds and masks a secret in the form ${form}, at any place`, () => {
      const around = `before ${text} after`;
      expect(scan.find([{ text: around }])).to.equal("_key");
      const masked = scan.mask({ text: around });
      expect(masked).to.include("«_key»");
      expect(scan.find([{ text: masked }])).to.equal(null);
    });
  }

  /** Sends the text in parts of `size` characters to a stream that masks secrets. Returns the parts that the stream passes on. */
  async function maskInParts(text: string, size: number, by = scan): Promise<string[]> {
    const passed: string[] = [];
    const stream = { push: (event: unknown) => event as string, characterCount: () => 0, finish: () => null as never };
    const parts = new StreamedCompletionReader(
      stream,
      { maskStartOfStreamedText: async (part) => by.maskStartOfStreamedText(part) },
      async (part) => {
        passed.push(part);
      },
    );
    for (let at = 0; at < text.length; at += size) {
      await parts.push(Buffer.from(`data: ${JSON.stringify(text.slice(at, at + size))}\n\n`));
    }
    await parts.finishCompletion();
    return passed;
  }

  for (const [form, text] of Object.entries(FORMS)) {
    it(`masks a secret in the form ${form} in a text that arrives in parts of any size`, async () => {
      for (const around of [text, `before ${text} after`, `${"much before ".repeat(60)}${text}`]) {
        for (const size of [1, 2, 3, 5, 11, 64, 1_000]) {
          const masked = (await maskInParts(around, size)).join("");
          expect(masked, `${size}`).to.include("«_key»");
          expect(scan.find([{ text: masked }]), `${size}`).to.equal(null);
          expect(masked, `${size}`).to.equal(scan.mask({ text: around }));
        }
      }
    });
  }

  /** Encodes the text as JSON eight times, which is the maximum that the scan decodes. */
  const nested = (text: string) => {
    let json = text;
    for (let times = 0; times < 8; times += 1) json = JSON.stringify(json).slice(1, -1);
    return json;
  };
  const insertBetween = (text: string, added: string) => [...text].join(added);
  const QUOTED_SECRET = 'a"b\\c-0123';
  const quoted = new SecretScan([{ name: "_key", value: QUOTED_SECRET, mustMatchWhole: false }]);
  const CUT: Record<string, [string, typeof scan]> = {
    "with many line breaks after its first character": [`${SECRET[0]}${"\n".repeat(300)}${SECRET.slice(1)}`, scan],
    "with many line breaks after its third character": [
      `${SECRET.slice(0, 3)}${"\r\n".repeat(150)}${SECRET.slice(3)}`,
      scan,
    ],
    "with many escaped line breaks": [`${SECRET.slice(0, 2)}${"\\n".repeat(150)}${SECRET.slice(2)}`, scan],
    "in eight layers of JSON": [nested(QUOTED_SECRET), quoted],
    "as the numbers of its characters": [
      [...SECRET].map((character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""),
      scan,
    ],
    "in URL escapes of URL escapes": [bytes.toString("hex").replace(/../g, "%25$&"), scan],
    "in base64 with line breaks": [insertBetween(bytes.toString("base64"), "\r\n"), scan],
    "in base64 with escaped line breaks": [insertBetween(bytes.toString("base64"), "\\n"), scan],
    "in hex in JSON": [insertBetween(bytes.toString("hex"), "\\r\\n"), scan],
    "reversed, with line breaks": [insertBetween(Array.from(SECRET).reverse().join(""), "\n\n"), scan],
  };
  for (const [form, [text, by]] of Object.entries(CUT)) {
    it(`passes on no part of a secret that arrives ${form}, with any split`, async () => {
      const around = `before ${text} after`;
      const whole = by.mask({ text: around });
      expect(by.find([{ text: around }])).to.equal("_key");
      expect((await maskInParts(around, 1, by)).join("")).to.equal(whole);
      for (let cut = 1; cut < around.length; cut += Math.ceil(around.length / 500)) {
        expect((await maskInParts(around, cut, by)).join(""), `${cut}`).to.equal(whole);
      }
    });
  }

  it("keeps the state of escapes when it passes on a part of a text", async () => {
    // The text contains both secrets, and they overlap. A scan that starts between the two backslashes would read `\n` as a line break.
    const two = new SecretScan([
      { name: "_one", value: '\\nab"cdefgh', mustMatchWhole: false },
      { name: "_two", value: 'nab"cdefghij', mustMatchWhole: false },
    ]);
    const text = 'x \\\\nab\\"cdefghij y';
    for (let size = 1; size <= text.length; size += 1) {
      const masked = (await maskInParts(text, size, two)).join("");
      expect(masked, `${size}`).to.equal(two.mask({ text }));
    }
  });

  it("scans a long text without a place to split in linear time", async () => {
    let scanned = 0;
    const passed: string[] = [];
    const countingScanner: Pick<SecretScanner, "maskStartOfStreamedText"> = {
      maskStartOfStreamedText: async (part) => {
        scanned += part.text.length;
        return scan.maskStartOfStreamedText(part);
      },
    };
    const stream = { push: (event: unknown) => event as string, characterCount: () => 0, finish: () => null as never };
    const parts = new StreamedCompletionReader(stream, countingScanner, async (part) => {
      passed.push(part);
    });
    for (let at = 0; at < 10_000; at += 1) await parts.push(Buffer.from(`data: "abcdefghij"\n\n`));
    await parts.finishCompletion();
    expect(passed.join("")).to.have.length(100_000);
    expect(scanned).to.be.below(10 * 100_000);
  });

  it("passes on text without secrets at once and completely", async () => {
    const text = "Honest text with k3y and k3y/+ü but no more of it. ".repeat(20);
    for (const size of [1, 3, 64]) {
      const passed = await maskInParts(text, size);
      expect(passed.join("")).to.equal(text);
      const sentenceCount = text.split(/(?<=[.])/).length;
      // The stream must pass on the text in many parts: at least ten for each sentence, or one for every four
      // received parts if this is less.
      expect(passed.length, `${size}`).to.be.at.least(Math.min(10 * sentenceCount, text.length / size / 4));
    }
  });

  it("masks a short value that is the whole of a text that arrives in parts, or a quoted string in it", async () => {
    const short = new SecretScan([{ name: "__pin", value: "1234", mustMatchWhole: true }]);
    for (const size of [1, 2, 3, 10]) {
      for (const [text, expected] of [
        ["1234", "«__pin»"],
        ["12345", "12345"],
        ['pin: "1234".', 'pin: "«__pin»".'],
        ['pin: "12', 'pin: "12'],
        ['{"1234": 1}', '{"1234": 1}'],
        ['{"1234"  \n : "1234" , "a":"1234"}', '{"1234"  \n : "«__pin»" , "a":"«__pin»"}'],
        ['["1234"', '["«__pin»"'],
        ["a 1234", "a 1234"],
      ]) {
        expect((await maskInParts(text!, size, short)).join(""), `${size}`).to.equal(expected);
        expect(short.mask({ text: text! })).to.equal(expected);
      }
    }
  });

  it("finds a secret that is not ASCII as a label of a host", () => {
    const word = new SecretScan([{ name: "_word", value: "schlüsselwörter-überall", mustMatchWhole: false }]);
    const url = new URL("https://schlüsselwörter-überall.example/");
    expect(url.hostname).to.match(/^xn--/);
    expect(word.findInUrl(url.href)).to.equal("_word");
    expect(word.findInUrl("https://schluesselwoerter-ueberall.example/")).to.equal(null);
  });

  it("finds the whole password of a URL, also if it contains an @ or is escaped", () => {
    const values = (text: string) => findSecretsInSettingValue("_url", text).map(({ value }) => value);
    expect(values("postgres://me:pass@word@of@2026@db.example:5432/x")).to.include("pass@word@of@2026");
    expect(values("postgres://me:pass%40word%40of%402026@db.example/x")).to.include.members([
      "pass%40word%40of%402026",
      "pass@word@of@2026",
    ]);
  });

  it("finds nothing in text without a secret", () => {
    expect(scan.find([{ text: "k3y/+ü of few parts, nothing else; ".repeat(1000) }])).to.equal(null);
    expect(scan.mask({ text: "nothing here" })).to.equal("nothing here");
  });

  it("finds a short value only as the whole text, or as a whole string of JSON that is no key", () => {
    const short = new SecretScan([{ name: "__pin", value: "1234", mustMatchWhole: true }]);
    expect(short.find([{ text: "1234" }])).to.equal("__pin");
    expect(short.find([{ text: "12345" }])).to.equal(null);
    expect(short.findInJson('{"a":["1234"]}')).to.equal("__pin");
    expect(short.findInJson('{"a":["\\u0031234"]}')).to.equal("__pin");
    expect(short.findInJson('{"a":"0 1234"}')).to.equal(null);
    expect(short.findInJson('{"1234":1}')).to.equal(null);
    expect(short.mask({ text: "1234" })).to.equal("«__pin»");
    expect(short.mask({ text: '{"pin":"1234"}' })).to.equal('{"pin":"«__pin»"}');
  });

  it("finds names of keys only from 16 characters, and texts beside them as usual", () => {
    const word = new SecretScan([{ name: "__env", value: "production", mustMatchWhole: false }]);
    for (const honest of ['{"production":1}', '{"a":[{"production" : {"production":"x"}}]}', '{"cHJvZHVjdGlvbg":1}']) {
      expect(word.findInJson(honest), honest).to.equal(null);
      expect(word.maskJson(honest), honest).to.equal(honest);
    }
    for (const leak of [
      '{"production":"production"}',
      '{"a":1,"b":{"production-eu-west":1}}',
      '["production"]',
      '{"a":"\\"production\\":1"}',
      '{"production":"cHJvZHVjdGlvbg"}',
      '{"cHJvZHVjdGlvbi4uLg":1}',
      '{"x":"n","y":"oitcudorp"}'.replace('n","y":"', "n"),
    ]) {
      expect(word.findInJson(leak), leak).to.equal("__env");
      expect(word.findInJson(word.maskJson(leak)), leak).to.equal(null);
    }
    const document = new SecretScan([{ name: "_doc", value: '{"user":"a","pw":"b"}', mustMatchWhole: false }]);
    expect(document.findInJson('{"user":"a","pw":"b"}'), "a document over its keys").to.equal("_doc");
  });

  it("finds reversed base64 and hex, at any place of the value in them", () => {
    const back = (text: string) => text.split("").reverse().join("");
    for (const value of [SECRET, "k3y-of-16-letters", "deadbeefcafe01234567"]) {
      const single = new SecretScan([{ name: "_key", value, mustMatchWhole: false }]);
      for (const before of ["", "x", "xx", "user:"]) {
        for (const encoding of ["base64", "base64url", "hex"] as const) {
          const text = `{"a":"${back(Buffer.from(`${before}${value}yz`).toString(encoding))} "}`;
          expect(single.findInJson(text), `${before} ${encoding}`).to.equal("_key");
          expect(single.find([{ text: single.mask({ text }) }]), `${before} ${encoding}, masked`).to.equal(null);
        }
        const uppercaseHex = back(
          Buffer.from(before + value)
            .toString("hex")
            .toUpperCase(),
        );
        expect(single.find([{ text: uppercaseHex }]), uppercaseHex).to.equal("_key");
      }
    }
  });

  it("finds long strings and numbers at any place, and short strings only of a protected setting", () => {
    const of = (name: string, value: unknown) =>
      findSecretsInSettingValue(name, value).map((secret) => (secret.mustMatchWhole ? [secret.value] : secret.value));
    expect(of("_flag", true)).to.deep.equal([]);
    expect(of("_count", 1234567)).to.deep.equal([]);
    expect(of("_count", -1234567)).to.deep.equal([]);
    expect(of("_env", "live")).to.deep.equal([]);
    expect(of("__pin", "1234")).to.deep.equal([["1234"]]);
    expect(of("_account", -12345678)).to.deep.equal(["12345678"]);
    expect(of("__deep", { mode: "test", key: "abcdefgh" })).to.deep.equal(["abcdefgh"]);
    expect(of("_env", "production")).to.deep.equal([]);
    expect(of("_env", " разработка ")).to.deep.equal([]);
    expect(of("_deep", { mode: "production", key: "abcdefg1" })).to.deep.equal(["abcdefg1"]);
    expect(of("_long", "abcdefghijklmnop")).to.deep.equal(["abcdefghijklmnop"]);
    expect(of("_two", "two words")).to.deep.equal(["two words"]);
    expect(of("__env", "production")).to.deep.equal(["production"]);
    expect(of("_blank", " ".repeat(20))).to.deep.equal([]);
  });

  it("finds the parts of structured values that are secrets themselves: PEM lines, passwords, a document's strings", () => {
    const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
    const pem = `-----BEGIN PRIVATE KEY-----\n${line}\nabcd==\n-----END PRIVATE KEY-----\n`;
    const values = (value: unknown) => findSecretsInSettingValue("_x", value).map((secret) => secret.value);
    expect(values(pem)).to.have.members([pem, line]);
    const url = "postgres://user:p%40ssword-of-16-letters@db:5432/x";
    expect(values(url)).to.have.members([url, "p%40ssword-of-16-letters", "p@ssword-of-16-letters"]);
    const document = JSON.stringify({ type: "account", key: pem });
    expect(values(document)).to.have.members([document, pem, line]);
  });

  it("finds a secret of which a cut has left only the beginning, and masks it", () => {
    const cut = `${"x".repeat(50)}${SECRET.slice(0, 15)}`;
    expect(scan.find([{ text: cut }])).to.equal(null);
    expect(scan.find([{ text: cut, cut: true }])).to.equal("_key");
    expect(scan.mask({ text: cut, cut: true })).to.equal(`${"x".repeat(50)}«_key»`);
    const partOfEscape = JSON.stringify(JSON.stringify(SECRET)).slice(1, 24);
    expect(scan.find([{ text: partOfEscape, cut: true }])).to.equal("_key");
  });

  it("masks numbers and keys in JSON, and does not change JSON without secrets", () => {
    const account = new SecretScan([{ name: "_account", value: "1234567890", mustMatchWhole: false }]);
    expect(account.maskJson('{"a":1234567890,"key-of-1234567890":[1]}')).to.equal(
      '{"a":"«_account»","key-of-«_account»":[1]}',
    );
    expect(account.maskJson('{"a" : 1e3}')).to.equal('{"a" : 1e3}');
  });

  it("finds a value whose escapes are inside base64 or hex, also after bytes that are no text", () => {
    const percent = bytes.toString("hex").replaceAll(/../g, "%$&");
    const escaped = Buffer.from(percent);
    const behind = Buffer.concat([Buffer.alloc(12), escaped]);
    for (const text of [escaped, behind].flatMap((buffer) => [buffer.toString("base64"), buffer.toString("hex")])) {
      expect(scan.find([{ text }]), text).to.equal("_key");
      expect(scan.mask({ text }), text).to.not.equal(text);
    }
  });
});

describe("the thread that scans for secrets", () => {
  const workerThreads = process.getBuiltinModule("node:worker_threads");
  const { Worker } = workerThreads;
  afterEach(() => {
    workerThreads.Worker = Worker;
    syncBuiltinESMExports();
  });

  it("is started for each task until a start succeeds, also after the end of a thread", async () => {
    let starts = 0;
    class TestWorker extends Worker {
      private readonly start: number;
      constructor(url: URL) {
        starts += 1;
        if (starts === 1 || starts === 3) throw new Error(`start ${starts} fails`);
        super(url);
        this.start = starts;
      }
      override postMessage(message: unknown): void {
        if (this.start === 2) void this.terminate();
        else super.postMessage(message);
      }
    }
    workerThreads.Worker = TestWorker;
    syncBuiltinESMExports();
    const secrets = [{ name: "_key", value: SECRET, mustMatchWhole: false }];
    const queue = createScanThreadQueue();
    const tasks = [1, 2, 3, 4].map((owner) =>
      queue.runTask(`${owner}`, "key", secrets, { kind: "find", texts: [{ text: SECRET }] }),
    );
    const settled = Promise.allSettled(tasks);
    expect(starts, "starts before any task has settled").to.equal(2);
    expect(
      (await settled).map((task) => (task.status === "fulfilled" ? task.value : task.reason.message)),
    ).to.deep.equal(["start 1 fails", "the thread that scans for secrets ended", "start 3 fails", "_key"]);
  });
});
