/**
 * Evaluates the part of PromQL that the rules of `deploy/` use, over scraped samples. Uses Prometheus' own grammar, so that invalid
 * expressions fail here. Throws for features that it does not support.
 */
import type { SyntaxNode } from "@lezer/common";
import { parser } from "@prometheus-io/lezer-promql";

type Labels = Readonly<Record<string, string>>;

export interface Sample {
  name: string;
  labels: Labels;
  value: number;
}

interface Value {
  labels: Labels;
  value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;

/** Parses samples in Prometheus' text format. */
export function samplesIn(text: string): Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => {
      const [, name, labels = "", value] = LINE.exec(line)!;
      const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key, value]) => [key!, value!]);
      return { name: name!, labels: Object.fromEntries(pairs), value: Number(value) };
    });
}

/** Parses a PromQL expression. @throws Error that names the first position that is not PromQL */
export function parseExpression(text: string): SyntaxNode {
  const tree = parser.parse(text);
  tree.iterate({
    enter(node) {
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${text}`);
    },
  });
  return tree.topNode.firstChild!;
}

export function metricsIn(text: string): string[] {
  const names: string[] = [];
  parser.parse(text).iterate({
    enter({ name, from, to, node }) {
      if (name === "Identifier" && node.parent?.name === "VectorSelector") names.push(text.slice(from, to));
    },
  });
  return names;
}

const LABEL_MATCHERS: Record<string, (value: string, expected: string) => boolean> = {
  EqlSingle: (value, expected) => value === expected,
  EqlRegex: (value, pattern) => new RegExp(`^(?:${pattern})$`).test(value),
};

const COMPARISONS: Record<string, (a: number, b: number) => boolean> = {
  Gtr: (a, b) => a > b,
  Lss: (a, b) => a < b,
  Eql: (a, b) => a === b,
};

const AGGREGATIONS: Record<string, (values: number[]) => number> = {
  Sum: (values) => values.reduce((sum, value) => sum + value, 0),
  Max: (values) => Math.max(...values),
  Min: (values) => Math.min(...values),
};

const children = (node: SyntaxNode): SyntaxNode[] => {
  const all: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) all.push(child);
  return all;
};

/** Evaluates an expression at the time of the scrape `after`. Every range in it begins at the scrape `before`. */
export function evaluate(text: string, before: readonly Sample[], after: readonly Sample[]): Value[] {
  const read = ({ from, to }: SyntaxNode) => text.slice(from, to);
  const unquoted = (node: SyntaxNode) => JSON.parse(read(node)) as string;

  function select(node: SyntaxNode, samples: readonly Sample[]): Value[] {
    const name = read(node.getChild("Identifier")!);
    const matchers = node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
    const wanted = matchers.map((matcher) => {
      const [label, operator, value] = children(matcher) as [SyntaxNode, SyntaxNode, SyntaxNode];
      const matches = LABEL_MATCHERS[operator.firstChild!.name];
      if (!matches) throw new Error(`matcher is not supported (got ${read(matcher)})`);
      return { label: read(label), value: unquoted(value), matches };
    });
    return samples.filter(
      (sample) => sample.name === name && wanted.every((w) => w.matches(sample.labels[w.label] ?? "", w.value)),
    );
  }

  function increase(node: SyntaxNode): Value[] {
    const vector = node.getChild("FunctionCallBody")!.getChild("MatrixSelector")!.getChild("VectorSelector")!;
    const first = select(vector, before);
    const isSame = (a: Labels, b: Labels) =>
      JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
    return select(vector, after).flatMap(({ labels, value }) => {
      const start = first.find((sample) => isSame(sample.labels, labels));
      return start ? [{ labels, value: value - start.value }] : [];
    });
  }

  function absent(node: SyntaxNode): Value[] {
    return evaluateNode(node.getChild("FunctionCallBody")!.firstChild!).length > 0 ? [] : [{ labels: {}, value: 1 }];
  }

  function aggregate(node: SyntaxNode): Value[] {
    const operator = node.getChild("AggregateOp")!.firstChild!.name;
    const combine = AGGREGATIONS[operator];
    if (!combine) throw new Error(`aggregation is not supported (got ${operator})`);
    const by = (node.getChild("AggregateModifier")?.getChild("GroupingLabels")?.getChildren("LabelName") ?? []).map(
      read,
    );
    const values = evaluateNode(node.getChild("FunctionCallBody")!.firstChild!);
    const keyOf = ({ labels }: Value) => JSON.stringify(by.map((label) => [label, labels[label] ?? ""]));
    return [...Map.groupBy(values, keyOf)].map(([key, group]) => ({
      labels: Object.fromEntries(JSON.parse(key) as [string, string][]),
      value: combine(group.map(({ value }) => value)),
    }));
  }

  function binary(node: SyntaxNode): Value[] {
    const [left, operator, right] = children(node) as [SyntaxNode, SyntaxNode, SyntaxNode];
    const a = evaluateNode(left);
    const b = evaluateNode(right);
    const partner = ({ labels }: Value) =>
      right.name === "NumberDurationLiteral"
        ? b[0]
        : b.find((value) => JSON.stringify(value.labels) === JSON.stringify(labels));
    return a.flatMap((value) => {
      const other = partner(value);
      if (!other) return [];
      if (operator.name === "Div") return [{ ...value, value: value.value / other.value }];
      const compare = COMPARISONS[operator.name];
      if (!compare) throw new Error(`operator is not supported (got ${operator.name})`);
      return compare(value.value, other.value) ? [value] : [];
    });
  }

  function evaluateNode(node: SyntaxNode): Value[] {
    switch (node.name) {
      case "BinaryExpr":
        return binary(node);
      case "AggregateExpr":
        return aggregate(node);
      case "FunctionCall":
        if (read(node.firstChild!) === "absent") return absent(node);
        if (read(node.firstChild!) !== "increase") throw new Error(`function is not supported (got ${read(node)})`);
        return increase(node);
      case "VectorSelector":
        return select(node, after);
      case "NumberDurationLiteral":
        return [{ labels: {}, value: Number(read(node)) }];
      default:
        throw new Error(`expression is not supported (got ${node.name})`);
    }
  }

  return evaluateNode(parseExpression(text));
}
