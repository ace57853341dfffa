/** Tests unusual JSON values, texts and paths, from a request to the stored entry and back. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { startTestService, type TestService } from "../harness/service.js";

describe("unusual values", () => {
  let service: TestService;
  let base: string;

  before(async () => {
    service = await startTestService({ ROLES: "api,runner" });
    base = `/v1/apps/${service.appId}`;
  });
  after(() => service.stop());

  const make = async (name: string, entries: object[]): Promise<string> => {
    const { dataSource } = (await service.rest("POST", `${base}/data-sources`, { body: { name, entries } })).body;
    return `${base}/data-sources/${dataSource.id}`;
  };
  const json = { headers: { "content-type": "application/json" } };

  it("are found by $iLike, contains, == and oneof, ignoring case in every script", async () => {
    const words = ["ΟΔΟΣΑΝΔΡΟΣ", "İstanbul", "Straße", "plain"];
    const source = await make(
      "words",
      words.map((Word) => ({ Word })),
    );
    const found = async (where: object): Promise<string[]> =>
      (await service.rest("POST", `${source}/query`, { body: { where } })).body.entries.map(
        ({ data }: { data: { Word: string } }) => data.Word,
      );
    for (const [part, word] of [
      ["ΟΔΟΣ", words[0]],
      ["istanbul", words[1]],
      ["STRASSE", words[2]],
    ] as const) {
      expect(await found({ Word: { $iLike: part } }), part).to.deep.equal([word]);
      expect(await found({ $filters: [{ column: "Word", condition: "contains", value: part }] })).to.deep.equal([word]);
    }
    for (const value of ["istanbul", "ISTANBUL"]) {
      expect(await found({ $filters: [{ column: "Word", condition: "==", value }] })).to.deep.equal(["İstanbul"]);
      expect(await found({ $filters: [{ column: "Word", condition: "oneof", value: [value] }] })).to.deep.equal([
        "İstanbul",
      ]);
    }
  });

  it("are found by $regex with i as in JavaScript, also letters with several lower cases", async () => {
    const words = ["ΟΔΟΣ", "οδός", "ὀδος", "σΣς", "ϐ", "Β", "µ", "μ", "Μ", "ẛ", "Ṡ", "а"];
    const source = await make(
      "cases",
      words.map((Word) => ({ Word })),
    );
    for (const pattern of ["οδος", "^ς", "σ+$", "^[^σ]+$", "[α-ρ]", "[Α-Ω]$", "^[^Α-Ω]+$", "β", "μ", "ṡ", "[ς-ω]"]) {
      const where = { Word: { $regex: pattern, $options: "i" } };
      const { body } = await service.rest("POST", `${source}/query`, { body: { where } });
      const found = body.entries.map(({ data }: { data: { Word: string } }) => data.Word);
      expect(found, pattern).to.deep.equal(words.filter((word) => new RegExp(pattern, "i").test(word)));
    }
  });

  it("are found by $regex with i as in JavaScript, also letters with a capital in one direction only", async () => {
    const words = [
      "s",
      "S",
      "ſ",
      "k",
      "K",
      "\u212a",
      "i",
      "I",
      "İ",
      "ı",
      "ω",
      "\u2126",
      "å",
      "Å",
      "\u212b",
      "ß",
      "ẞ",
      "ss",
    ];
    const source = await make(
      "lone letters",
      words.map((Word) => ({ Word })),
    );
    const classes = [
      "[ſa]",
      "[^ſ]",
      "[Ā-ɏ]",
      "[^\u0080-\uffff]",
      "[\u0080-\uffff]",
      "[sſ]",
      "[\\wſ]",
      "[^\u212aK]",
      "[\u212a-\u212b]",
    ];
    for (const pattern of [
      ...words.map((word) => `^${word}$`),
      ...classes.map((characterClass) => `^${characterClass}$`),
      "ſ+",
      "(ı|ẞ)",
      "^[^ß]$",
    ]) {
      const where = { Word: { $regex: pattern, $options: "i" } };
      const { body } = await service.rest("POST", `${source}/query`, { body: { where } });
      const found = body.entries.map(({ data }: { data: { Word: string } }) => data.Word);
      expect(found, pattern).to.deep.equal(words.filter((word) => new RegExp(pattern, "i").test(word)));
    }
  });

  it("that are numbers equal themselves in $filters", async () => {
    const numbers = [1e-7, 1e21, 5e-324, -1.5e300, 0.1, 7];
    const source = await make(
      "numbers",
      numbers.map((N) => ({ N })),
    );
    for (const [value, expected] of [
      ...numbers.map((number) => [number, number] as const),
      ["1e-7", 1e-7] as const,
      ["1e21", 1e21] as const,
      ["7", 7] as const,
    ]) {
      for (const [condition, operand] of [
        ["==", value],
        ["oneof", [value]],
      ] as const) {
        const where = { $filters: [{ column: "N", condition, value: operand }] };
        const { entries } = (await service.rest("POST", `${source}/query`, { body: { where } })).body;
        expect(
          entries.map(({ data }: { data: { N: number } }) => data.N),
          `${condition} ${value}`,
        ).to.deep.equal([expected]);
      }
      const where = { $filters: [{ column: "N", condition: "!=", value }] };
      const { entries } = (await service.rest("POST", `${source}/query`, { body: { where } })).body;
      expect(entries, `!= ${value}`).to.have.length(numbers.length - 1);
    }
  });

  it("can be column names with commas, percent signs or slashes, with distinct values", async () => {
    const columns = ["c,d", "a%2Cb", "x/y", "plain", "é,"];
    const source = await make("commas", [Object.fromEntries(columns.map((column) => [column, `of ${column}`]))]);
    for (const column of columns) {
      const { body } = await service.rest("GET", `${source}/indexes/${encodeURIComponent(column)}`);
      expect(body).to.deep.equal({ [column]: [`of ${column}`] });
    }
    expect((await service.rest("GET", `${source}/indexes/plain/`)).body).to.deep.equal({ plain: ["of plain"] });
    const all = await service.rest("GET", `${source}/indexes/${columns.map(encodeURIComponent).join(",")}`);
    expect(all.body).to.deep.equal(Object.fromEntries(columns.map((column) => [column, [`of ${column}`]])));
  });

  it("that are numbers beyond a double are rejected, and never stored as null", async () => {
    const source = await make("huge", [{ kept: 1 }]);
    const huge = ["1e400", "-1e400", "1e+999", `1${"0".repeat(310)}`];
    const actions = `/v3/apps/${service.appId}/actions`;
    const code = "async function execute({ payload }) { return payload; }";
    const action = { name: "echo", code, active: true, triggers: [{ trigger: "manual" }] };
    await service.rest("POST", actions, { body: action });
    const routes: [string, (number: string) => string][] = [
      [`${actions}/echo/runWithResult`, (number) => `{"deep": [{"n": ${number}}]}`],
      [`${actions}/echo/run`, (number) => `{"n": ${number}}`],
      [`${base}/logs`, (number) => `{"type": "dataSource.event", "data": {"n": ${number}}}`],
      [`${source}/entries`, (number) => `{"n": ${number}}`],
      [`${source}/import`, (number) => `[{"n": ${number}}]`],
      [`${source}/query`, (number) => `{"where": {"n": ${number}}}`],
      [`${base}/settings`, (number) => `{"n": ${number}}`],
    ];
    for (const number of huge) {
      for (const [path, body] of routes) {
        const answer = await service.rest("POST", path, { ...json, body: body(number) });
        expect(answer.http, `${path} ${number.slice(0, 20)}`).to.equal(400);
        expect(answer.body.error).to.match(/number/);
      }
      const document = `mutation { runAction(appId: ${service.appId}, nameOrId: "echo", payload: {n: ${number}}) { runId } }`;
      const status = (await service.graphql(document)).errors![0]!.extensions.status;
      expect(status, number.slice(0, 20)).to.equal("PAYLOAD_INVALID");
    }
    const large = { ...json, body: '{"n": 1e308, "s": "1e400"}' };
    expect((await service.rest("POST", `${actions}/echo/runWithResult`, large)).body.result).to.deep.equal({
      n: 1e308,
      s: "1e400",
    });
  });

  it("that are bytes other than UTF-8 are rejected in every JSON body", async () => {
    const source = await make("bytes", []);
    const send = async (path: string, bytes: number[]) => {
      const body = Buffer.concat([Buffer.from('{"a": "'), Buffer.from(bytes), Buffer.from('"}')]);
      const headers = { "auth-token": service.tokens.editor, "content-type": "application/json" };
      const answer = await fetch(`${service.url}${path}`, { method: "POST", headers, body });
      return { http: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    for (const bytes of [[0xe9], [0xff, 0xfe], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xf0, 0x9f]]) {
      for (const path of [`${source}/entries`, `${base}/settings`, `/v3/apps/${service.appId}/actions`, "/graphql"]) {
        const { http, body } = await send(path, bytes);
        expect(http, `${path} ${bytes}`).to.equal(400);
        if (path !== "/graphql")
          expect(body).to.deep.equal({
            status: "REQUEST_INVALID",
            error: "the body must be UTF-8 text (got bytes that are not UTF-8)",
          });
      }
    }
    const stored = await send(`${source}/entries`, [0xc3, 0xa9]);
    expect((stored.body["data"] as { a: string }).a).to.equal("é");
    expect(await rows(service.db, "SELECT FROM data_source_entry WHERE data::text LIKE '%\uFFFD%'")).to.deep.equal([]);
  });
});
