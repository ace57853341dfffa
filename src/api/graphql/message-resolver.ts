/**
 * E-mails and text messages over GraphQL: lists and sends them, and decides about those with an unknown outcome. Each
 * method checks the caller's access and then calls one operation.
 */
import { GraphQLJSON } from "graphql-scalars";
import { Arg, Ctx, FieldResolver, Int, Mutation, Query, Resolver, Root } from "type-graphql";
import type { AccessChecks } from "../../operations/access/access-checks.js";
import type { Messages } from "../../operations/communicate/messages.js";
import type { MessageReceipt } from "../../operations/communicate/outbox-writer.js";
import type { RequestContext } from "../context.js";
import { AppIdArgument, Limit, Offset } from "./arguments.js";
import { IdempotencyKeyArgument, selectIdempotencyKey } from "./idempotency.js";
import { MessageDecisionEnum, MessageKindEnum, MessageStatusEnum } from "./leaf-types.js";
import {
  BatchEmailInput,
  EmailInput,
  MessageHeaderType,
  MessageListType,
  MessageReceiptType,
  MessageType,
  SmsInput,
} from "./message-types.js";

@Resolver(() => MessageType)
export class MessageResolver {
  constructor(
    private readonly accessChecks: AccessChecks,
    private readonly service: Messages,
  ) {}

  @Query(() => MessageListType, { description: "Lists the e-mails and text messages of the app, newest first." })
  async messages(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("kind", () => MessageKindEnum, { nullable: true, description: "Kind of the messages; all kinds by default." })
    kind?: string,
    @Arg("status", () => MessageStatusEnum, {
      nullable: true,
      description: "Status of the messages; all statuses by default.",
    })
    status?: string,
    @Limit() limit?: number,
    @Offset() offset?: number,
  ): Promise<MessageListType> {
    await this.accessChecks.requireAppAccess(context, "readMessages", appId);
    return this.service.list(appId, { kind, status, limit, offset }, context.responseBudget?.reserveBytes);
  }

  @Query(() => MessageType, { description: "Returns a message with its content and recipients." })
  async message(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the message." }) id: number,
  ): Promise<MessageType> {
    await this.accessChecks.requireAppAccess(context, "readMessages", appId);
    return this.service.find(appId, id);
  }

  @FieldResolver(() => [MessageHeaderType], { description: "Additional headers of the message." })
  headers(@Root() { headers }: MessageType): MessageHeaderType[] {
    return Object.entries(headers).map(([name, value]) => ({ name, value }));
  }

  @Mutation(() => MessageReceiptType, { description: "Stores an e-mail for sending and returns before it is sent." })
  async sendEmail(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("options", () => EmailInput, { nullable: true, description: "E-mail to send." }) options: unknown,
    @Arg("data", () => GraphQLJSON, {
      nullable: true,
      description: "Values for `{{name}}` placeholders in the e-mail, an object.",
    })
    data?: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<MessageReceipt> {
    const caller = await this.accessChecks.requireAppAccess(context, "sendMessage", appId);
    const body = data === undefined ? options : { options, data };
    return this.service.sendEmail(caller, appId, body, selectIdempotencyKey(context, key));
  }

  @Mutation(() => [MessageReceiptType], { description: "Stores several e-mails for sending, in one transaction." })
  async batchSendEmail(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("messages", () => [BatchEmailInput], { nullable: true, description: "E-mails to send." }) messages: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<MessageReceipt[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "sendMessage", appId);
    return this.service.sendEmails(caller, appId, messages, selectIdempotencyKey(context, key));
  }

  @Mutation(() => MessageReceiptType, {
    description: "Stores a text message for sending and returns before it is sent.",
  })
  async sendSms(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("message", () => SmsInput, { nullable: true, description: "Text message to send." }) message: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<MessageReceipt> {
    const caller = await this.accessChecks.requireAppAccess(context, "sendMessage", appId);
    return this.service.sendSms(caller, appId, message, selectIdempotencyKey(context, key));
  }

  @Mutation(() => [MessageReceiptType], {
    description: "Stores several text messages for sending, in one transaction.",
  })
  async batchSendSms(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("messages", () => [SmsInput], { nullable: true, description: "Text messages to send." }) messages: unknown,
    @IdempotencyKeyArgument() key?: string | null,
  ): Promise<MessageReceipt[]> {
    const caller = await this.accessChecks.requireAppAccess(context, "sendMessage", appId);
    return this.service.sendSmsBatch(caller, appId, messages, selectIdempotencyKey(context, key));
  }

  @Mutation(() => MessageType, {
    description: "Records that a message with the status `unknown` was sent, or sends it again.",
  })
  async decideMessage(
    @Ctx() context: RequestContext,
    @AppIdArgument() appId: number,
    @Arg("id", () => Int, { description: "ID of the message." }) id: number,
    @Arg("decision", () => MessageDecisionEnum, { description: "Resolution of the message." }) decision: string,
  ): Promise<MessageType> {
    const caller = await this.accessChecks.requireAppAccess(context, "decideMessage", appId);
    return this.service.decide(caller, appId, id, decision);
  }
}
