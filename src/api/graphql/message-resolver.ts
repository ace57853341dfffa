/** Messages over GraphQL: sent, listed, decided about. Each method: the gate, then one call. */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root } from "type-graphql";
import type { Gate } from "../../operations/access/gate.js";
import type { Receipt } from "../../operations/communicate/acceptance.js";
import type { Messages } from "../../operations/communicate/messages.js";
import type { RequestContext } from "../context.js";
import { AppId, Limit, Offset } from "./arguments.js";
import { IdempotencyKey, keyOf } from "./idempotency.js";
import { MessageDecisionEnum, MessageKindEnum, MessageStatusEnum } from "./leaf-types.js";
import {
  EmailInput,
  EmailOfBatchInput,
  MessageHeaderType,
  MessageListType,
  MessageReceiptType,
  MessageType,
  SmsInput,
} from "./message-types.js";

@Resolver(() => MessageType)
export class MessageResolver {
  constructor(
    private readonly gate: Gate,
    private readonly service: Messages,
  ) {}

  @Query(() => MessageListType, { description: "The outbox, most recent first." })
  async messages(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("kind", () => MessageKindEnum, { nullable: true }) kind?: string,
    @Arg("status", () => MessageStatusEnum, { nullable: true }) status?: string,
    @Limit() limit?: number,
    @Offset() offset?: number,
  ): Promise<MessageListType> {
    await this.gate.enter(context, "readMessages", appId);
    return this.service.list(appId, { kind, status, limit, offset }, context.answer?.reserve);
  }

  @Query(() => MessageType)
  async message(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
  ): Promise<MessageType> {
    await this.gate.enter(context, "readMessages", appId);
    return this.service.find(appId, id);
  }

  @FieldResolver(() => [MessageHeaderType], { description: "Beside the message's own." })
  headers(@Root() { headers }: MessageType): MessageHeaderType[] {
    return Object.entries(headers).map(([name, value]) => ({ name, value }));
  }

  @Mutation(() => MessageReceiptType, { description: "Answers when the message is stored." })
  async sendEmail(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("options", () => EmailInput, { nullable: true }) options: unknown,
    @Arg("data", () => GraphQLJSON, { nullable: true }) data?: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<Receipt> {
    const caller = await this.gate.enter(context, "sendMessage", appId);
    const body = data === undefined ? options : { options, data };
    return this.service.sendEmail(caller, appId, body, keyOf(context, key));
  }

  @Mutation(() => [MessageReceiptType], { description: "All of them are stored, or none." })
  async batchSendEmail(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("messages", () => [EmailOfBatchInput], { nullable: true }) messages: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<Receipt[]> {
    const caller = await this.gate.enter(context, "sendMessage", appId);
    return this.service.sendEmails(caller, appId, messages, keyOf(context, key));
  }

  @Mutation(() => MessageReceiptType, { description: "Answers when the message is stored." })
  async sendSms(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("message", () => SmsInput, { nullable: true }) message: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<Receipt> {
    const caller = await this.gate.enter(context, "sendMessage", appId);
    return this.service.sendSms(caller, appId, message, keyOf(context, key));
  }

  @Mutation(() => [MessageReceiptType], { description: "All of them are stored, or none." })
  async batchSendSms(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("messages", () => [SmsInput], { nullable: true }) messages: unknown,
    @IdempotencyKey() key?: string | null,
  ): Promise<Receipt[]> {
    const caller = await this.gate.enter(context, "sendMessage", appId);
    return this.service.sendSmsBatch(caller, appId, messages, keyOf(context, key));
  }

  @Mutation(() => MessageType, {
    description: "A person's word on a message of which nobody knows whether it was sent.",
  })
  async decideMessage(
    @Ctx() context: RequestContext,
    @AppId() appId: number,
    @Arg("id", () => Int) id: number,
    @Arg("decision", () => MessageDecisionEnum) decision: string,
  ): Promise<MessageType> {
    const caller = await this.gate.enter(context, "decideMessage", appId);
    return this.service.decide(caller, appId, id, decision);
  }
}
