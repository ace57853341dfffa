/**
 * Measures the parsers that read untrusted text on the main thread. If a text repeats one fragment, twice as many repetitions may take at
 * most two and a half times as long.
 */
import { Readable } from "node:stream";
import { expect } from "chai";
import { parseJsonInSteps } from "../../src/api/json-in-steps.js";
import { HARNESS_SOURCE_NAME, removeHarnessFrames } from "../../src/engine/browser/pages/answer.js";
import { detectContentType } from "../../src/engine/content-type.js";
import { toDeliveryDetail } from "../../src/engine/smtp/outcome.js";
import { type ImportFormat, parseImportRows } from "../../src/operations/data-sources/row-streams.js";
import { getAddressBlock } from "../../src/rules/address-block.js";
import { fillConditionPlaceholders } from "../../src/rules/caller-rules.js";
import { parseScript } from "../../src/rules/code-parser.js";
import { foldCase } from "../../src/rules/comparable-text.js";
import { parseCron } from "../../src/rules/cron-grammar.js";
import { DELIMITER_SAMPLE_MAX_CHARACTERS, detectDelimiter } from "../../src/rules/csv.js";
import { parseEntryData, validateAndSerializeEntry } from "../../src/rules/entries/entry-input.js";
import { checkHookPlaceholders } from "../../src/rules/entries/sending-hooks.js";
import { translateRegExpToPostgres } from "../../src/rules/entry-query/regular-expression.js";
import { SqlStatement } from "../../src/rules/entry-query/statement.js";
import { compileWhere } from "../../src/rules/entry-query/where.js";
import { toScriptLiteral } from "../../src/rules/env-script.js";
import { findJsonFault, readJsonFieldTexts } from "../../src/rules/json-scan.js";
import { parseMediaName, toValidUploadName } from "../../src/rules/media-fields.js";
import {
  containsEntityTag,
  createContentDisposition,
  getMediaResponseHeaders,
  parseRangeHeader,
} from "../../src/rules/media-serving.js";
import { parseMailSender } from "../../src/rules/message-destination.js";
import {
  isEmailAddress,
  parseEmailHeaders,
  parseEmailRecipients,
  requireSingleLineText,
} from "../../src/rules/message-fields.js";
import { fillMessageTemplate, listPlaceholderNames } from "../../src/rules/message-template.js";
import { isPackageName } from "../../src/rules/packages.js";
import { matchesIfNoneMatch, parseIfMatch } from "../../src/rules/precondition.js";
import { findSecretsInSettingValue } from "../../src/rules/secrets.js";
import { escapeSettingKey, unescapeSettingKey } from "../../src/rules/setting-key-text.js";
import { createAiArtifactSettingKey } from "../../src/rules/setting-tiers.js";

type Parser = (text: string) => unknown;

async function parseRows(text: string, format: ImportFormat): Promise<void> {
  const packets = Array.from({ length: Math.ceil(text.length / 4_096) }, (_, at) =>
    text.slice(at * 4_096, (at + 1) * 4_096),
  );
  for await (const _ of parseImportRows(Readable.from(packets.map((packet) => Buffer.from(packet))), format));
}

const source = { documentSql: "doc", entryAlias: "e", canSeeColumn: () => true };

const PARSERS: Record<string, Parser> = {
  "CSV files": (text) => parseRows(text, "csv"),
  "CSV headers": (text) => parseRows(`${text}\n1\n`, "csv"),
  "JSON files": (text) => parseRows(`[${JSON.stringify({ text })}]`, "json"),
  "JSON files as they are": (text) => parseRows(text, "json"),
  "files of JSON lines": (text) => parseRows(text, "jsonl"),
  "delimiters of CSV": (text) => detectDelimiter(text.slice(0, DELIMITER_SAMPLE_MAX_CHARACTERS), true),
  "large JSON bodies": (text) => parseJsonInSteps(Buffer.from(`{"a":[${text}]}`), async (step) => step()),
  "JSON texts": (text) => findJsonFault(text, 500),
  "members of JSON texts": (text) => readJsonFieldTexts(`{"a":${JSON.stringify(text)},"b":1}`),
  entries: (text) =>
    validateAndSerializeEntry(parseEntryData({ text, [text.slice(0, 200)]: 1 }, "the entry"), "the entry"),
  "types of uploads": (text) => detectContentType(Buffer.from(text)),
  "names of uploads": (text) => toValidUploadName(text),
  "names of media": (text) => parseMediaName(text),
  ranges: (text) => parseRangeHeader(`bytes=${text}`, 1_000),
  "entity tags": (text) => [containsEntityTag(text, '"a"'), matchesIfNoneMatch(text, '"a"'), parseIfMatch(text)],
  "content types": (text) => [getMediaResponseHeaders(text, true), createContentDisposition("inline", text)],
  "addresses of senders": (text) => parseMailSender(text),
  "addresses of e-mail": (text) => [isEmailAddress(text), parseEmailRecipients([{ email: text }], "to")],
  "headers of e-mail": (text) => parseEmailHeaders({ [text.slice(0, 1_000)]: text, "x-a": text }, "headers"),
  "lines of messages": (text) => requireSingleLineText(text, "subject", 1e9),
  "answers of mail servers": (text) => toDeliveryDetail(text),
  "placeholders of messages": (text) => [
    listPlaceholderNames(text),
    fillMessageTemplate(text, { a: "b" }, "text", { html: true }),
  ],
  "placeholders of hooks": (text) => checkHookPlaceholders([{ type: "sms", to: text }] as never, ["a"]),
  "placeholders of rules": (text) => fillConditionPlaceholders({ a: { equals: text } }, { Email: "a" }),
  "expressions of frequency": (text) => parseCron(text),
  "regular expressions of queries": (text) => translateRegExpToPostgres(text, "i", "where"),
  queries: (text) => compileWhere({ [text.slice(0, 500)]: { $iLike: text } }, source, new SqlStatement()),
  code: (text) => parseScript(text.slice(0, 20_000)),
  "script literals": (text) => toScriptLiteral(text),
  stacks: (text) => removeHarnessFrames(`${text}${HARNESS_SOURCE_NAME}:1:1\n${text}`),
  "network addresses": (text) => getAddressBlock(text),
  "names of packages": (text) => isPackageName(text),
  "values of settings": (text) => findSecretsInSettingValue("__a", text),
  // A key has at most 512 characters.
  "keys of settings": (text) =>
    [text.slice(0, 512)].map((key) => [
      escapeSettingKey(key),
      unescapeSettingKey(key),
      createAiArtifactSettingKey(key),
    ]),
  "texts without case": (text) => foldCase(text),
};

