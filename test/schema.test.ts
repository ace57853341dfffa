/** Compares the committed contracts in schema/ with the code, so that a change of either fails the test. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { CriticalityLevel, diff } from "@graphql-inspector/core";
import { expect } from "chai";
import {
  buildSchema,
  type GraphQLSchema,
  type GraphQLType,
  getNamedType,
  isInputObjectType,
  isObjectType,
  validateSchema,
} from "graphql";
import { listRootFields, loadSchema } from "../src/api/graphql/schema.js";
import { createOpenapiDocument } from "../src/api/openapi/document.js";
import { ROUTES } from "../src/api/rest/routes.js";
import { generateReferencePages } from "../src/cli/reference/pages.js";
import { SAMPLE_BODIES } from "../src/cli/reference/rest-bodies.js";
import { generateSchemaFiles } from "../src/cli/schema/contracts.js";
import { findFoldersByErrorStatus, RESERVED_ERROR_STATUSES } from "../src/cli/schema/error-table.js";
import { openDatabase } from "../src/data/database.js";
import { STATUS } from "../src/errors.js";
import { freshDatabase } from "./harness/postgres.js";
import { longTest } from "./harness/samples.js";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Allowed uses of `JSON`: payloads, results, values of settings, the data of events and entries, and filters. */
const JSON_INPUTS = [
  "AccessTrialInput.where",
  "AccessTrialUserInput.data",
  "ActionSourceInput.files",
  "AdministrateAppInput.settings",
  "AiCompletionInput.responseFormat",
  "AiToolCallInput.arguments",
  "AiToolInput.parameters",
  "AnalyticsEventInput.data",
  "ClientRunInput.payload",
  "ClientRunInput.result",
  "CommitEntryInput.data",
  "CreateDataSourceInput.entries",
  "DataSourceQueryInput.aggregate",
  "DataSourceQueryInput.where",
  "EmailOfBatchInput.data",
  "LogEventInput.data",
  "ManifestAppInput.dependencies",
  "ManifestAppInput.hooks",
  "ManifestSettingInput.value",
  "ManifestTriggerWhereInput.data",
  "MediaAccessRuleInput.user",
  "Mutation.applyManifest(manifest)",
  "Mutation.authorizeAppUser(where)",
  "Mutation.deleteEntries(where)",
  "Mutation.importEntries(entries)",
  "Mutation.insertEntry(data)",
  "Mutation.runAction(payload)",
  "Mutation.runActionWithResult(payload)",
  "Mutation.savePayloadPreset(payload)",
  "Mutation.sendEmail(data)",
  "Mutation.setSecureField(value)",
  "Mutation.setSettings(settings)",
  "Mutation.startClientRun(payload)",
  "Mutation.updateEntry(data)",
  "NotificationInput.data",
  "NotificationInput.extendData",
  "NotificationInput.scope",
  "PushWishInput.payload",
  "ReplayInput.payload",
  "SecretBindingInput.value",
  "Subscription.dataSourceChanged(where)",
  "TriggerWhereInput.data",
];
const JSON_OUTPUTS = [
  "AccessEntry.data",
  "AccessTrial.user",
  "ActionSource.files",
  "AiToolCall.arguments",
  "AppSessionEntry.data",
  "AppVersionDetails.settings",
  "AuditEntry.data",
  "DataSourceEntry.data",
  "DataSourceEntry.joins",
  "DataSourceEntryList.documents",
  "ExecutedRun.result",
  "LogEntry.data",
  "LogEntry.payload",
  "LogEntry.result",
  "LogEvent.data",
  "Manifest.manifest",
  "ManifestApp.dependencies",
  "ManifestApp.hooks",
  "ManifestSetting.value",
  "ManifestTriggerWhere.data",
  "MediaAccessRule.user",
  "Mutation.deleteSettings",
  "Mutation.setSettings",
  "Notification.data",
  "Notification.scope",
  "PayloadPreset.payload",
  "PushWish.payload",
  "Query.dataSourceIndexes",
  "Query.settings",
  "RuntimeEnv.appSettings",
  "TriggerWhere.data",
];

