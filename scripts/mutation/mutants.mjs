/** Creates small faults of a module, such as a changed operator or value, or a removed condition in code or SQL. */
import { parse } from "acorn";
import { full } from "acorn-walk";

const REPLACED_OPERATORS = {
  "===": "!==",
  "!==": "===",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "+": "-",
  "-": "+",
  "&&": "||",
  "||": "&&",
  "??": "&&",
};
const SQL_PATTERN = /\b(?:SELECT|UPDATE|INSERT|DELETE)\b/;
const SQL_CONDITION_PATTERN = / AND [\w.]+ (?:=|<|>|<=|>=|IS NOT DISTINCT FROM|IS) (?:NULL|\$\d+|'\w+'|[\w.]+)/g;

export function createMutants(source) {
  const mutants = [];
  const add = (start, end, text) => mutants.push({ start, end, text, from: source.slice(start, end) });
  const visit = {
    BinaryExpression: addOperatorMutant,
    LogicalExpression: addOperatorMutant,
    UnaryExpression: ({ operator: sign, start }) => sign === "!" && add(start, start + 1, ""),
    IfStatement: ({ test }) => add(test.start, test.end, "false"),
    ConditionalExpression: ({ test }) => add(test.start, test.end, "false"),
    Literal({ value, start, end }) {
      if (typeof value === "boolean") add(start, end, String(!value));
      if (typeof value === "number") add(start, end, String(value + 1));
      if (typeof value === "string") addSqlMutants(source.slice(start, end), start);
    },
    TemplateLiteral: ({ start, end }) => addSqlMutants(source.slice(start, end), start),
  };
  function addOperatorMutant({ operator: sign, left, right }) {
    const at = source.indexOf(sign, left.end);
    if (REPLACED_OPERATORS[sign] && at < right.start) add(at, at + sign.length, REPLACED_OPERATORS[sign]);
  }
  function addSqlMutants(text, start) {
    if (!SQL_PATTERN.test(text)) return;
    for (const match of text.matchAll(SQL_CONDITION_PATTERN))
      add(start + match.index, start + match.index + match[0].length, "");
  }
  full(parse(source, { ecmaVersion: "latest", sourceType: "module" }), (node) => visit[node.type]?.(node));
  return mutants;
}
