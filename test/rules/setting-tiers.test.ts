import { expect } from "chai";
import fc from "fast-check";
import { SETTINGS_KEYS_PER_REQUEST } from "../../src/limits.js";
import {
  checkPrivateSettingsSize,
  checkRequestedSettingKeys,
  createAiArtifactSettingKey,
  createSettingReadCheck,
  getSettingTier,
  parseDeletedSettingKeys,
  parseSecretFlagRequest,
  parseSettingsBody,
  removeProtectedKeys,
  selectHttpSettings,
  selectRuntimeSettings,
  selectServerActionSettings,
} from "../../src/rules/setting-tiers.js";
import { refusal } from "./refusal.js";

const SETTINGS = new Map<string, unknown>([
  ["name", "Shop"],
  ["a_b", { _nested: 1, __nested: 2 }],
  ["_key", "private"],
  ["_", 1],
  ["__secret", "protected"],
  ["__", 2],
  ["___three", 3],
  ["toString", "public too"],
]);

describe("tiers of settings", () => {
  it("depend only on the prefix of the key", () => {
    const tiers = [...SETTINGS.keys()].map(getSettingTier);
    const expected = ["public", "public", "private", "private", "protected", "protected", "protected", "public"];
    expect(tiers).to.deep.equal(expected);
  });

  it("show the runtime only public keys, with nested underscores unchanged", () => {
    expect(Object.entries(selectRuntimeSettings(SETTINGS))).to.deep.equal([
      ["name", "Shop"],
      ["a_b", { _nested: 1, __nested: 2 }],
      ["toString", "public too"],
    ]);
  });

  it("show HTTP readers no protected key", () => {
    expect(Object.keys(selectHttpSettings(SETTINGS))).to.deep.equal(["name", "a_b", "_key", "_", "toString"]);
  });

  it("show server actions the keys with underscores, and no public ones", () => {
    expect(Object.keys(selectServerActionSettings(SETTINGS, []))).to.deep.equal([
      "_key",
      "_",
      "__secret",
      "__",
      "___three",
    ]);
  });

  it("show server actions no sealed setting, and not the setting of the AI provider", () => {
    const settings = new Map([...SETTINGS, ["__ai", {}]]);
    expect(Object.keys(selectServerActionSettings(settings, ["__secret"]))).to.deep.equal([
      "_key",
      "_",
      "__",
      "___three",
    ]);
  });

  it("give back-end code everything", () => {
    expect([...SETTINGS.keys()].every(createSettingReadCheck("backend"))).to.equal(true);
  });

  it("split any settings into views that lose nothing and never overlap wrongly", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string(), fc.jsonValue())), (entries) => {
        const all = new Set(entries.map(([key]) => key));
        const runtime = new Set(Object.keys(selectRuntimeSettings(entries)));
        const server = new Set(Object.keys(selectServerActionSettings(entries, [])));
        expect([...runtime].filter((key) => server.has(key))).to.deep.equal([]);
        expect(new Set([...runtime, ...server])).to.deep.equal(all);
        expect(Object.keys(selectHttpSettings(entries)).some((key) => key.startsWith("__"))).to.equal(false);
      }),
    );
  });
});

describe("setting keys", () => {
  it("are accepted unchanged, also names of methods", () => {
    const body = JSON.parse(
      '{"toString":1,"hasOwnProperty":null,"__secret":{"a":[1]},"ключ 🔑":2,"a\\u0000":3,"\\ud800":4}',
    );
    expect(parseSettingsBody(body)).to.deep.equal(Object.entries(body));
    expect(parseSettingsBody({ ["k".repeat(512)]: 1 })).to.have.length(1);
    expect(parseSettingsBody({})).to.deep.equal([]);
  });

  const REFUSED: [string, string][] = [
    ["an array", "[]"],
    ["null", "null"],
    ["a string", '"a"'],
    ["an empty key", '{"":1}'],
    ["a key of 513 characters", JSON.stringify({ ["k".repeat(513)]: 1 })],
    ["__proto__", '{"__proto__":{"admin":true}}'],
    ["constructor", '{"constructor":1}'],
    ["prototype", '{"prototype":1}'],
    ["201 keys", JSON.stringify(Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`k${i}`, 1])))],
    ["a value of 100,000 levels", `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`],
  ];
  for (const [title, json] of REFUSED) {
    it(`are rejected: ${title}`, () => {
      const message = refusal("SETTINGS_INVALID", () => parseSettingsBody(JSON.parse(json)));
      expect(message).to.have.length.below(250);
    });
  }

  it("have errors that never repeat a value", () => {
    const message = refusal("SETTINGS_INVALID", () => parseSettingsBody(JSON.parse('{"prototype":"hunter22"}')));
    expect(message).to.not.contain("hunter22");
  });

  it("to delete are an array of keys, each used once", () => {
    expect(parseDeletedSettingKeys({ keys: ["a", "__b", "a"] })).to.deep.equal(["a", "__b"]);
    for (const body of [
      null,
      [],
      {},
      { keys: "a" },
      { keys: [1] },
      { keys: [""] },
      { keys: ["__proto__"] },
      { keys: [null] },
    ]) {
      refusal("SETTINGS_INVALID", () => parseDeletedSettingKeys(body));
    }
    refusal("SETTINGS_INVALID", () => parseDeletedSettingKeys({ keys: Array(201).fill("a") }));
  });

  it("of the AI builder have other characters than letters, digits, _ . and - replaced", () => {
    expect(createAiArtifactSettingKey("stripe-key_1.live")).to.equal("_aiartifact_stripe-key_1.live");
    expect(createAiArtifactSettingKey("my key/é:😀")).to.equal("_aiartifact_my_key____");
  });
});