/** Types of scripts/graphql-documents.mjs, which is plain JavaScript. */
interface Documents {
  generateDocumentFiles(root: string): Promise<Record<string, string>>;
  generateTypedDocuments(root: string, text: string): Promise<string>;
}

describe("the committed contracts, which npm run schema writes", () => {
  let made: Record<string, string>;

  before(async () => {
    const database = await freshDatabase();
    const db = await openDatabase(database.url, 1);
    made = await generateSchemaFiles(db, ROOT).finally(() => db.destroy());
    await database.drop();
  });

  for (const name of ["schema.graphql", "database.sql", "errors.md"]) {
    it(`schema/${name} is what the code generates`, () => {
      expect(readFileSync(join(ROOT, "schema", name), "utf8")).to.equal(made[name]);
    });
  }

  it("docs/reference has the pages that the code generates", async () => {
    for (const [name, content] of Object.entries(await generateReferencePages(ROOT))) {
      expect(
        readFileSync(join(ROOT, "docs/reference", name), "utf8") === content,
        `${name}: run npm run reference`,
      ).to.equal(true);
    }
  });

  it("docs/reference/rest-routes.md shows no empty body, only fields of the schemas, and the callers of deletions", async () => {
    // biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document has no static type
    const document: any = await createOpenapiDocument(await loadSchema(), ROUTES, "");
    const schemaOf = (route: string) => {
      const [method = "", path = ""] = route.split(" ");
      const schema = document.paths[path]?.[method.toLowerCase()]?.requestBody?.content["application/json"].schema;
      expect(schema, route).to.not.equal(undefined);
      const name = (schema.items ?? schema).$ref?.split("/").at(-1);
      return { properties: name ? document.components.schemas[name].properties : schema.properties, schema };
    };
    for (const [route, body] of Object.entries(SAMPLE_BODIES)) {
      const { properties, schema } = schemaOf(route);
      expect(Array.isArray(body), route).to.equal(schema.type === "array");
      const fields = Object.keys([body].flat()[0] as object);
      // For the routes of queries, the schema lists only some fields of the body. The operation checks the other fields.
      const isPartial = route.endsWith("/query");
      if (properties && !isPartial) expect(Object.keys(properties), route).to.include.members(fields);
    }
    const page = readFileSync(join(ROOT, "docs/reference/rest-routes.md"), "utf8");
    expect(page.split("\n").filter((line) => /^(?:\{\}|\[\])$|:\{\}/.test(line))).to.deep.equal([]);
    const withoutFields = page.split("\n").filter((line) => /^2\d\d (?:\{…\}|\{"\w+":\{…\}\})$/.test(line));
    expect(withoutFields).to.deep.equal([]);
    const deletions = page.split("### ").filter((text) => text.startsWith("DELETE "));
    expect(deletions).to.have.length.above(15);
    expect(deletions.filter((text) => /Callers: [^.]*reader/.test(text))).to.deep.equal([]);
  });

  it("break no client of the released schema: a replaced field stays, deprecated with a reason", async () => {
    const released = buildSchema(readFileSync(join(ROOT, "schema/released.graphql"), "utf8"));
    const changes = await diff(released, buildSchema(made["schema.graphql"]!));
    const breaking = changes.filter(({ criticality }) => criticality.level === CriticalityLevel.Breaking);
    expect(breaking.map(({ message }) => message)).to.deep.equal([]);
  });

  it("would fail this test with a removed field", async () => {
    const broken = made["schema.graphql"]!.replace("isFirstPage: Boolean!", "isFirst: Boolean!");
    const changes = await diff(buildSchema(made["schema.graphql"]!), buildSchema(broken));
    const breaking = changes.filter(({ criticality }) => criticality.level === CriticalityLevel.Breaking);
    expect(breaking.map(({ path }) => path)).to.deep.equal(["DataSourceCursor.isFirstPage"]);
  });

  it("include a valid GraphQL schema", async () => {
    expect(validateSchema(await loadSchema())).to.deep.equal([]);
  });

  it("every query, mutation and subscription of an app has appId as its first argument", async () => {
    for (const schema of [await loadSchema(), buildSchema(made["schema.graphql"]!)]) {
      const late = listRootFields(schema).filter(({ args }) => args.findIndex(({ name }) => name === "appId") > 0);
      expect(late.map(({ name }) => name)).to.deep.equal([]);
    }
  });

  it("no input or output is JSON except payloads, results, settings and the data of events and entries", () => {
    const schema = buildSchema(made["schema.graphql"]!);
    const isJson = ({ type }: { type: GraphQLType }) => getNamedType(type).name === "JSON";
    const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
    const fields = types
      .filter(isObjectType)
      .flatMap((type) =>
        Object.values(type.getFields()).map((field) => ({ ...field, path: `${type.name}.${field.name}` })),
      );
    const inputs = types
      .filter(isInputObjectType)
      .flatMap((type) =>
        Object.values(type.getFields()).map((field) => ({ ...field, path: `${type.name}.${field.name}` })),
      );
    const given = fields.flatMap(({ path, args }) => args.map((arg) => ({ ...arg, path: `${path}(${arg.name})` })));
    const paths = (all: { type: GraphQLType; path: string }[]) =>
      all
        .filter(isJson)
        .map(({ path }) => path)
        .sort();
    expect(paths([...inputs, ...given])).to.deep.equal(JSON_INPUTS);
    expect(paths(fields)).to.deep.equal(JSON_OUTPUTS);
  });

  it("every time in an output is a DateTime", () => {
    const schema = buildSchema(made["schema.graphql"]!);
    const types = Object.values(schema.getTypeMap()).filter(isObjectType);
    const moments = types
      .filter(({ name }) => !name.startsWith("__"))
      .flatMap((type) =>
        Object.values(type.getFields()).map(({ name, type: of }) => ({ path: `${type.name}.${name}`, name, of })),
      )
      .filter(({ name }) => /^(at|tick|utc)$|At$/.test(name));
    expect(moments.length).to.be.above(10);
    expect(moments.filter(({ of }) => getNamedType(of).name !== "DateTime").map(({ path }) => path)).to.deep.equal([]);
  });

  describe("pages of lists", () => {
    const PAGING_ARGUMENTS = ["limit", "offset", "cursor", "before", "page", "first", "last"];
    const EARLIER_PAGE_FIELDS = /^(pagination|nextBefore|countIsExact)$/;
    const outputs = (schema: GraphQLSchema) => Object.values(schema.getTypeMap()).filter(isObjectType);
    const isPage = (type: GraphQLType) =>
      isObjectType(type) && type.getInterfaces().some(({ name }) => name === "Page");

    /** Returns faults of the schema: lists with paging arguments that return no `Page`, and pages with other fields than `Page`. */
    function findPagingFaults(schema: GraphQLSchema): string[] {
      const queries = Object.values(schema.getQueryType()!.getFields());
      const pages = (args: readonly { name: string; type: GraphQLType }[]): boolean =>
        args.some(({ name, type }) => {
          const named = getNamedType(type);
          return (
            PAGING_ARGUMENTS.includes(name) || (isInputObjectType(named) && pages(Object.values(named.getFields())))
          );
        });
      const paged = queries.filter(({ args }) => pages(args));
      const types = outputs(schema).filter(isPage);
      // Earlier releases returned pages as types with the ending `Pagination`. Only deprecated fields still have these types.
      const others = outputs(schema).filter((type) => !isPage(type) && !type.name.endsWith("Pagination"));
      const beside = [...types, ...others].flatMap((type) =>
        Object.values(type.getFields())
          .filter(
            ({ name }) => EARLIER_PAGE_FIELDS.test(name) || (!isPage(type) && /^(nextCursor|totalIsExact)$/.test(name)),
          )
          .filter(({ deprecationReason }) => !deprecationReason)
          .map(({ name }) => `${type.name}.${name}`),
      );
      const lists = types.flatMap((type) =>
        Object.values(type.getFields())
          .filter(({ name }) => name === "items")
          .map((items) => ({ type, items })),
      );
      const twice = lists.flatMap(({ type, items }) =>
        Object.values(type.getFields())
          .filter(({ name, type: of }) => name !== "items" && String(of) === String(items.type))
          .filter(({ deprecationReason }) => !deprecationReason)
          .map(({ name }) => `${type.name}.${name}`),
      );
      return [
        ...paged.filter(({ type }) => !isPage(getNamedType(type))).map(({ name }) => `Query.${name} is no Page`),
        ...types.filter((type) => !lists.some((list) => list.type === type)).map(({ name }) => `${name} has no items`),
        ...lists
          .filter(({ items }) => !/^\[\w+!\]!$/.test(String(items.type)))
          .map(({ type }) => `${type.name}.items may have null`),
        ...beside.map((path) => `${path} is not of the shape`),
        ...twice.map((path) => `${path} repeats items`),
      ];
    }
    it("have one form", async () => {
      const schema = buildSchema(made["schema.graphql"]!);
      expect(outputs(schema).filter(isPage).length).to.be.above(10);
      expect(findPagingFaults(schema)).to.deep.equal([]);
    });

    it("would fail this test with another form", () => {
      const text = made["schema.graphql"]!;
      const broken = (from: string, to: string) => findPagingFaults(buildSchema(text.replace(from, to)));
      expect(broken("type RunList implements Page", "type RunList")).to.include("Query.runs is no Page");
      expect(broken("  items: [Run!]!", "  items: [Run]!")).to.include("RunList.items may have null");
      expect(broken("  items: [Run!]!", "  rows: [Run!]!")).to.include("RunList has no items");
      expect(broken('  runs: [Run!]! @deprecated(reason: "Use `items`.")', "  runs: [Run!]!")).to.include(
        "RunList.runs repeats items",
      );
    });
  });

  it("the documents of Studio and of the client library have the types that the schema gives them", async () => {
    const { generateDocumentFiles } = (await import(join(ROOT, "scripts/graphql-documents.mjs"))) as Documents;
    const generated = await generateDocumentFiles(ROOT);
    expect(Object.keys(generated)).to.deep.equal([
      "src/web/runtime/documents.ts",
      "src/web/studio/documents.ts",
      "src/web/studio/home/documents.ts",
      "src/api/graphql/persisted-documents.json",
    ]);
    for (const [file, text] of Object.entries(generated)) expect(readFileSync(join(ROOT, file), "utf8")).to.equal(text);
  });

  longTest("are generated from any state: nothing is compiled for them that depends on them", () => {
    const tsc = join(ROOT, "node_modules/.bin/tsc");
    const options = ["-p", join(ROOT, "scripts/schema.tsconfig.json"), "--listFilesOnly"];
    const files = execFileSync(tsc, options, { encoding: "utf8" }).trim().split("\n");
    const projectFiles = files.map((file) => relative(ROOT, file)).filter((file) => !file.startsWith("node_modules"));
    expect(projectFiles).to.include("src/cli/schema.ts");
    expect(
      projectFiles.filter((file) => !/^(src|migrations)\//.test(file) || file.startsWith("src/web/")),
    ).to.deep.equal([]);
  });

  it("a document with an unknown field gets no types", async () => {
    const { generateTypedDocuments } = (await import(join(ROOT, "scripts/graphql-documents.mjs"))) as Documents;
    const refusal = await generateTypedDocuments(ROOT, "query Q { apps { id secrets } }").catch(
      (error: Error) => error.message,
    );
    expect(refusal).to.include("secrets");
  });

  it("every status of the catalogue is used somewhere, or reserved with a reason", () => {
    const raised = findFoldersByErrorStatus(ROOT);
    const silent = Object.keys(STATUS).filter((status) => raised.get(status as keyof typeof STATUS)?.length === 0);
    expect(silent).to.have.members(Object.keys(RESERVED_ERROR_STATUSES));
  });

  it("every status of the table of errors is in the catalogue", () => {
    const named = [...made["errors.md"]!.matchAll(/^\| `([A-Z0-9_]+)`/gm)].map(([, status]) => status);
    expect(named).to.deep.equal(Object.keys(STATUS));
  });
});
