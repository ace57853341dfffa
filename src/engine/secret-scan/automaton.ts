/**
 * Finds occurrences of many byte strings (patterns) in one linear pass (Aho and Corasick, 1975). Nodes of the trie are numbered in
 * depth-first order of the sorted patterns. So the first child of node `n` is `n + 1`.
 */
import { PATTERN_MIN_BYTES, PatternStartFinder } from "./pattern-starts.js";
import { ENTIRE_TEXT_SPANS, type Spans } from "./spans.js";

/** Bytes from index `start` up to, but not including, `end`. `pattern` is the index of the pattern. */
export interface PatternMatch {
  pattern: number;
  start: number;
  end: number;
}

/**
 * If the matched prefix of a pattern has at most this length, searching for the next start of a pattern is faster than following failure
 * links.
 */
const SHORT_MATCH_BYTES = 3;
/**
 * A cut text may end with the beginning of a pattern. If the text was cut within an escape, up to five bytes of the escape follow this
 * beginning. So the last byte of the beginning may be any of the last six bytes.
 */
const CUT_DISTANCE_MAX_BYTES = 6;

const HASH_FACTOR = 0x9e3779b1;

interface SortedPattern {
  pattern: Uint8Array;
  index: number;
  /** Length in bytes of the common prefix of this pattern and the previous pattern. */
  sharedBytes: number;
}

function sortPatterns(patterns: readonly Uint8Array[]): SortedPattern[] {
  const sorted = patterns.map((pattern, index) => ({ pattern, index, sharedBytes: 0 }));
  sorted.sort((a, b) => Buffer.compare(a.pattern, b.pattern) || a.index - b.index);
  for (let at = 1; at < sorted.length; at += 1) {
    const { pattern } = sorted[at]!;
    const before = sorted[at - 1]!.pattern;
    let sharedBytes = 0;
    while (sharedBytes < before.length && before[sharedBytes] === pattern[sharedBytes]) sharedBytes += 1;
    sorted[at]!.sharedBytes = sharedBytes;
  }
  return sorted;
}

export class Automaton {
  /** Label (byte) of the first child of each node; -1 if the node has no child. */
  private readonly firstChildLabel: Int16Array;
  private readonly failureLinks: Int32Array;
  private readonly depth: Int32Array;
  /** For each node, the node of the longest pattern that ends at this node; 0 if no pattern ends there. */
  private readonly patternNode: Int32Array;
  private readonly patternIndexByNode = new Map<number, number>();
  /** Keys of an open-addressing hash table with the children of nodes, except first children. A key is `node * 256 + label`. */
  private readonly otherChildKeys: Int32Array;
  /** Values of this hash table: the child nodes. */
  private readonly otherChildNodes: Int32Array;
  private readonly hasOtherChildren: Uint8Array;
  private readonly rootChildren = new Int32Array(256);
  private readonly startFinder: PatternStartFinder;
  readonly longestPatternBytes: number;
  /** Number of steps of all passes. Tests read it to check that passes take linear time. */
  stepCount = 0;

  /** @param patterns each has at least PATTERN_MIN_BYTES; if several are equal, only the first one is reported */
  constructor(patterns: readonly Uint8Array[]) {
    const sorted = sortPatterns(patterns);
    const nodeCount = sorted.reduce((sum, { pattern, sharedBytes }) => sum + pattern.length - sharedBytes, 1);
    this.firstChildLabel = new Int16Array(nodeCount).fill(-1);
    this.failureLinks = new Int32Array(nodeCount);
    this.depth = new Int32Array(nodeCount);
    this.patternNode = new Int32Array(nodeCount);
    this.hasOtherChildren = new Uint8Array(nodeCount);
    const slots = 2 ** Math.ceil(Math.log2(patterns.length * 2 + 2));
    this.otherChildKeys = new Int32Array(slots).fill(-1);
    this.otherChildNodes = new Int32Array(slots);
    const parents = new Int32Array(nodeCount);
    const labels = new Uint8Array(nodeCount);
    this.addNodes(sorted, parents, labels);
    const order = this.orderByDepth();
    this.computeFailureLinks(order, parents, labels);
    this.shortenFailureLinks(order);
    this.startFinder = new PatternStartFinder(patterns);
    this.longestPatternBytes = patterns.reduce((longest, { length }) => Math.max(longest, length), 0);
  }

  get bytes(): number {
    return this.firstChildLabel.length * 15 + this.startFinder.bytes;
  }

