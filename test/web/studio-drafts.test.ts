/** Tests that Studio stores the values of its forms exactly, and changes nothing else. */
import { expect } from "chai";
import { buildEventsPage } from "../../src/cli/reference/events.js";
import { highlightCode } from "../../src/web/studio/actions/highlight-code.js";
import {
  indentLines,
  insertLineBreak,
  removeIndentation,
  type TextEdit,
} from "../../src/web/studio/actions/plain-keys.js";
import { conditionsToRows, isEditableRuleList, rowsToConditions } from "../../src/web/studio/data/access-templates.js";
import { canEditHooksInForm, findDuplicateKey } from "../../src/web/studio/data/draft-rows.js";
import {
  createDeliverySetting,
  validateDeliverySettingDraft,
} from "../../src/web/studio/messages/delivery-setting-draft.js";
import { draftToNotification, notificationToDraft } from "../../src/web/studio/messages/notification-draft.js";
import { sendRequestForEachRun } from "../../src/web/studio/runs/bulk-send.js";
import { findCodePositions } from "../../src/web/studio/runs/code-positions.js";
import { groupRunTimesByDay } from "../../src/web/studio/schedules/week-days.js";
import { describeAuditType, listAuditDetails } from "../../src/web/studio/shared/audit-text.js";
import { formatExactTime } from "../../src/web/studio/shared/format.js";
import { findValueFault, parseCellText } from "../../src/web/studio/shared/typed-value.js";

describe("entries of audit logs", () => {
  it("have a type in words", () => {
    const types = ["appAction.v3.update", "app.settings.update", "app.update", "dataSource.entries", "person.signIn"];
    expect(types.map(describeAuditType)).to.deep.equal([
      "Action changed",
      "Settings changed",
      "App changed",
      "Data source entries changed",
      "Person signed in",
    ]);
    expect(describeAuditType("some.newThing")).to.equal("Some new thing");
  });

  it("have a type in words that end with what was done, for each type of the reference", () => {
    const [, section] = buildEventsPage(process.cwd()).split("## Audit log");
    const types = [...section!.matchAll(/`(\w+(?:\.\w+)+)`/g)].map(([, type]) => type!);
    expect(types.length).to.be.above(60);
    const lastWords = /\b(\w+ed( in| out| back)?|reset|set up|for sign-ins)$/;
    expect(types.filter((type) => !lastWords.test(describeAuditType(type)))).to.deep.equal([]);
  });

  const describeAuditData = (data: unknown) =>
    listAuditDetails(data, (id) => (id === 7 ? "Ada" : null))
      .map(({ label, text }) => `${label} ${text}`)
      .join(" · ");

  it("have details in words, without JSON, empty texts and zero counts", () => {
    const change = { id: 5, inserted: 1, updated: 0, entries: [{ event: "create", id: 24 }], name: null };
    expect(describeAuditData(change)).to.equal("ID 5 · inserted 1 · entries event create, ID 24");
    expect(describeAuditData({ origins: [], bindings: [] })).to.equal("origins none · bindings none");
    expect(describeAuditData({ fileId: 7, isPublic: true, rules: { all: "read" } })).to.equal(
      "file #7 · public yes · rules all read",
    );
    expect(describeAuditData({ keys: Array.from({ length: 12 }, (_, at) => `k${at}`) })).to.match(/k9, 2 more$/);
    expect(describeAuditData(null)).to.equal("");
    expect(describeAuditData({ userId: 7, role: "editor" })).to.equal("person Ada · role editor");
    expect(describeAuditData({ userId: 8, ids: [1, 2], count: 2 })).to.equal("person #8 · IDs 1, 2");
    const expiresAt = "2027-02-24T12:06:13.703Z";
    expect(describeAuditData({ expiresAt })).to.equal(`expires at ${formatExactTime(expiresAt)}`);
    expect(describeAuditData({ name: "2027-02-24T12:06:13.703X" })).to.contain("703X");
  });
});

