/** GraphQL types of language models. Contains only declarations; rules/ai checks the input. */
import { GraphQLJSON } from "graphql-scalars";
import { type ClassType, Field, Float, InputType, Int, ObjectType } from "type-graphql";
import type { AiCompletion, AiTokenUsage } from "../../rules/ai/answer.js";
import type { AiErrorCode } from "../../rules/ai/failure.js";
import type { AiToolCall } from "../../rules/ai/options.js";
import { createGraphqlEnum } from "./leaf-types.js";

const MODEL_DESCRIPTION = "Name of the model; the first one of the setting `__ai` by default.";

const AiRoleEnum = createGraphqlEnum<"system" | "user" | "assistant" | "tool">("AiRole", "Author of a message.", {
  system: "Instructions for the model.",
  user: "Message to the model.",
  assistant: "Answer of the model.",
  tool: "Result of a tool call.",
});

@InputType("AiToolCallInput", { description: "Tool call of an earlier answer." })
class AiToolCallInput {
  @Field(() => String, { nullable: true, description: "ID of the call; required." }) id?: unknown;
  @Field(() => String, { nullable: true, description: "Name of the tool; required." }) name?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Arguments of the call; {} by default." })
  arguments?: unknown;
}

@InputType("AiMessageInput", { description: "Message of a conversation with a model." })
class AiMessageInput {
  @Field(() => AiRoleEnum, { nullable: true, description: "Author of the message; required." }) role?: unknown;
  @Field(() => String, { nullable: true, description: "Text; required unless the message calls tools." })
  content?: unknown;
  @Field(() => [AiToolCallInput], { nullable: true, description: "Tool calls of an assistant's message." })
  toolCalls?: unknown;
  @Field(() => String, { nullable: true, description: "ID of the call that a tool's message answers." })
  toolCallId?: unknown;
}

@InputType("AiToolInput", { description: "Tool that a model may call." })
class AiToolInput {
  @Field(() => String, { nullable: true, description: "Name of 1 to 64 letters, digits, _ and -; required." })
  name?: unknown;
  @Field(() => String, { nullable: true, description: "Description for the model." }) description?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "JSON Schema of the arguments." }) parameters?: unknown;
}

@InputType("AiCompletionInput", { description: "Request to a language model." })
export class AiCompletionInput {
  @Field(() => String, { nullable: true, description: MODEL_DESCRIPTION }) model?: unknown;
  @Field(() => [AiMessageInput], { nullable: true, description: "Messages, at least one; required." })
  messages?: unknown;
  @Field(() => [AiToolInput], { nullable: true, description: "Tools that the model may call." }) tools?: unknown;
  @Field(() => Int, { nullable: true, description: "Maximum number of tokens of the answer." }) maxTokens?: unknown;
  @Field(() => Float, { nullable: true, description: "Temperature, 0 to 2." }) temperature?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "Format of the answer, as in OpenAI's API." })
  responseFormat?: unknown;
}

@InputType("AiEmbeddingInput", { description: "Texts whose embeddings are computed." })
export class AiEmbeddingInput {
  @Field(() => String, { nullable: true, description: MODEL_DESCRIPTION }) model?: unknown;
  @Field(() => [String], { nullable: true, description: "Texts, at least one; required." }) input?: unknown;
}

@InputType("AiImageInput", { description: "Description of an image." })
export class AiImageInput {
  @Field(() => String, { nullable: true, description: MODEL_DESCRIPTION }) model?: unknown;
  @Field(() => String, { nullable: true, description: "Text that describes the image; required." }) prompt?: unknown;
  @Field(() => String, { nullable: true, description: "Width and height, such as 1024x1024." }) size?: unknown;
}

@InputType("AiFileInput", { description: "Recording of speech." })
class AiFileInput {
  @Field(() => String, { nullable: true, description: "Name of the file; audio by default." }) name?: unknown;
  @Field(() => String, { nullable: true, description: "Content type, such as audio/mpeg; required." })
  contentType?: unknown;
  @Field(() => String, { nullable: true, description: "Bytes in base64; required." }) data?: unknown;
}

@InputType("AiTranscriptionInput", { description: "Recording that is transcribed." })
export class AiTranscriptionInput {
  @Field(() => String, { nullable: true, description: MODEL_DESCRIPTION }) model?: unknown;
  @Field(() => AiFileInput, {
    nullable: true,
    description: "The recording; a request to /graphql has at most 1 MB, one to the REST route at most 8 MB. Required.",
  })
  file?: unknown;
}