  private addNodes(sortedPatterns: readonly SortedPattern[], parents: Int32Array, labels: Uint8Array): void {
    const path = new Int32Array(
      sortedPatterns.reduce((longest, { pattern }) => Math.max(longest, pattern.length), 0) + 1,
    );
    let size = 1;
    for (const { pattern, index, sharedBytes } of sortedPatterns) {
      for (let at = sharedBytes; at < pattern.length; at += 1, size += 1) {
        const parent = path[at]!;
        const label = pattern[at]!;
        if (this.firstChildLabel[parent] === -1) this.firstChildLabel[parent] = label;
        else this.addOtherChild(parent, label, size);
        if (parent === 0) this.rootChildren[label] = size;
        parents[size] = parent;
        labels[size] = label;
        this.depth[size] = at + 1;
        path[at + 1] = size;
      }
      const endNode = path[pattern.length]!;
      if (!this.patternIndexByNode.has(endNode)) this.patternIndexByNode.set(endNode, index);
    }
  }

  private addOtherChild(node: number, label: number, child: number): void {
    this.hasOtherChildren[node] = 1;
    const key = node * 256 + label;
    const mask = this.otherChildKeys.length - 1;
    let slot = Math.imul(key, HASH_FACTOR) & mask;
    while (this.otherChildKeys[slot] !== -1) slot = (slot + 1) & mask;
    this.otherChildKeys[slot] = key;
    this.otherChildNodes[slot] = child;
  }

  private findOtherChild(node: number, label: number): number {
    const key = node * 256 + label;
    const mask = this.otherChildKeys.length - 1;
    for (let slot = Math.imul(key, HASH_FACTOR) & mask; this.otherChildKeys[slot] !== -1; slot = (slot + 1) & mask) {
      if (this.otherChildKeys[slot] === key) return this.otherChildNodes[slot]!;
    }
    return 0;
  }

  private computeFailureLinks(order: Int32Array, parents: Int32Array, labels: Uint8Array): void {
    for (const node of order) {
      const parent = parents[node]!;
      if (parent !== 0) this.failureLinks[node] = this.findNextNode(this.failureLinks[parent]!, labels[node]!);
      this.patternNode[node] = this.patternIndexByNode.has(node) ? node : this.patternNode[this.failureLinks[node]!]!;
    }
  }

  /**
   * Shortens failure links (Knuth and others, 1977). A search follows the link of a node only if the byte of the node's first child did not
   * match. If the link's target has only one child, with the same byte, this child cannot match either. So the link skips this target.
   */
  private shortenFailureLinks(order: Int32Array): void {
    const { firstChildLabel, hasOtherChildren, failureLinks } = this;
    for (const node of order) {
      const to = failureLinks[node]!;
      if (to !== 0 && hasOtherChildren[to] === 0 && firstChildLabel[to] === firstChildLabel[node])
        failureLinks[node] = failureLinks[to]!;
    }
  }

  private orderByDepth(): Int32Array {
    const size = this.depth.length;
    let deepest = 0;
    for (let node = 1; node < size; node += 1) deepest = Math.max(deepest, this.depth[node]!);
    const nextIndexByDepth = new Int32Array(deepest + 2);
    for (let node = 1; node < size; node += 1) nextIndexByDepth[this.depth[node]! + 1]! += 1;
    for (let depth = 1; depth < nextIndexByDepth.length; depth += 1)
      nextIndexByDepth[depth]! += nextIndexByDepth[depth - 1]!;
    const order = new Int32Array(size - 1);
    for (let node = 1; node < size; node += 1) {
      const index = nextIndexByDepth[this.depth[node]!]!;
      nextIndexByDepth[this.depth[node]!] = index + 1;
      order[index] = node;
    }
    return order;
  }

  /** Reads one byte after the node `from`. Returns the node of the longest beginning of a pattern with which the bytes now end. */
  private findNextNode(from: number, byte: number): number {
    const { firstChildLabel, hasOtherChildren, failureLinks } = this;
    for (let node = from; node !== 0; node = failureLinks[node]!) {
      if (firstChildLabel[node] === byte) return node + 1;
      const child = hasOtherChildren[node] === 1 ? this.findOtherChild(node, byte) : 0;
      if (child !== 0) return child;
      this.stepCount += 1;
    }
    return this.rootChildren[byte]!;
  }

