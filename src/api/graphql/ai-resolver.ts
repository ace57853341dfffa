/**
 * GraphQL resolver through which server actions call language models. Each method checks the caller's access and then
 * calls one operation. Streamed answers are available only over REST.
 */
import { Arg, Ctx, Mutation, Resolver } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Ai, AiReply } from "../../operations/ai/ai.js";
import type { AiCallKind } from "../../rules/ai/options.js";
import { isObject } from "../../rules/describe-value.js";
import type { RequestContext } from "../context.js";
import { JsonLineStream } from "../lines.js";
import {
  AiCompletionInput,
  AiCompletionReply,
  AiEmbeddingInput,
  AiEmbeddingsReply,
  AiImageInput,
  AiImagesReply,
  AiTranscriptionInput,
  AiTranscriptionReply,
} from "./ai-types.js";
import { AppIdArgument } from "./arguments.js";

@Resolver()
export class AiResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Ai,
  ) {}

  @Mutation(() => AiCompletionReply, {
    description: "Calls a language model. The answer comes as a whole; the REST route can stream it.",
  })
  createAiCompletion(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => AiCompletionInput, { description: "The request." }) options: unknown,
  ): Promise<object> {
    return this.callModel(context, appId, "completions", options);
  }

  @Mutation(() => AiEmbeddingsReply, { description: "Computes embeddings." })
  createAiEmbeddings(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => AiEmbeddingInput, { description: "The texts." }) options: unknown,
  ): Promise<object> {
    return this.callModel(context, appId, "embeddings", options);
  }

  @Mutation(() => AiImagesReply, { description: "Generates an image." })
  createAiImage(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => AiImageInput, { description: "Description of the image." }) options: unknown,
  ): Promise<object> {
    return this.callModel(context, appId, "image", options);
  }

  @Mutation(() => AiTranscriptionReply, { description: "Transcribes speech." })
  createAiTranscription(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => AiTranscriptionInput, { description: "The recording." }) options: unknown,
  ): Promise<object> {
    return this.callModel(context, appId, "transcribe", options);
  }

  async callModel(
    context: RequestContext,
    appId: number,
    call: AiCallKind,
    options: unknown,
  ): Promise<AiReply | JsonLineStream> {
    const caller = await this.accessChecks.requireAppAccess(context, "useAi", appId);
    const request = { appId, call, options, disconnectSignal: context.getClosedSignal };
    if (call !== "completions" || !isObject(options) || options["stream"] !== true) {
      return this.service.callModel(caller, request);
    }
    return new JsonLineStream(async (send) => {
      await send(await this.service.callModel(caller, { ...request, onTextPart: (text) => send({ text }) }));
    });
  }
}