describe("the keys of the plain text for code", () => {
  /** Applies an edit to a text in which one "|" is the cursor, or two mark the selection. */
  function applyMarkedEdit(marked: string, edit: (code: string, start: number, end: number) => TextEdit): string {
    const [before = "", selected = "", after = ""] = marked.split("|");
    const hasSelection = marked.split("|").length === 3;
    const code = before + selected + (hasSelection ? after : "");
    const end = hasSelection ? before.length + selected.length : before.length;
    const { startOffset, endOffset: to, insertedText, selection } = edit(code, before.length, end);
    const result = code.slice(0, startOffset) + insertedText + code.slice(to);
    const [from, until] = [selection.start, selection.end];
    return from === until
      ? `${result.slice(0, from)}|${result.slice(from)}`
      : `${result.slice(0, from)}|${result.slice(from, until)}|${result.slice(until)}`;
  }

  it("indent at the cursor or the selected lines, and remove indentation from them", () => {
    expect(applyMarkedEdit("a|b", indentLines)).to.equal("a  |b");
    expect(applyMarkedEdit("a\nb|c\n\nd\n|e", indentLines)).to.equal("a\n|  bc\n\n  d|\ne");
    expect(applyMarkedEdit("    a|b", removeIndentation)).to.equal("  a|b");
    expect(applyMarkedEdit(" |a", removeIndentation)).to.equal("|a");
    expect(applyMarkedEdit("\ta\n|   b\nc|", removeIndentation)).to.equal("\ta\n| b\nc|");
  });

  it("start a line with the indentation of the current one, one step more after an opening bracket", () => {
    expect(applyMarkedEdit("  a|b", insertLineBreak)).to.equal("  a\n  |b");
    expect(applyMarkedEdit("  f(|x", insertLineBreak)).to.equal("  f(\n    |x");
    expect(applyMarkedEdit("  {|}", insertLineBreak)).to.equal("  {\n    |\n  }");
    expect(applyMarkedEdit("a|bc|d", insertLineBreak)).to.equal("a\n|d");
    expect(applyMarkedEdit("|", insertLineBreak)).to.equal("\n|");
  });
});

describe("a notification that Studio saves", () => {
  const stored = {
    ...{ id: 1, status: "scheduled" as const, scope: null, publishedAt: null, updatedAt: "2027-02-24T12:00:00.000Z" },
    data: { title: "Sale", message: "Today", color: "red" },
    orderAt: "2027-02-24T12:06:13.703Z",
    pushNotification: {
      payload: { title: "Sale", body: "Only today!", badge: 1 },
      delayUntilTimestamp: 1_800_000_000_000,
    },
  };

  it("keeps what the form does not show: the seconds, and the other parts of the push message", () => {
    const draft = { ...notificationToDraft(stored), title: "Big sale" };
    expect(draftToNotification(draft, stored)).to.deep.equal({
      status: "scheduled",
      extendData: { title: "Big sale", message: "Today", navigate: null },
      pushNotification: {
        payload: { title: "Big sale", body: "Only today!", badge: 1 },
        delayUntilTimestamp: 1_800_000_000_000,
      },
    });
  });

  it("has the recipients, the time and the push message that the person has changed", () => {
    const draft = { ...notificationToDraft(stored), scope: "[7]", publication: "draft" as const, sendsPush: false };
    const { scope, orderAt, pushNotification } = draftToNotification(draft, stored);
    expect([scope, orderAt, pushNotification]).to.deep.equal([[7], null, null]);
    const created = draftToNotification({ ...notificationToDraft(null), title: "New", sendsPush: true }, null);
    expect(created).to.deep.equal({
      ...{ status: "draft", extendData: { title: "New", message: "", navigate: null }, scope: null, orderAt: null },
      pushNotification: { payload: { title: "New", body: "" } },
    });
  });
});

describe("the text of a cell", () => {
  it("becomes the value that it is in JSON, unless this is a number that would lose digits", () => {
    const texts = ["31", "-1.5", "true", '{"a": 1}', "Ada", "12345678901234567890", "-12345678901234567890", "1e999"];
    expect(texts.map((text) => parseCellText(text, null))).to.deep.equal([
      ...[31, -1.5, true, { a: 1 }, "Ada", "12345678901234567890", "-12345678901234567890", "1e999"],
    ]);
    expect(parseCellText("31", "text")).to.equal("31");
  });
});

describe("the positions in a stack trace", () => {
  it("are those in the action's code, not in other files whose name or address ends with the action's name", () => {
    const stack = [
      "Error: no seat",
      "    at load (my-hello.js:1:2)",
      "    at load (my.hello.js:3:4)",
      "    at load (https://cdn.example/lib/hello.js:5:6)",
      "    at execute (hello.js:7:8)",
      "    at async hello.js:9:10",
    ].join("\n");
    const positions = findCodePositions(stack, "hello").map(({ text, line, column }) => [text, line, column]);
    expect(positions).to.deep.equal([
      ["hello.js:7:8", 7, 8],
      ["hello.js:9:10", 9, 10],
    ]);
    expect(findCodePositions(stack, "my-hello").map(({ index }) => stack.slice(index, index + 11))).to.deep.equal([
      "my-hello.js",
    ]);
    expect(findCodePositions(stack, undefined)).to.deep.equal([]);
  });
});