  /**
   * Calls `onHit` with the longest pattern that ends at each index. Returns -1 as soon as `onHit` returns true. Otherwise returns the index
   * at which the search must continue: the start of a partial match, or the end.
   */
  private scanFrom(bytes: Uint8Array, from: number, onHit: (hit: PatternMatch) => boolean): number {
    const { firstChildLabel, patternNode, depth } = this;
    let node = 0;
    let at = from;
    for (; at < bytes.length; at += 1) {
      const byte = bytes[at]!;
      if (firstChildLabel[node] === byte) node += 1;
      else {
        const before = node;
        node = this.findNextNode(node, byte);
        // The matched prefix is short, and did not become longer. A search for the next start of a pattern is now faster.
        if (depth[node]! <= SHORT_MATCH_BYTES && depth[node]! <= depth[before]!) break;
      }
      const matchNode = patternNode[node]!;
      if (matchNode === 0) continue;
      if (onHit({ pattern: this.patternIndexByNode.get(matchNode)!, start: at + 1 - depth[matchNode]!, end: at + 1 }))
        return -1;
    }
    this.stepCount += Math.min(at + 1, bytes.length) - from;
    return at < bytes.length ? at + 1 - depth[node]! : bytes.length;
  }

  /**
   * Calls `onHit` for each occurrence, in the order of their ends, until `onHit` returns true. Of several with the same end, reports the
   * longest.
   * @param words the same bytes as complete 32-bit words
   * @param spans ranges to search; occurrences outside of them may be skipped
   */
  scan(
    bytes: Uint8Array,
    words: Int32Array,
    onHit: (hit: PatternMatch) => boolean,
    spans: Spans = ENTIRE_TEXT_SPANS,
  ): boolean {
    let from = 0;
    for (let span = 0; span < spans.length; span += 2) {
      from = this.scanSpan(
        bytes,
        words,
        Math.max(from, spans[span]! - this.longestPatternBytes + 1),
        spans[span + 1]!,
        onHit,
      );
      if (from === -1) return true;
    }
    return false;
  }

  /** Reports occurrences that begin before `to`. Returns the index up to which bytes were read; -1 if `onHit` returned true. */
  private scanSpan(
    bytes: Uint8Array,
    words: Int32Array,
    from: number,
    to: number,
    onHit: (hit: PatternMatch) => boolean,
  ): number {
    const lastStart = Math.min(bytes.length - PATTERN_MIN_BYTES + 1, to);
    this.stepCount += Math.max(0, lastStart - from) >> 2;
    let at = from;
    while (at !== -1 && at < lastStart) {
      const start = this.startFinder.findNextStart(bytes, words, at, lastStart);
      // `scanFrom` may read beyond `to`. Then the next span begins after the bytes that were read, so that each byte is read only once.
      at = start === -1 ? lastStart : this.scanFrom(bytes, start, onHit);
    }
    return at;
  }

  /** Returns the length of the longest beginning of a pattern with which `bytes` ends. */
  countBytesBegunAtEnd(bytes: Uint8Array): number {
    let node = 0;
    for (let at = Math.max(0, bytes.length - this.longestPatternBytes); at < bytes.length; at += 1)
      node = this.findNextNode(node, bytes[at]!);
    return this.depth[node]!;
  }

  /**
   * Finds the longest beginning of a pattern with which a truncated text ends. Returns null if none has at least PATTERN_MIN_BYTES bytes.
   */
  findPatternBegunAtEnd(bytes: Uint8Array): PatternMatch | null {
    let node = 0;
    let longest: PatternMatch | null = null;
    for (
      let at = Math.max(0, bytes.length - CUT_DISTANCE_MAX_BYTES - this.longestPatternBytes);
      at < bytes.length;
      at += 1
    ) {
      node = this.findNextNode(node, bytes[at]!);
      const length = this.depth[node]!;
      if (at < bytes.length - CUT_DISTANCE_MAX_BYTES || length < PATTERN_MIN_BYTES) continue;
      if (longest === null || at + 1 - length < longest.start) {
        longest = { pattern: this.findPatternBelow(node), start: at + 1 - length, end: bytes.length };
      }
    }
    return longest;
  }

  /** Returns the index of a pattern to which the node leads, at the node itself or below it in the trie. */
  private findPatternBelow(node: number): number {
    let descendant = node;
    while (!this.patternIndexByNode.has(descendant)) descendant += 1;
    return this.patternIndexByNode.get(descendant)!;
  }
}
