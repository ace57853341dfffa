/** Tests imported files: every format, all entries or none, snapshots before large changes, and the restore of a snapshot. */
import { expect } from "chai";
import { rows } from "../../src/data/database.js";
import { longTest } from "../harness/samples.js";
import type { TestService } from "../harness/service.js";
import { useSharedService } from "../harness/shared-service.js";

describe("imports of entries", () => {
  let service: TestService;
  let base: string;
  let made = 0;

  before(async () => {
    service = await useSharedService("api");
    base = `/v1/apps/${service.appId}/data-sources`;
  });
  after(() => service.stop());

  const make = async (entries: object[] = [], more: object = {}): Promise<number> => {
    made += 1;
    return (await service.rest("POST", base, { body: { name: `imports ${made}`, entries, ...more } })).body.dataSource
      .id;
  };
  const dataOf = async (id: number) => {
    const found = await rows<{ data: object }>(
      service.db,
      'SELECT data FROM data_source_entry WHERE data_source_id = $1 ORDER BY "order", id',
      [id],
    );
    return found.map(({ data }) => data);
  };
  const upload = (id: number, type: string, body: string, query = "") =>
    service.rest("POST", `${base}/${id}/import${query}`, { body, headers: { "content-type": type } });
  const tally = async (id: number) =>
    (
      await rows<{ entries: number; bytes: number }>(
        service.db,
        "SELECT entries, bytes FROM data_source_tally WHERE data_source_id = $1",
        [id],
      )
    )[0]!;

  it("read CSV as texts, with quotes, line breaks, another delimiter and a byte order mark", async () => {
    const id = await make();
    const csv = '\uFEFFName,Zip,"Multi\nline"\r\n"Ada ""Countess""",00123,"a\r\nb"\r\nGrace,,é\r\n\r\n';
    const { http, body } = await upload(id, "text/csv", csv);
    expect([http, body]).to.deep.equal([200, { inserted: 2, columns: ["Name", "Zip", "Multi\nline"], delimiter: "," }]);
    expect(await dataOf(id)).to.deep.equal([
      { Name: 'Ada "Countess"', Zip: "00123", "Multi\nline": "a\r\nb" },
      { Name: "Grace", Zip: "", "Multi\nline": "é" },
    ]);
    expect((await upload(id, "text/csv", "a;b\n1;2\n")).body).to.deep.equal({
      inserted: 1,
      columns: ["a", "b"],
      delimiter: ";",
    });
    expect(await dataOf(id)).to.deep.equal([{ a: "1", b: "2" }]);
  });

  it("read a JSON array, JSON lines and a form's file, and add or replace as requested", async () => {
    const id = await make([{ n: 0 }]);
    expect((await upload(id, "application/json", '[{"n":1},{"n":{"deep":[2]}}]', "?append=true")).body).to.deep.equal({
      inserted: 2,
      columns: ["n"],
      delimiter: null,
    });
    expect(await dataOf(id)).to.deep.equal([{ n: 0 }, { n: 1 }, { n: { deep: [2] } }]);
    expect((await upload(id, "application/x-ndjson", '{"n":3}\n\n{"n":4}')).body.inserted).to.equal(2);
    expect(await dataOf(id)).to.deep.equal([{ n: 3 }, { n: 4 }]);
    const form = new FormData();
    form.set("file", new Blob(["n\n5\n"], { type: "application/octet-stream" }), "people.csv");
    const response = await fetch(`${service.url}${base}/${id}/import?append=true`, {
      method: "POST",
      headers: { "auth-token": service.tokens.editor },
      body: form,
    });
    expect([response.status, await response.json()]).to.deep.equal([
      200,
      { inserted: 1, columns: ["n"], delimiter: "," },
    ]);
    expect(await dataOf(id)).to.deep.equal([{ n: 3 }, { n: 4 }, { n: "5" }]);
    const graphql = await service.graphql(
      "mutation ($app: Int!, $id: ID!) { importEntries(appId: $app, dataSourceId: $id, entries: [{n: 6}], append: true) { inserted columns delimiter } }",
      { app: service.appId, id: String(id) },
    );
    expect(graphql.data.importEntries).to.deep.equal({ inserted: 1, columns: ["n"], delimiter: null });
  });

  it("of many rows keep their order and their texts, and count them exactly", async () => {
    const id = await make([{ old: true }]);
    const texts = Array.from({ length: 3_000 }, (_, at) => `row ${at} \\ "quoted"\t\\n \u2028 é`);
    const { body } = await upload(
      id,
      "application/json",
      JSON.stringify(texts.map((text) => ({ text }))),
      "?append=true",
    );
    expect(body).to.deep.equal({ inserted: 3_000, columns: ["text"], delimiter: null });
    const found = (await dataOf(id)) as { text?: string }[];
    expect(found.map(({ text }) => text)).to.deep.equal([undefined, ...texts]);
    const [counted] = await rows<{ entries: number; bytes: number }>(
      service.db,
      "SELECT count(*) AS entries, sum(octet_length(data::text)) AS bytes FROM data_source_entry WHERE data_source_id = $1",
      [id],
    );
    expect(await tally(id)).to.deep.equal(counted);
    expect((await service.rest("GET", `${base}/${id}`)).body.dataSource.columns).to.deep.equal(["old", "text"]);
  });

  it("read a CSV with types of its columns, and name the row and the column of a cell that does not have its type", async () => {
    const id = await make([{ kept: true }]);
    const typed = (types: unknown) => `?types=${encodeURIComponent(JSON.stringify(types))}`;
    const types = { Price: "number", Sold: "boolean", Day: "date", Name: "text" };
    const csv = "Name,Price,Sold,Day,Zip\nLamp,12.5,yes,26.11.2026,00123\n,,,\n";
    const { body } = await upload(id, "text/csv", csv, typed(types));
    expect(body).to.deep.equal({ inserted: 2, columns: ["Name", "Price", "Sold", "Day", "Zip"], delimiter: "," });
    const first = { Name: "Lamp", Price: 12.5, Sold: true, Day: "2026-11-26", Zip: "00123" };
    const stored = [first, { Name: "", Price: null, Sold: null, Day: null }];
    expect(await dataOf(id)).to.deep.equal(stored);
    const refusals: [query: string, file: string, error: string][] = [
      [typed({ n: "number" }), "n\n1\nx\n", 'row 3 of the file: "n" must be a number such as 1234.5 (got "x")'],
      [typed({ m: "number" }), "n\n1\n", '"types" contains a column that is not in the header of the file (got "m")'],
      [typed({ n: "integer" }), "n\n1\n", 'types["n"] must be one of text, number, boolean, date (got "integer")'],
      [typed(["n"]), "n\n1\n", '"types" must be a JSON object with the type of each column (got an array of 1)'],
      ["?types=n", "n\n1\n", '"types" must be a JSON object with the type of each column (got "n")'],
    ];
    for (const [query, file, error] of refusals) {
      const refused = await upload(id, "text/csv", file, query);
      expect([refused.http, refused.body.error]).to.deep.equal([400, error]);
    }
    const json = await upload(id, "application/json", '[{"n": 1}]', typed({ n: "number" }));
    expect([json.http, json.body.error]).to.deep.equal([
      400,
      '"types" is allowed only for CSV files (got the format json)',
    ]);
    expect(await dataOf(id)).to.deep.equal(stored);
  });

  it("read CSV with the delimiter of the query or of the first line", async () => {
    const id = await make();
    const semicolon = await upload(id, "text/csv", "a,x;b\n1;2,5\n", "?delimiter=%3B");
    expect(semicolon.body).to.deep.equal({ inserted: 1, columns: ["a,x", "b"], delimiter: ";" });
    expect(await dataOf(id)).to.deep.equal([{ "a,x": "1", b: "2,5" }]);
    const named = await upload(id, "text/csv", "sep=;\r\na,x;b\r\n1;2,5\r\n");
    expect(named.body).to.deep.equal({ inserted: 1, columns: ["a,x", "b"], delimiter: ";" });
    const twice = await upload(id, "text/csv", "a\n1\n", "?delimiter=a&delimiter=b");
    expect([twice.http, twice.body.error]).to.deep.equal([
      400,
      "the query parameter delimiter must occur only once in the URL (got it 2 times)",
    ]);
    const bars = await upload(id, "text/csv", "Title|Sub,Note|x\n1,2\n");
    expect(bars.body).to.deep.equal({ inserted: 1, columns: ["Title|Sub", "Note|x"], delimiter: "," });
    for (const query of ["?delimiter=", "?delimiter=ab", "?delimiter=%22", "?delimiter=%0A"]) {
      const { http, body } = await upload(id, "text/csv", "a\n1\n", query);
      expect([http, body.status, body.error], query).to.deep.equal([
        400,
        "REQUEST_INVALID",
        body.error.match(/^"delimiter" must be one character other than a quote or a line break \(got .*\)$/)?.[0],
      ]);
    }
  });

  it("keep rows whose cells are all blank", async () => {
    const id = await make();
    expect((await upload(id, "text/csv", "a,b\n1,2\n,\n3,4")).body.inserted).to.equal(3);
    expect(await dataOf(id)).to.deep.equal([
      { a: "1", b: "2" },
      { a: "", b: "" },
      { a: "3", b: "4" },
    ]);
  });

  it("read their own export again, byte by byte", async () => {
    const entries = [{ a: '"q" \r\n;' }, { a: "" }, { a: "=1+1" }];
    const id = await make(entries);
    const exported = (await service.rest("GET", `${base}/${id}/export?format=csv`)).body;
    expect((await upload(id, "text/csv", exported)).body.inserted).to.equal(3);
    expect(await dataOf(id)).to.deep.equal(entries);
    expect((await service.rest("GET", `${base}/${id}/export?format=csv`)).body).to.equal(exported);
  });

  it("read their own export as JSON again, also with a column that is named data", async () => {
    const columns = [{ data: { a: 1 } }, { data: "x" }, { data: null }, { id: 5, data: {} }, { data: { data: 1 } }];
    const entries = [...columns, { data: { a: 1 }, b: 2 }, { data: 1, id: 2 }, { a: '"data"' }, {}];
    const id = await make(entries.map((data) => ({ data })));
    for (const [format, type] of [
      ["json", "application/json"],
      ["jsonl", "application/x-ndjson"],
    ] as const) {
      const headers = { "auth-token": service.tokens.editor };
      const exported = await fetch(`${service.url}${base}/${id}/export?format=${format}`, { headers });
      expect((await upload(id, type, await exported.text())).body.inserted).to.equal(entries.length);
      expect(await dataOf(id)).to.deep.equal(entries);
    }
  });

  it("have the name of the data source as the file name of an export", async () => {
    const { dataSource } = (await service.rest("POST", base, { body: { name: 'Zoë\'s "list"' } })).body;
    const response = await service.rest("GET", `${base}/${dataSource.id}/export?format=csv`);
    expect(response.headers.get("content-disposition")).to.equal(
      "attachment; filename=\"Zo_'s _list_.csv\"; filename*=UTF-8''Zo%C3%AB%27s%20%22list%22.csv",
    );
  });

  for (const [format, type, blank] of [
    ["CSV", "text/csv", "\uFEFF\r\n\r\n"],
    ["JSON lines", "application/x-ndjson", "\n"],
  ] as const) {
    it(`of an empty file replace nothing: ${format}`, async () => {
      const id = await make([{ kept: 1 }]);
      for (const text of ["", blank]) {
        const { http, body } = await upload(id, type, text);
        expect([http, body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
        expect(body.error).to.match(/^the file is empty/);
      }
      expect((await upload(id, type, "", "?append=true")).body.inserted).to.equal(0);
      expect(await dataOf(id)).to.deep.equal([{ kept: 1 }]);
    });
  }

  it("of a header or an empty JSON array remove all entries", async () => {
    for (const [type, text] of [
      ["text/csv", "a,b\n"],
      ["application/json", "[]"],
    ] as const) {
      const id = await make([{ old: 1 }]);
      expect((await upload(id, type, text)).body.inserted).to.equal(0);
      expect(await dataOf(id)).to.deep.equal([]);
    }
  });

  it("of a header with a megabyte of columns are rejected at once", async () => {
    const id = await make();
    for (const header of [",".repeat(950_000), Array.from({ length: 100_000 }, (_, at) => `c${at}`).join()]) {
      const { http, body } = await upload(id, "text/csv", header);
      expect([http, body.error]).to.deep.equal([400, "row 1 of the file has more than 1,000 fields"]);
    }
  });

  it("are exported for spreadsheets with an apostrophe before formulas", async () => {
    const id = await make([
      { "=a": "=1+1\n2" },
      { "=a": "+1" },
      { "=a": "-1" },
      { "=a": "@x" },
      { "=a": -1 },
      { "=a": "1=1" },
    ]);
    const exported = (await service.rest("GET", `${base}/${id}/export?format=csv&spreadsheet=true`)).body;
    expect(exported).to.equal(`"'=a"\r\n"'=1+1\n2"\r\n"'+1"\r\n"'-1"\r\n"'@x"\r\n-1\r\n1=1\r\n`);
    const exact = (await service.rest("GET", `${base}/${id}/export?format=csv`)).body;
    expect(exact).to.equal(`=a\r\n"=1+1\n2"\r\n+1\r\n-1\r\n@x\r\n-1\r\n1=1\r\n`);
    expect((await service.rest("GET", `${base}/${id}/export?format=csv&spreadsheet=yes`)).http).to.equal(400);
  });

  const bad: [string, string, string, RegExp][] = [
    [
      "a row with more fields than the header",
      "text/csv",
      `a,b\n${"1,2\n".repeat(1_500)}1,2,3\n`,
      /^row 1502 .* 3 cells, but the header has only 2$/,
    ],
    ["a header that names a column twice", "text/csv", "a,a\n1,2\n", /contains the column "a" twice/],
    [
      "a header without a name",
      "text/csv",
      "a,\n1,2\n",
      /in the header of the file must be a text of 1 to 255 characters/,
    ],
    ["a quote that does not end", "text/csv", 'a\n"1\n', /quote/],
    [
      "a row that is no object",
      "application/json",
      `[${'{"a":1},'.repeat(2_000)}5]`,
      /^entry 2001 of the import must be an object/,
    ],
    ["JSON that breaks off", "application/json", '[{"a":1},{"a"', /must be one complete JSON array/],
    ["JSON that is no array", "application/json", '{"a":1}', /must be one complete JSON array/],
    [
      "a line that is no JSON",
      "application/x-ndjson",
      '{"a":1}\n{a}\n',
      /^line 2 of the file must be a JSON value \(got a text of 3 characters\)$/,
    ],
    ["the character U+0000", "application/json", '[{"a":"\\u0000"}]', /U\+0000/],
    ["a type that is no table", "image/png", "x", /must be text\/csv/],
  ];
  for (const [title, type, body, words] of bad) {
    it(`are rejected as a whole for ${title}: nothing is added or removed`, async () => {
      const id = await make([{ kept: 1 }]);
      const before = await tally(id);
      const answer = await upload(id, type, body);
      expect([answer.http, answer.body.status]).to.deep.equal([400, "REQUEST_INVALID"]);
      expect(answer.body.error).to.match(words);
      expect(await dataOf(id)).to.deep.equal([{ kept: 1 }]);
      expect(await tally(id)).to.deep.equal(before);
      expect(await rows(service.db, "SELECT FROM log_event WHERE data_source_id = $1", [id])).to.deep.equal([]);
    });
  }

  it("that are not UTF-8 are rejected", async () => {
    const id = await make();
    const response = await fetch(`${service.url}${base}/${id}/import`, {
      method: "POST",
      headers: { "auth-token": service.tokens.editor, "content-type": "text/csv" },
      body: Buffer.from([0x61, 0x0a, 0xe9, 0x0a]),
    });
    expect([response.status, ((await response.json()) as { error: string }).error]).to.deep.equal([
      400,
      "the file must be UTF-8 text; save it with this encoding",
    ]);
  });

  it("log one event each, with the counts", async () => {
    const id = await make([{ a: 1 }]);
    await upload(id, "application/json", '[{"b":1},{"b":2}]');
    const events = await rows<{ type: string; data: object }>(
      service.db,
      "SELECT type, data FROM log_event WHERE data_source_id = $1",
      [id],
    );
    expect(events.map(({ type }) => type)).to.deep.equal(["dataSource.import"]);
    expect(events[0]!.data).to.deep.include({
      operation: "import",
      inserted: 2,
      updated: 0,
      deleted: 1,
      columns: ["a", "b"],
    });
  });

  describe("store snapshots", () => {
    const versionsOf = async (id: number) => (await service.rest("GET", `${base}/${id}/versions`)).body.versions;

    it("that restore the entries with their IDs, and whose restore can be undone", async () => {
      const id = await make([
        { z: 1, a: "x\\y" },
        { z: 2, a: null },
      ]);
      const before = (await service.rest("GET", `${base}/${id}`)).body;
      const entries = await rows(
        service.db,
        'SELECT id, data::text, "order", created_at, updated_at FROM data_source_entry WHERE data_source_id = $1 ORDER BY id',
        [id],
      );
      await upload(id, "application/json", '[{"new":1}]');
      const [version] = await versionsOf(id);
      expect(version).to.deep.include({
        operation: "import",
        entries: 2,
        dataSourceId: id,
        columns: before.dataSource.columns,
      });
      const restored = await service.rest("POST", `${base}/${id}/versions/${version.id}/restore`);
      expect([restored.http, restored.body]).to.deep.equal([200, { inserted: 2 }]);
      const after = await rows(
        service.db,
        'SELECT id, data::text, "order", created_at, updated_at FROM data_source_entry WHERE data_source_id = $1 ORDER BY id',
        [id],
      );
      expect(after).to.deep.equal(entries);
      const [undo] = await versionsOf(id);
      await service.rest("POST", `${base}/${id}/versions/${undo.id}/restore`);
      expect(await dataOf(id)).to.deep.equal([{ new: 1 }]);
      expect(await tally(id)).to.deep.equal({ entries: 1, bytes: 9 });
    });

    longTest("of which the newest thirty stay", async () => {
      const id = await make([{ n: 0 }]);
      for (let at = 1; at <= 32; at += 1) await upload(id, "application/json", `[{"n":${at}}]`);
      const versions = await versionsOf(id);
      expect(versions).to.have.length(30);
      const stored = await rows(service.db, "SELECT FROM data_source_version WHERE data_source_id = $1", [id]);
      expect(stored).to.have.length(30);
    });

    it("of which another data source's are not found", async () => {
      const id = await make([{ n: 0 }]);
      const other = await make([{ n: 1 }]);
      await upload(id, "application/json", "[]");
      const [version] = await versionsOf(id);
      const answer = await service.rest("POST", `${base}/${other}/versions/${version.id}/restore`);
      expect([answer.http, answer.body.status]).to.deep.equal([404, "VERSION_NOT_FOUND"]);
      expect(await dataOf(other)).to.deep.equal([{ n: 1 }]);
    });
  });
});