describe("private and protected settings", () => {
  const valueOfBytes = (bytes: number) => JSON.stringify({ _a: "x".repeat(bytes - '{"_a":""}'.length) });

  it("can have 100 KB of JSON and not a byte more", () => {
    checkPrivateSettingsSize(valueOfBytes(102_400));
    expect(refusal("EXECUTION_FAILED", () => checkPrivateSettingsSize(valueOfBytes(102_401)))).to.contain(
      "private app settings exceed the 100 KB limit for server actions",
    );
  });

  it("are counted in UTF-8", () => {
    refusal("EXECUTION_FAILED", () => checkPrivateSettingsSize(JSON.stringify({ _a: "é".repeat(51_200) })));
  });
});

describe("keys in a request", () => {
  const many = (count: number) => Array.from({ length: count }, (_, at) => `k${at}`);

  it("have a maximum number, in each kind of request", () => {
    const most = many(SETTINGS_KEYS_PER_REQUEST);
    const more = many(SETTINGS_KEYS_PER_REQUEST + 1);
    checkRequestedSettingKeys(most);
    expect(parseDeletedSettingKeys({ keys: most })).to.deep.equal(most);
    expect(parseSettingsBody(Object.fromEntries(most.map((key) => [key, 1])))).to.have.length(most.length);
    for (const check of [
      () => checkRequestedSettingKeys(more),
      () => parseDeletedSettingKeys({ keys: more }),
      () => parseSettingsBody(Object.fromEntries(more.map((key) => [key, 1]))),
    ])
      expect(refusal("SETTINGS_INVALID", check)).to.contain(`got ${more.length}`);
  });

  it("are rejected with the received value", () => {
    for (const body of [{}, null, [], { keys: "a" }])
      expect(refusal("SETTINGS_INVALID", () => parseDeletedSettingKeys(body))).to.contain("keys must be an array");
    for (const key of ["", 5, null, "x".repeat(513), "__proto__"])
      refusal("SETTINGS_INVALID", () => parseDeletedSettingKeys({ keys: [key] }));
    const huge = JSON.parse('{"a": [1e999]}');
    expect(refusal("SETTINGS_INVALID", () => parseSettingsBody(huge))).to.contain(
      "must not contain a number above 1.8e308 or below -1.8e308",
    );
    expect(refusal("SETTINGS_INVALID", () => parseSettingsBody("secret text"))).to.not.contain("secret text");
  });

  it("of a mark must be private settings, and others get the reason", () => {
    expect(parseSecretFlagRequest({ keys: ["_a", "_a"], secret: true })).to.deep.equal({ keys: ["_a"], secret: true });
    expect(parseSecretFlagRequest({ keys: ["_a"], secret: false }).secret).to.equal(false);
    for (const secret of [undefined, "yes", 1])
      expect(refusal("SETTINGS_INVALID", () => parseSecretFlagRequest({ keys: ["_a"], secret }))).to.contain(
        "secret must be",
      );
    const reasonOf = (key: string) =>
      refusal("SETTINGS_INVALID", () => parseSecretFlagRequest({ keys: [key], secret: true }));
    expect(reasonOf("__a")).to.contain("protected settings are always secret");
    expect(reasonOf("a")).to.contain("public settings are never secret");
  });

  it("of the AI builder have 1 to the maximum of characters", () => {
    expect(createAiArtifactSettingKey("x")).to.equal("_aiartifact_x");
    for (const [key, received] of [
      ["", '""'],
      [null, "null"],
      [5, "5"],
      ["x".repeat(501), "501 characters"],
    ] as const)
      expect(refusal("SETTINGS_INVALID", () => createAiArtifactSettingKey(key))).to.contain(`(got ${received})`);
    const message = refusal("SETTINGS_INVALID", () => createAiArtifactSettingKey("x".repeat(1_000)));
    expect(message).to.contain("must be a string of 1 to 500 characters (got 1000 characters)");
    expect(createAiArtifactSettingKey("x".repeat(500))).to.have.length(512);
    expect(refusal("SETTINGS_INVALID", () => createAiArtifactSettingKey(""))).to.contain('(got "")');
  });

  it("that are protected are left out of an administrator's write", () => {
    expect(removeProtectedKeys({ a: 1, _b: 2, __c: 3 })).to.deep.equal({ a: 1, _b: 2 });
    expect(removeProtectedKeys("text")).to.equal("text");
  });
});
