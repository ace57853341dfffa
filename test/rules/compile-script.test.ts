import { runInNewContext } from "node:vm";
import { expect } from "chai";
import { ACTION_REGISTRY_NAME, compileActionScript, type RegisteredAction } from "../../src/rules/compile-script.js";

function registered(action: { id: number; name: string; code: string }): RegisteredAction {
  const registry = runInNewContext(`${compileActionScript(action)};globalThis[Symbol.for("${ACTION_REGISTRY_NAME}")]`);
  return (registry as Map<number, RegisteredAction>).get(action.id)!;
}

describe("the script compiled from an action's code", () => {
  const forms = {
    "a declaration": "async function execute(context) { return context.payload; }",
    "an arrow function": "const execute = async (context) => context.payload;",
    "a function expression": "const execute = async function (context) { return context.payload; };",
    "a declaration before a comment without an end":
      "async function execute(context) { return context.payload; } // done",
    "a strict script": '"use strict";\nlet execute = async (context) => context.payload',
  };
  for (const [form, code] of Object.entries(forms)) {
    it(`returns the execute of ${form}`, async () => {
      const { name, define } = registered({ id: 3, name: "echo", code });
      expect(name).to.equal("echo");
      expect(await define()({ payload: { a: 1 }, settings: {} })).to.deep.equal({ a: 1 });
    });
  }

  it("evaluates the code again for each definition, in its own scope", async () => {
    const action = registered({ id: 3, name: "count", code: "let n = 0; const execute = async () => ++n;" });
    const call = (execute: ReturnType<RegisteredAction["define"]>) => execute({ payload: {}, settings: {} });
    expect([await call(action.define()), await call(action.define())]).to.deep.equal([1, 1]);
  });

  it("has a name, and the author's lines", async () => {
    const { define } = registered({
      id: 3,
      name: "fail",
      code: "const execute = async () => {\n\n  throw new Error('x');\n};",
    });
    const stack = await define()({ payload: {}, settings: {} }).catch((error: Error) => error.stack);
    expect(stack).to.match(/svc-action-3-fail\.js:3:9/);
  });

  it("cannot be broken by a name", () => {
    expect(registered({ id: 3, name: '"\n*/x', code: "async function execute() {}" }).name).to.equal('"\n*/x');
  });
});