describe("colored code", () => {
  const colored = (code: string) =>
    highlightCode(code)
      .filter(({ kind }) => kind !== "plain")
      .map(({ kind, text }) => `${kind} ${text}`);

  it("has comments, strings, numbers, keywords and types", () => {
    expect(colored("/** a */ async function f1() { return new Map([['a', 1.5]]); } // end\n")).to.deep.equal([
      ...["comment /** a */", "keyword async", "keyword function", "keyword return", "keyword new", "type Map"],
      ...["string 'a'", "number 1.5", "comment // end"],
    ]);
  });

  it("distinguishes regular expressions from divisions; strings end at the closing quote or the line end", () => {
    expect(colored("a = b / c / d; e(/[/'] x/g)")).to.deep.equal(["string /[/'] x/"]);
    expect(colored('"a\\"b" + "open\nconst `two\nlines`')).to.deep.equal([
      ...['string "a\\"b"', 'string "open', "keyword const", "string `two\nlines`"],
    ]);
  });

  it("is the same text, whatever it is", () => {
    for (const code of ["", "/", "/*", "//", "'", "`${a", "\\", "é = ü\r\n", "1..a", "/[", "a /b/ c\n", "\ud800"]) {
      expect(
        highlightCode(code)
          .map(({ text }) => text)
          .join(""),
      ).to.equal(code);
    }
  });
});

