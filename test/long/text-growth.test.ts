/** Measures functions that read untrusted text on the main thread: for any content, four times the text takes about four times as long. */
import { expect } from "chai";
import { HARNESS_SOURCE_NAME, parsePageAnswer, removeHarnessFrames } from "../../src/engine/browser/pages/answer.js";
import { isDeclarationFile } from "../../src/engine/bundler/declarations.js";
import { findGlobalNameInReadme } from "../../src/engine/bundler/global-name.js";
import { detectContentType } from "../../src/engine/content-type.js";
import { SecretScan } from "../../src/engine/secret-scan/scan.js";
import { fillConditionPlaceholders } from "../../src/rules/caller-rules.js";
import { parseMailSender } from "../../src/rules/message-destination.js";
import { isEmailAddress } from "../../src/rules/message-fields.js";

const LENGTH_RATIO = 4;
/** Maximum factor of the processor time if the text is four times as long. The factor of a linear function is 4, of a quadratic one 16. */
const RATIO_MAX = 6.25;
/** Minimum time of a measurement in milliseconds. A shorter measurement is too imprecise. */
const TIME_MIN_MS = 10;
const CHARACTERS_MAX = 2 ** 19;
const ROUNDS = 7;

const scan = new SecretScan([{ name: "_key", value: "abcdefgh1", mustMatchWhole: false }]);
const stackOf = (text: string) => `error ${JSON.stringify({ name: "E", message: "m", stack: text, cause: "script" })}`;

const READERS: Record<string, (text: string) => unknown> = {
  detectContentType: (text) => detectContentType(Buffer.from(text)),
  removeHarnessFrames: (text) => removeHarnessFrames(`${text}\n    at ${HARNESS_SOURCE_NAME}:1:1`),
  parsePageAnswer: (text) => parsePageAnswer(stackOf(text)),
  parseMailSender,
  isEmailAddress,
  isDeclarationFile,
  findGlobalNameInReadme: (text) => findGlobalNameInReadme(text, "some-package"),
  fillConditionPlaceholders: (text) => fillConditionPlaceholders({ a: { equals: text } }, { Email: "x" }),
  findInJson: (text) => scan.findInJson(JSON.stringify({ a: text, abcdefgh1: 1 })),
};
/** Texts that could be ambiguous for a regular expression. */
const PARTS = [
  ..." \n\t\"'<>{}()[]@.,:;=/\\%-_a0",
  ...'<!-- --> <!---->  <?xml?>  {{user. {{user.[ \nssat  a@  \\" \\u00 {} = imports{ require(" constsxs=s'.split(" "),
  `\n    at ${HARNESS_SOURCE_NAME}:1`,
  "\n    at eval (a:1:1)",
  '"abcdefgh1":',
];

/**
 * Repeats `part`, then adds another character, so that a search for the end fails. The conversion to a buffer makes V8 join the parts
 * before the measurement.
 */
const textOf = (part: string, characters: number) =>
  Buffer.from(`${part.repeat(Math.ceil(characters / part.length))}!`).toString();

async function timeOf(read: (text: string) => unknown, text: string): Promise<number> {
  const startedAt = process.threadCpuUsage();
  await read(text);
  const { user, system } = process.threadCpuUsage(startedAt);
  return (user + system) / 1_000;
}

/** Returns the shortest processor time of several rounds, because other load only adds time. */
async function measureShortestTime(read: (text: string) => unknown, text: string): Promise<number> {
  let best = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) best = Math.min(best, await timeOf(read, text));
  return best;
}

describe("functions that read text from outside", function () {
  this.timeout(0);
  for (const [name, read] of Object.entries(READERS)) {
    it(`take at most ${RATIO_MAX} times as long for ${LENGTH_RATIO} times the text: ${name}`, async () => {
      for (const part of PARTS.filter((candidate) => candidate !== "")) {
        let characters = 2 ** 10;
        while (characters < CHARACTERS_MAX && (await timeOf(read, textOf(part, characters))) < TIME_MIN_MS)
          characters *= 2;
        if (characters === CHARACTERS_MAX) continue;
        const once = await measureShortestTime(read, textOf(part, characters));
        const more = await measureShortestTime(read, textOf(part, LENGTH_RATIO * characters));
        expect(more / Math.max(once, TIME_MIN_MS / 2), `${JSON.stringify(part)} × ${characters}`).to.be.below(
          RATIO_MAX,
        );
      }
    });
  }
});