@ObjectType("AiToolCall", { description: "Tool call of a model's answer." })
class AiToolCallType implements AiToolCall {
  @Field(() => String, { description: "ID of the call." }) id: string;
  @Field(() => String, { description: "Name of the tool." }) name: string;
  @Field(() => GraphQLJSON, { nullable: true, description: "Arguments of the call." }) arguments: unknown;
}

@ObjectType("AiAnswerMessage", { description: "Text of a model's answer." })
class AiAnswerMessageType {
  @Field(() => AiRoleEnum, { description: "Author; always assistant." }) role: "assistant";
  @Field(() => String, { description: "The text; empty if the answer only calls tools." }) content: string;
}

@ObjectType("AiUsage", { description: "Tokens of a call, by the provider's count." })
class AiUsageType implements AiTokenUsage {
  @Field(() => Int, { description: "Tokens of the request." }) inputTokens: number;
  @Field(() => Int, { description: "Tokens of the answer." }) outputTokens: number;
}

@ObjectType("AiCompletion", { description: "Answer of a language model." })
class AiCompletionType implements AiCompletion {
  @Field(() => AiAnswerMessageType, { description: "The text." }) message: AiCompletion["message"];
  @Field(() => [AiToolCallType], { description: "Tools that the model calls; empty for none." })
  toolCalls: AiToolCall[];
  @Field(() => AiUsageType, { description: "Tokens of the call." }) usage: AiTokenUsage;
  @Field(() => String, { description: "Name of the model that answered." }) model: string;
  @Field(() => String, { description: "Reason for the end of the answer, as the provider names it." })
  finishReason: string;
}

@ObjectType("AiEmbeddings", { description: "Embeddings of texts." })
class AiEmbeddingsType {
  @Field(() => [[Float]], { description: "One vector for each text, in their order." }) vectors: number[][];
  @Field(() => AiUsageType, { description: "Tokens of the call." }) usage: AiTokenUsage;
}

@ObjectType("AiImage", { description: "Generated image." })
class AiImageType {
  @Field(() => String, { description: "Content type." }) contentType: string;
  @Field(() => String, { description: "Bytes in base64." }) data: string;
}

@ObjectType("AiImages", { description: "Generated images." })
class AiImagesType {
  @Field(() => [AiImageType], { description: "The images." }) images: AiImageType[];
}

@ObjectType("AiTranscription", { description: "Transcribed speech." })
class AiTranscriptionType {
  @Field(() => String, { description: "The text." }) text: string;
}

const AiErrorCodeEnum = createGraphqlEnum<AiErrorCode>(
  "AiErrorCode",
  "Cause of a failed call of a model, as the package svc-ai names it.",
  {
    POLICY: "The options or the setting `__ai` do not allow the call.",
    LIMIT: "A limit of the app, of the run or of the provider is reached.",
    TIMEOUT: "The provider did not answer in time.",
    UNSUPPORTED:
      "The provider answered with an encoding that is not supported, or with the URL of an image instead of its bytes.",
    TRANSPORT: "The provider could not be reached, or its response has another form.",
    INTEGRATION_UNAVAILABLE: "The caller is no run of a server action.",
  },
);

@ObjectType("AiFailure", { description: "Reason why a call of a model failed." })
class AiFailureType {
  @Field(() => AiErrorCodeEnum, { description: "Cause of the failure." }) code: AiErrorCode;
  @Field(() => String, { description: "The reason, without secrets." }) message: string;
}

function createReplyType<Answer extends object>(name: string, subject: string, answerType: ClassType<Answer>) {
  @ObjectType(name, { description: `${subject}, or the reason why there is none.` })
  class ReplyType {
    @Field(() => answerType, { nullable: true, description: "The answer; null if the call failed." }) answer?: Answer;
    @Field(() => AiFailureType, { nullable: true, description: "The failure; null if there is an answer." })
    failure?: AiFailureType;
  }
  return ReplyType;
}

export const AiCompletionReply = createReplyType("AiCompletionReply", "Answer of a language model", AiCompletionType);
export const AiEmbeddingsReply = createReplyType("AiEmbeddingsReply", "Embeddings of texts", AiEmbeddingsType);
export const AiImagesReply = createReplyType("AiImagesReply", "Generated images", AiImagesType);
export const AiTranscriptionReply = createReplyType("AiTranscriptionReply", "Transcribed speech", AiTranscriptionType);
