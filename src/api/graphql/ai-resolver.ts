/** Language models for server actions. REST only, because the response depends on the call, and code uses the package svc-ai. */
import { Resolver } from "type-graphql";
import type { AccessGate } from "../../operations/access/gate.js";
import type { Ai, AiReply } from "../../operations/ai/ai.js";
import type { AiCall } from "../../rules/ai/options.js";
import { isObject } from "../../rules/described.js";
import type { RequestContext } from "../context.js";
import { Lines } from "../lines.js";

@Resolver()
export class AiResolver {
  constructor(
    private readonly gate: AccessGate,
    private readonly service: Ai,
  ) {}

  async ask(context: RequestContext, appId: number, call: AiCall, options: unknown): Promise<AiReply | Lines> {
    const caller = await this.gate.enter(context, "useAi", appId);
    const request = { appId, call, options, gone: context.gone };
    if (call !== "completions" || !isObject(options) || options["stream"] !== true) {
      return this.service.ask(caller, request);
    }
    return new Lines(async (send) => {
      await send(await this.service.ask(caller, { ...request, onText: (text) => send({ text }) }));
    });
  }
}