const FRAGMENTS = [
  ...["a", " ", "\t", "\n", "\r\n", "\r", ",", ";", "|", '"', '""', '",', '"a",', '"\n', "a,b\n", "'", "\\", '\\"'],
  ...[
    "0",
    "1,",
    "1e9,",
    "-",
    ".",
    "a.",
    "/",
    "%41",
    "=",
    "*",
    "*/2 ",
    "+",
    "@",
    "a@",
    "a@b.c,",
    "<a>",
    "<",
    "<!---->",
    "<?xml?>",
  ],
  ...[
    "(",
    "(a",
    "(a|",
    "a)?",
    "[",
    "[]",
    "[a",
    "{",
    "{}",
    "{}\n",
    '{"a":',
    "{{",
    "{{a",
    "{{a}}",
    "}}",
    "{{user.",
    "{{ user.a }}",
    "${",
  ],
  ...[
    "    at f (a.js:1:1)\n",
    `    at f (${HARNESS_SOURCE_NAME}:1:1)\n`,
    `${HARNESS_SOURCE_NAME}:`,
    "\n    at ",
    "-----BEGIN A-----\n",
    "https://a:b@c ",
  ],
  ...["ς", "İ", "😀", "\ud83d", "\u2028", "\u202e", "\0", "é"],
];

const LONGEST_TEXT_CHARACTERS = 256 * 1_024;
/** The longest text has 32 times the length of a piece: five doublings. For comparison, the test also parses a piece 32 times. */
const PIECE_COUNT = 32;
const GROWTH_PER_DOUBLING_MAX = 2.5;
/** Maximum ratio of the time for the whole text to the total time for the pieces. A linear parser takes the same time for both. */
const GROWTH_MAX = (GROWTH_PER_DOUBLING_MAX / 2) ** Math.log2(PIECE_COUNT);
const ROUNDS = 2;
/** Processor time in milliseconds below which a comparison is too imprecise. */
const MEASURED_MIN_MS = 30;
/** Maximum processor time of one piece in milliseconds. If a piece takes longer, the test fails without parsing the whole text. */
const PIECE_MAX_MS = 1_000;

/** Measures the processor time of this thread, so that other work does not count. Returns the shorter of two rounds. */
async function timeOf(parse: Parser, text: string, times: number): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    const before = process.threadCpuUsage();
    for (let time = 0; time < times; time += 1) {
      try {
        await parse(text);
      } catch {
        // An error is also a result of the parser.
      }
    }
    const { user, system } = process.threadCpuUsage(before);
    best = Math.min(best, (user + system) / 1_000);
  }
  return best;
}

/** Returns a description if one piece takes too long, or if the time grows too fast with the length. Otherwise returns null. */
async function findGrowthFault(parse: Parser, fragment: string): Promise<string | null> {
  const textOf = (length: number) => fragment.repeat(Math.ceil(length / fragment.length));
  for (const length of [512, LONGEST_TEXT_CHARACTERS / PIECE_COUNT]) {
    const elapsedMs = await timeOf(parse, textOf(length), 1);
    if (elapsedMs > PIECE_MAX_MS)
      return `${JSON.stringify(fragment)}: ${elapsedMs.toFixed(0)} ms for ${length} characters`;
  }
  const whole = await timeOf(parse, textOf(LONGEST_TEXT_CHARACTERS), 1);
  if (whole <= MEASURED_MIN_MS) return null;
  const pieces = await timeOf(parse, textOf(LONGEST_TEXT_CHARACTERS / PIECE_COUNT), PIECE_COUNT);
  if (whole <= GROWTH_MAX * Math.max(pieces, MEASURED_MIN_MS)) return null;
  return `${JSON.stringify(fragment)}: ${whole.toFixed(0)} ms at once, ${pieces.toFixed(0)} ms in ${PIECE_COUNT} pieces`;
}

describe("parsers of text from outside", () => {
  for (const [title, parse] of Object.entries(PARSERS)) {
    it(`take at most two and a half times as long for twice the text: ${title}`, async () => {
      const faults: string[] = [];
      for (const fragment of FRAGMENTS) {
        const fault = await findGrowthFault(parse, fragment);
        if (fault) faults.push(fault);
      }
      expect(faults).to.deep.equal([]);
    });
  }
});