describe("values of Studio's forms", () => {
  it("finds two rows that would become one field", () => {
    expect(findDuplicateKey(["Password", "Email", "Password"])).to.equal("Password");
    expect(findDuplicateKey(["Password", "", ""])).to.equal("");
    expect(findDuplicateKey(["Password", "password", ""])).to.equal(null);
  });

  it("shows a list of hooks as a form only if the form can show all of it", () => {
    const runOn = ["insert"];
    const shown = [
      { type: "operations", runOn, fields: { Password: ["hash"] } },
      { type: "email", runOn, to: [{ email: "{{Email}}" }] },
      { type: "sms", runOn, to: "{{Phone}}" },
    ];
    expect(canEditHooksInForm(shown)).to.equal(true);
    const others = [
      null,
      { type: "sms" },
      { type: "operations", runOn, fields: null },
      { type: "operations", runOn, fields: { Password: "hash" } },
      { type: "email", runOn, to: [null] },
      { type: "email", runOn, to: [] },
    ];
    for (const hook of others) expect(canEditHooksInForm([hook]), JSON.stringify(hook)).to.equal(false);
  });

  it("stores a condition's value with the type that is chosen for it, and no text as a number", () => {
    for (const stored of ["0", "true", "", 0, 1.5, -3, 2 ** 60, 1e21, true, false]) {
      const [row] = conditionsToRows({ Level: { equals: stored } });
      expect(findValueFault([row!])).to.equal(null);
      expect(rowsToConditions([row!])).to.deep.equal({ Level: { equals: stored } });
    }
    const notNumbers = ["", " ", "editor", "Infinity", "1,5"].map((value) => [value, "a number"]);
    for (const [value, expected] of [
      ...notNumbers,
      ["1e999", "at most 1.79e308"],
      ["-1e999", "at least -1.79e308"],
      ["9007199254740993", "a number that can be stored exactly, such as 9007199254740992"],
      ["12345678901234567890", "a number that can be stored exactly, such as 12345678901234567000"],
    ] as [string, string][]) {
      const typed = { typedText: value, kind: "number" } as const;
      expect(findValueFault([{ typedText: "3", kind: "number" }, typed])).to.equal(
        `Value 2 must be ${expected} (got "${value}"). Your change is not saved until you correct it.`,
      );
      expect(findValueFault([{ typedText: value, kind: "string" }])).to.equal(null);
    }
  });

  it("shows a list of rules as a form only if each value is a text, a number or a boolean", () => {
    const rules = (value: unknown) => [{ type: ["select"], allow: { user: { Level: { equals: value } } } }];
    for (const value of ["", 0, false]) expect(isEditableRuleList(rules(value)), String(value)).to.equal(true);
    for (const value of [null, [1], { a: 1 }]) expect(isEditableRuleList(rules(value)), String(value)).to.equal(false);
  });

  it("checks and saves only fields of the chosen provider", () => {
    const draft = { url: "hook", port: "x", sid: " AC1 ", token: " t ", from: "+15550100" };
    expect(validateDeliverySettingDraft("sms", "twilio", draft)).to.deep.equal({});
    expect(createDeliverySetting("sms", "twilio", draft)).to.deep.equal({
      provider: "twilio",
      sid: "AC1",
      token: " t ",
      from: "+15550100",
    });
    expect(validateDeliverySettingDraft("sms", "webhook", draft)).to.deep.equal({
      url: 'URL must begin with https://, or in development with http:// (got "hook").',
      secret: "Secret is required.",
    });
  });

  it("saves an e-mail server without a sender, with its TLS and with the spaces of its password", () => {
    const draft = { host: " mail.example.com ", port: "2525", secure: "false", password: " p ", secret: " s " };
    expect(validateDeliverySettingDraft("email", "smtp", draft)).to.deep.equal({});
    const saved = { host: "mail.example.com", port: 2525, secure: false, password: " p ", secret: " s " };
    expect(createDeliverySetting("email", "smtp", draft)).to.deep.equal(saved);
    expect(createDeliverySetting("email", "smtp", { host: "a", secure: "true" })).to.deep.equal({
      host: "a",
      secure: true,
    });
    expect(createDeliverySetting("email", "smtp", { host: "a", secure: "" })).to.deep.equal({ host: "a" });
    for (const port of ["0", "65536", "1.5", "x"])
      expect(validateDeliverySettingDraft("email", "smtp", { host: "a", port })).to.deep.equal({
        port: `Port must be a number from 1 to 65535 (got "${port}").`,
      });
  });

  it("lists each tick of the week on the day of its own zone, in any zone of the viewer", () => {
    const zones = ["Pacific/Pago_Pago", "America/New_York", "UTC", "Asia/Tokyo", "Pacific/Kiritimati"];
    const start = Date.UTC(2026, 2, 28, 6, 30);
    const ticks = Array.from({ length: 7 * 24 }, (_, hour) => new Date(start + hour * 3_600_000).toISOString());
    const scheduled = zones.map((timezone) => ({ timezone, ticks }));
    for (const here of zones) {
      const days = groupRunTimesByDay({ from: ticks[0]!, scheduled }, here);
      for (const schedule of scheduled) {
        const shown = days.flatMap(({ actionTimes }) =>
          actionTimes.flatMap(({ action, runTimes }) => (action === schedule ? runTimes : [])),
        );
        expect(shown, `${schedule.timezone} in ${here}`).to.deep.equal(ticks);
      }
    }
    expect(
      groupRunTimesByDay({ from: ticks[0]!, scheduled: [] }, "UTC")
        .map(({ label }) => label)
        .slice(0, 2),
    ).to.deep.equal(["Today", "Tomorrow"]);
  });

  describe("requests for several runs", () => {
    interface Refusal {
      status: string;
      message: string;
      details: { retryAfter?: number };
    }
    const ended: Refusal = { status: "RUN_NOT_CANCELLABLE", message: "the run has ended already", details: {} };
    const limited: Refusal = { status: "RATE_LIMIT_EXCEEDED", message: "too many", details: { retryAfter: 7 } };
    const denied: Refusal = { status: "FORBIDDEN", message: "not allowed", details: {} };

    /** Cancels the runs 1, 2 and 3. @param refusals errors, by run ID, of the first requests for each run; later requests succeed */
    async function cancelRuns(refusals: Record<number, Refusal[]>) {
      const sentRunIds: number[] = [];
      const waits: number[] = [];
      const summary = await sendRequestForEachRun([1, 2, 3], {
        pastParticiple: "cancelled",
        async sendRequest(id) {
          sentRunIds.push(id);
          const refusal = refusals[id]?.shift();
          if (refusal) throw refusal;
        },
        toRequestFailure: (error) => error as Refusal,
        waitSeconds: async (seconds) => waits.push(seconds),
        reportProgress: () => {},
      });
      return { summary, sentRunIds, waits };
    }

    it("count runs that have ended in the meantime and continue", async () => {
      const { summary, sentRunIds } = await cancelRuns({ 1: [ended], 2: [ended] });
      expect(summary).to.equal("1 run cancelled, 2 runs ended already.");
      expect(sentRunIds).to.deep.equal([1, 2, 3]);
    });

    it("wait as long as the rate limit requires, and give up after three requests", async () => {
      const { summary, sentRunIds, waits } = await cancelRuns({ 1: [limited], 2: [limited, limited, limited] });
      expect(summary).to.equal("1 run cancelled, then: too many");
      expect(sentRunIds).to.deep.equal([1, 1, 2, 2, 2]);
      expect(waits).to.deep.equal([7, 7, 7]);
    });

    it("stop at any other error", async () => {
      const { summary, sentRunIds } = await cancelRuns({ 2: [denied] });
      expect(summary).to.equal("1 run cancelled, then: not allowed");
      expect(sentRunIds).to.deep.equal([1, 2]);
    });
  });
});
