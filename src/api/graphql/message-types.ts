/** Shapes of messages in the GraphQL schema. No behaviour. */
import { GraphQLJSON } from "graphql-scalars";
import { Field, InputType, Int, ObjectType } from "type-graphql";
import { PaginationType } from "./action-types.js";
import { DateTime, MessageKindEnum, MessageStatusEnum } from "./leaf-types.js";

@ObjectType("MessageReceipt", { description: "A message that is stored: kept, or waiting to be sent." })
export class MessageReceiptType {
  @Field(() => Int) id: number;
  @Field(() => MessageStatusEnum) status: string;
}

@ObjectType("MessageRecipient")
class MessageRecipientType {
  @Field(() => String, { description: "An e-mail address or a phone number." }) address: string;
  @Field(() => String, { nullable: true }) name: string | null;
  @Field(() => String, { nullable: true, description: "Of e-mails: to, cc or bcc." }) type: string | null;
  @Field(() => String, { nullable: true, description: "sent or rejected, once it is tried." }) status: string | null;
  @Field(() => String, { nullable: true, description: "What the server said." }) detail: string | null;
}

@ObjectType("MessageSummary", { description: "A message as the outbox lists it." })
export class MessageSummaryType {
  @Field(() => Int) id: number;
  @Field(() => MessageKindEnum) kind: string;
  @Field(() => MessageStatusEnum) status: string;
  @Field(() => String, { nullable: true }) subject: string | null;
  @Field(() => [MessageRecipientType], { description: "The first five." }) to: MessageRecipientType[];
  @Field(() => Int, { description: "How many recipients there are." }) recipients: number;
  @Field(() => Int, { description: "How often it was tried." }) attempts: number;
  @Field(() => String, { nullable: true, description: "What the server said last." }) detail: string | null;
  @Field(() => DateTime, { nullable: true, description: "When it is tried next." }) dueAt: string | null;
  @Field(() => DateTime) createdAt: string;
  @Field(() => DateTime) updatedAt: string;
}

@ObjectType("MessageAttachment")
class MessageAttachmentType {
  @Field(() => String) type: string;
  @Field(() => String) name: string;
  @Field(() => String, { description: "base64 or utf8" }) encoding: string;
  @Field(() => String) content: string;
}

@ObjectType("MessageHeader")
export class MessageHeaderType {
  @Field(() => String) name: string;
  @Field(() => String) value: string;
}

/** Its headers are a field of message-resolver.ts. */
@ObjectType("Message", { description: "A message whole, with all its recipients." })
export class MessageType extends MessageSummaryType {
  @Field(() => String, { nullable: true }) fromName: string | null;
  @Field(() => String, { nullable: true }) html: string | null;
  @Field(() => String, { nullable: true, description: "Of a text message: all that it says." }) text: string | null;
  headers: Record<string, string>;
  @Field(() => [MessageAttachmentType]) attachments: MessageAttachmentType[];
}

@ObjectType("MessageList")
export class MessageListType {
  @Field(() => [MessageSummaryType]) messages: MessageSummaryType[];
  @Field(() => PaginationType) pagination: PaginationType;
}

@InputType("EmailRecipientInput")
class EmailRecipientInput {
  @Field(() => String, { nullable: true }) email?: unknown;
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => String, { nullable: true, description: "to, cc or bcc; to unless given." }) type?: unknown;
}

@InputType("MessageHeaderInput")
class MessageHeaderInput {
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => String, { nullable: true }) value?: unknown;
}

@InputType("AttachmentInput")
class AttachmentInput {
  @Field(() => String, { nullable: true, description: "Such as text/csv." }) type?: unknown;
  @Field(() => String, { nullable: true }) name?: unknown;
  @Field(() => String, { nullable: true }) content?: unknown;
  @Field(() => String, { nullable: true, description: "base64 or utf8; utf8 unless given." }) encoding?: unknown;
}

@InputType("EmailInput", { description: "Packages, Communicate. `{{name}}` is filled from `data`." })
export class EmailInput {
  @Field(() => [EmailRecipientInput], { nullable: true, description: "1 to 1000." }) to?: unknown;
  @Field(() => String, { nullable: true }) subject?: unknown;
  @Field(() => String, { nullable: true, description: "The sender's name; the address is the app's." })
  from_name?: unknown;
  @Field(() => String, { nullable: true }) html?: unknown;
  @Field(() => String, { nullable: true }) text?: unknown;
  @Field(() => [MessageHeaderInput], { nullable: true }) headers?: unknown;
  @Field(() => [AttachmentInput], { nullable: true }) attachments?: unknown;
}

@InputType("EmailOfBatchInput")
export class EmailOfBatchInput {
  @Field(() => EmailInput, { nullable: true }) options?: unknown;
  @Field(() => GraphQLJSON, { nullable: true, description: "An object." }) data?: unknown;
}

@InputType("SmsInput", { description: "Packages, Communicate." })
export class SmsInput {
  @Field(() => String, { nullable: true, description: "Such as +15550100." }) to?: unknown;
  @Field(() => String, { nullable: true }) body?: unknown;
  @Field(() => String, { nullable: true }) from?: unknown;
  @Field(() => String, { nullable: true, description: "twilio or webhook; the app's unless given." })
  provider?: unknown;
}
